"""The binding: a layer's operations, each in a transaction or a view of its own."""

import inspect
from collections import OrderedDict, namedtuple
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from holdfast.binding import per_call
from holdfast.declarations import declared, operation
from holdfast.engine.contract import Engine, Reader, Transaction
from holdfast.errors import ViewOnlyReads


class Notes:
    """A layer of notes."""

    LARGEST = 10  # no operation

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    @operation()
    def put(self, name: str, text: str, *, shout: bool = False) -> int:
        """Keeps a note. Writes 1 key."""
        self._tx.put(name.encode(), (text.upper() if shout else text).encode())
        return len(text)

    @operation(reads=True)
    def get(self, name: str) -> str | None:
        """Gives a note back. Reads 1 key."""
        value = self._tx.get(name.encode())
        return None if value is None else value.decode()

    @operation(reads=True)
    def write_by_mistake(self) -> None:
        self._tx.put(b"k", b"v")

    @operation()
    def put_under(self, names: Iterable[str], text: str) -> int:
        """Keeps a note under each name. Writes 1 key for each."""
        return sum(self.put(name, text) for name in names)

    @operation()
    def put_and_fail(self, name: str) -> None:
        self.put(name, "half done")
        raise LookupError(name)

    def _hidden(self) -> None:
        raise AssertionError


class Runner:
    """Runs on an engine, and keeps a record of how."""

    is_remote = False

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.calls: list[str] = []

    def transact(self, work: Any, kind: str = "") -> Any:
        self.calls.append("transact")
        return self.engine.transact(work)

    @contextmanager
    def view(self) -> Iterator[Reader]:
        self.calls.append("view")
        with self.engine.view() as reader:
            yield reader
        self.calls.append("view closed")

    def read(self, work: Any, kind: str = "") -> Any:
        with self.view() as reader:
            return work(reader)


class Undone(Exception):
    pass


class TwiceRunner(Runner):
    """Runs all work twice, as an engine does with work that was in conflict."""

    is_remote = True

    def transact(self, work: Any, kind: str = "") -> Any:
        def run_and_undo(tx: Transaction) -> None:
            work(tx)
            raise Undone

        with pytest.raises(Undone):
            super().transact(run_and_undo)
        return super().transact(work)

    def read(self, work: Any, kind: str = "") -> Any:
        super().read(work)
        return super().read(work)


StoreNotes = per_call(Notes)


@pytest.fixture
def runner(engine: Engine) -> Runner:
    return Runner(engine)


def test_a_read_runs_on_a_view_and_all_else_in_a_transaction(runner: Runner) -> None:
    notes = StoreNotes(runner)

    assert notes.put("a", "text") == 4
    assert notes.get("a") == "text"

    assert runner.calls == ["transact", "view", "view closed"]


def test_arguments_of_all_kinds_come_through(runner: Runner) -> None:
    notes = StoreNotes(runner)

    notes.put("a", text="text", shout=True)

    assert notes.get(name="a") == "TEXT"


def test_work_that_runs_again_walks_its_iterators_from_their_begin(engine: Engine) -> None:
    notes = StoreNotes(TwiceRunner(engine))

    assert notes.put_under(iter("ab"), "text") == 8
    assert notes.put_under(text="!", names=(name for name in "bc")) == 2

    assert [notes.get(name) for name in "abc"] == ["text", "!", "!"]


class Labels(msgspec.Struct):
    names: Any


Pair = namedtuple("Pair", ["names", "text"])


@pytest.mark.parametrize(
    ("give", "find"),
    [
        (lambda names: [{"names": names}], lambda given: given[0]["names"]),
        (lambda names: {"a": ["x", (names,)]}, lambda given: given["a"][1][0]),
        (lambda names: [Labels(names)], lambda given: given[0].names),
        (lambda names: (Pair(names, "t"),), lambda given: given[0].names),
        (lambda names: iter([{"names": names}]), lambda given: next(given)["names"]),
        (lambda names: OrderedDict(names=names), lambda given: given["names"]),
    ],
)
def test_work_that_runs_again_walks_iterators_in_its_arguments_from_their_begin(
    engine: Engine, give: Any, find: Any
) -> None:
    class Nested(Notes):
        @operation()
        def put_nested(self, given: Any) -> int:
            """Keeps a note under each name that is found in the argument."""
            return self.put_under(find(given), "text")

    notes = per_call(Nested)(TwiceRunner(engine))

    assert notes.put_nested(give(name for name in "ab")) == 8
    assert notes.put_nested(given=give(name for name in "bc")) == 8
    assert [notes.get(name) for name in "abc"] == ["text"] * 3


def test_an_argument_that_holds_itself_is_handed_over_as_it_is(engine: Engine) -> None:
    class Counting(Notes):
        @operation()
        def count(self, given: Any) -> int:
            """Says how long the list is."""
            return len(given)

    round_about: list[Any] = [1]
    round_about.append(round_about)

    assert per_call(Counting)(TwiceRunner(engine)).count(round_about) == 2


def test_an_iterator_that_fails_does_so_in_each_run(engine: Engine) -> None:
    def names() -> Iterator[str]:
        yield "a"
        raise LookupError("b")

    class TriedAgain(Runner):
        def transact(self, work: Any, kind: str = "") -> Any:
            with pytest.raises(LookupError):
                super().transact(work)
            return super().transact(work)

    notes = StoreNotes(TriedAgain(engine))
    with pytest.raises(LookupError, match="b"):
        notes.put_under(names(), "text")

    assert notes.get("a") is None


def test_an_exception_comes_through_and_undoes_the_transaction(runner: Runner) -> None:
    notes = StoreNotes(runner)

    with pytest.raises(LookupError, match="a"):
        notes.put_and_fail("a")

    assert notes.get("a") is None


def test_a_read_that_writes_is_refused(runner: Runner) -> None:
    with pytest.raises(ViewOnlyReads):
        StoreNotes(runner).write_by_mistake()


def test_signatures_docstrings_and_marks_are_kept() -> None:
    assert StoreNotes.__doc__ == "A layer of notes."
    for name in ("put", "get"):
        method, bound = getattr(Notes, name), getattr(StoreNotes, name)
        assert inspect.signature(bound) == inspect.signature(method)
        assert (bound.__doc__, bound.__name__) == (method.__doc__, name)
        assert declared(bound) is declared(method)
    assert [declared(StoreNotes.put).reads, declared(StoreNotes.get).reads] == [False, True]


def test_a_public_method_without_a_declaration_is_refused() -> None:
    class Careless:
        def drop_everything(self) -> None: ...

    with pytest.raises(TypeError, match="drop_everything has no @operation"):
        per_call(Careless)


def test_only_public_methods_are_bound() -> None:
    bound = {name for name in vars(StoreNotes) if not name.startswith("_")}

    assert bound == {"put", "put_under", "get", "put_and_fail", "write_by_mistake"}


def test_a_layer_that_needs_more_than_its_transaction_is_made_by_the_store(runner: Runner) -> None:
    class Loud(Notes):
        def __init__(self, tx: Transaction, mark: str) -> None:
            super().__init__(tx)
            self._mark = mark

        @operation()
        def put(self, name: str, text: str, *, shout: bool = False) -> int:
            return super().put(name, text + self._mark, shout=shout)

    notes = per_call(Loud)(runner, lambda tx: Loud(tx, "!"))
    notes.put("a", "text")

    assert notes.get("a") == "text!"


def test_a_class_derived_from_it_adds_what_is_more_than_one_transaction(runner: Runner) -> None:
    class WithMore(StoreNotes):  # type: ignore[misc, valid-type]  # made at run time
        def put_all(self, texts: dict[str, str]) -> list[int]:
            """Puts each note in a transaction of its own."""
            return [self.put(name, text) for name, text in texts.items()]

    notes = WithMore(runner)

    assert notes.put_all({"a": "1", "b": "22"}) == [1, 2]
    assert runner.calls == ["transact", "transact"]
