"""The contract of every engine as tests: put an engine through it by deriving from `Conformance`.

The class that derives gives the fixture `url`: that of an empty store, which other processes may
open too. Everything else is here.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Guard, Notice, Transaction, pack_counter, read_counter
from holdfast.errors import (
    BadInput,
    KeyTooLong,
    NotACounter,
    OutsideSpace,
    StoreClosed,
    ValueTooLarge,
    ViewOnlyReads,
)
from holdfast.limits import MAX_COUNTER, MAX_KEY_BYTES, MAX_VALUE_BYTES
from tests.engine.model import END, apply, compare, keys, operation, short_keys, transactions
from tests.engine.notice_conformance import NoticeConformance, Undone
from tests.processes import start

# All examples of a property share an engine: each begins by emptying it. And the same property is
# run on several engines, each with an object of the class of its own.
_PROPERTY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)

REPLACEMENTS: list[Callable[[Transaction, bytes], None]] = [
    lambda tx, key: tx.put(key, b"2"),
    lambda tx, key: tx.put_all({key: b"2"}),
    lambda tx, key: tx.delete(key),
    lambda tx, key: tx.clear(key, key + b"\0"),
]


def add_in_process(url: str, connection: Connection) -> None:
    engine = open_engine(url, durability="interval")
    for _ in range(100):
        engine.transact(lambda tx: tx.add(b"n", 1))
        engine.transact(_increment)
    engine.transact(lambda tx: tx.after_commit(Notice("done")))
    engine.close()
    connection.send("done")


def _increment(tx: Transaction) -> int:
    """Reads and writes, so two at the same time would lose one."""
    number = int(tx.get(b"plain") or b"0") + 1
    tx.put(b"plain", b"%d" % number)
    return number


class Conformance(NoticeConformance):
    """Derive from it, and give the fixture `url`."""

    # --- one transaction --------------------------------------------------------------------------

    @settings(_PROPERTY, max_examples=60)
    @given(history=transactions, begin=keys | short_keys, end=keys | short_keys)
    def test_it_is_a_sorted_map_whatever_the_length_of_its_keys(
        self, engine: Engine, history: Any, begin: bytes, end: bytes
    ) -> None:
        engine.transact(lambda tx: tx.clear(b"", b"\xff" * (MAX_KEY_BYTES + 1)))
        model: dict[bytes, bytes] = {}

        def step(operations: Any, keep: bool) -> Any:
            def work(tx: Transaction) -> dict[bytes, bytes]:
                attempt = dict(model)
                for each in operations:
                    apply(tx, attempt, each)
                compare(tx, attempt, begin, end)
                if not keep:
                    raise Undone
                return attempt

            return work

        for operations, keep in history:
            try:
                model = engine.transact(step(operations, keep))
            except Undone:
                assert not keep
            with engine.view() as view:
                compare(view, model, begin, end)
                compare(view, model, b"", END)

    @settings(_PROPERTY, max_examples=60)
    @given(
        present=st.sets(keys | short_keys, max_size=12),
        writes=st.lists(operation, max_size=12),
        reverse=st.booleans(),
    )
    def test_a_scan_sees_the_writes_that_lie_ahead_of_it(
        self, engine: Engine, present: set[bytes], writes: Any, reverse: bool
    ) -> None:
        def work(tx: Transaction) -> None:
            upcoming: list[bytes | None] = []
            tx.clear(b"", b"\xff" * (MAX_KEY_BYTES + 1))
            model = {key: b"old" for key in present if not key.startswith(b"#")}
            for key, value in model.items():
                tx.put(key, value)
            remaining = list(writes)
            seen: list[bytes] = []

            for key, value in tx.scan(b"", END, reverse=reverse):
                assert model[key] == value
                seen.append(key)
                if remaining:
                    apply(tx, model, remaining.pop())
                ahead = [other for other in model if (other < key) == reverse and other != key]
                expected = (max if reverse else min)(ahead, default=None)
                upcoming.append(expected)

            assert seen == sorted(seen, reverse=reverse)
            assert seen[1:] == upcoming[: len(seen) - 1]
            assert not seen or upcoming[-1] is None

        engine.transact(work)

    def test_a_transaction_that_raises_has_written_nothing(self, engine: Engine) -> None:
        def work(tx: Transaction) -> None:
            tx.put(b"a", b"1")
            tx.add(b"n", 1)
            raise Undone("its own message")

        with pytest.raises(Undone, match="its own message"):
            engine.transact(work)

        with engine.view() as view:
            assert view.get_many([b"a", b"n"]) == [None, None]

    @pytest.mark.parametrize("checked", [False, True])
    def test_pairs_that_are_put_at_once_are_all_there(self, engine: Engine, checked: bool) -> None:
        pairs = {b"key%d" % number: b"value" for number in range(20)}

        def work(tx: Transaction) -> list[bytes | None]:
            tx.put(b"key0", b"before")
            tx.put_all(pairs, checked=checked)
            tx.put_all({}, checked=checked)
            tx.put(b"key1", b"after")
            return tx.get_many([b"key0", b"key1", b"key2", b"none"])

        found = engine.transact(work)

        assert found == [b"value", b"after", b"value", None]
        with engine.view() as view:
            assert dict(view.scan(b"key", b"kez")) == pairs | {b"key1": b"after"}

    def test_the_result_of_the_work_comes_back(self, engine: Engine) -> None:
        assert engine.transact(lambda tx: tx.get(b"nothing") or 42) == 42

    def test_a_with_block_commits_at_its_end(self, engine: Engine) -> None:
        with engine.transaction() as tx:
            tx.put(b"a", b"1")
            assert tx.get(b"a") == b"1"

        with engine.view() as view:
            assert view.get(b"a") == b"1"

    def test_a_with_block_that_raises_has_written_nothing(self, engine: Engine) -> None:
        def write_and_raise() -> None:
            with engine.transaction() as tx:
                tx.put(b"a", b"1")
                raise Undone

        with pytest.raises(Undone):
            write_and_raise()

        with engine.view() as view:
            assert view.get(b"a") is None

    def test_a_view_keeps_its_snapshot_while_others_write(self, engine: Engine) -> None:
        engine.transact(lambda tx: tx.put(b"a", b"old"))

        with engine.view() as view:
            engine.transact(lambda tx: tx.put(b"a", b"new"))

            assert view.get(b"a") == b"old"
            assert list(view.scan(b"", END)) == [(b"a", b"old")]

    def test_a_view_is_refused_as_long_as_the_key_of_its_guard_is_there(
        self, engine: Engine
    ) -> None:
        def refuse(reader: Any) -> None:
            raise Undone

        guard = Guard(b"dropped", refuse)
        with engine.view(guard=guard) as view:
            assert view.get(b"a") is None

        engine.transact(lambda tx: tx.put(b"dropped", b""))

        for _ in range(2):
            with pytest.raises(Undone), engine.view(guard=guard) as view:
                view.get(b"a")
        engine.transact(lambda tx: tx.delete(b"dropped"))
        with engine.view(guard=guard) as view:
            assert view.get(b"a") is None

    def test_a_view_only_reads(self, engine: Engine) -> None:
        with engine.view() as view, pytest.raises(ViewOnlyReads):
            view.put(b"a", b"1")  # type: ignore[attr-defined]  # that is the point

    def test_a_transaction_inside_another_is_refused_instead_of_waiting_for_itself(
        self, engine: Engine
    ) -> None:
        with pytest.raises(RuntimeError, match="inside another"):
            engine.transact(lambda tx: engine.transact(lambda inner: None))

    # --- groups -----------------------------------------------------------------------------------

    @settings(_PROPERTY, max_examples=40)
    @given(group=st.lists(st.tuples(st.lists(operation, max_size=5), st.booleans()), max_size=8))
    def test_each_transaction_of_a_group_succeeds_or_fails_alone(
        self, engine: Engine, group: Any
    ) -> None:
        engine.transact(lambda tx: tx.clear(b"", b"\xff" * (MAX_KEY_BYTES + 1)))

        def step(operations: Any, keep: bool) -> Any:
            def work(tx: Transaction) -> int:
                for each in operations:
                    apply(tx, {}, each)
                if not keep:
                    raise Undone
                return len(operations)

            return work

        outcomes = engine.transact_many([step(*each) for each in group])

        model: dict[bytes, bytes] = {}
        with engine.transaction() as tx:
            stored = dict(tx.scan(b"", END))
            tx.clear(b"", END)
            for operations, keep in group:
                for each in operations if keep else ():
                    apply(tx, model, each)
            assert stored == model
        for (operations, keep), outcome in zip(group, outcomes, strict=True):
            assert isinstance(outcome.error, Undone) is not keep
            assert not keep or outcome.unwrap() == len(operations)

    def test_a_transaction_of_a_group_sees_its_predecessors(self, engine: Engine) -> None:
        outcomes = engine.transact_many([_increment, _increment, _increment])

        assert [outcome.unwrap() for outcome in outcomes] == [1, 2, 3]

    def test_a_space_is_named_for_each_transaction_of_a_group_or_for_none(
        self, engine: Engine
    ) -> None:
        with pytest.raises(ValueError, match="2 functions were given, but 1 spaces"):
            engine.transact_many([_increment, _increment], spaces=[b""])

    def test_an_empty_group_is_no_error(self, engine: Engine) -> None:
        assert engine.transact_many([]) == []

    def test_threads_that_share_commits_keep_their_own_results_and_exceptions(
        self, engine: Engine
    ) -> None:
        def step(number: int) -> Any:
            def work(tx: Transaction) -> int:
                tx.put(b"%d" % number, b"")
                if number % 3 == 0:
                    raise Undone(str(number))
                return number

            return work

        def run(number: int) -> int | str:
            try:
                return int(engine.transact(step(number)))
            except Undone as error:
                return str(error)

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(run, range(300)))

        assert results == [str(n) if n % 3 == 0 else n for n in range(300)]
        with engine.view() as view:
            stored = {int(key) for key, _ in view.scan(b"", END)}
        assert stored == {n for n in range(300) if n % 3}

    # --- many at the same time --------------------------------------------------------------------

    def test_no_increment_of_any_thread_is_lost(self, engine: Engine) -> None:
        with ThreadPoolExecutor(8) as pool:
            seen = list(pool.map(lambda _: engine.transact(_increment), range(400)))

        assert sorted(seen) == list(range(1, 401))

    def test_two_transactions_can_not_each_rely_on_what_the_other_changes(
        self, engine: Engine
    ) -> None:
        """Write skew: each doctor may leave if the other one stays on call."""

        def leave(name: bytes, other: bytes) -> Any:
            def work(tx: Transaction) -> None:
                if tx.get(other) == b"on call":
                    tx.put(name, b"gone")

            return work

        for _ in range(30):
            for name in (b"ann", b"bob"):
                engine.transact(lambda tx, name=name: tx.put(name, b"on call"))  # type: ignore[misc]
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(engine.transact, [leave(b"ann", b"bob"), leave(b"bob", b"ann")]))
            with engine.view() as view:
                assert view.get_many([b"ann", b"bob"]).count(b"on call") == 1

    def test_processes_share_one_store_and_lose_nothing(self, engine: Engine, url: str) -> None:
        with engine.subscribe(topic_prefix="done") as subscription:
            children = [start(add_in_process, url) for _ in range(3)]
            for _ in range(100):
                engine.transact(_increment)
            for child in children:
                assert child.receive() == "done"
                child.join()

            assert len(subscription.poll()) == 3
        with engine.view() as view:
            assert read_counter(view.get(b"n")) == 300
            assert view.get(b"plain") == b"400"

    # --- bad input --------------------------------------------------------------------------------

    def test_keys_and_values_up_to_the_limits_are_taken(self, engine: Engine) -> None:
        key = b"k" * MAX_KEY_BYTES
        engine.transact(lambda tx: tx.put(key, b"v"))
        engine.transact(lambda tx: tx.put(b"large", bytes(MAX_VALUE_BYTES)))

        with engine.view() as view:
            assert view.get(key) == b"v"
            assert len(view.get(b"large") or b"") == MAX_VALUE_BYTES

    def test_what_is_larger_than_the_limits_is_refused(self, engine: Engine) -> None:
        with pytest.raises(KeyTooLong, match="131073 bytes"):
            engine.transact(lambda tx: tx.put(b"k" * (MAX_KEY_BYTES + 1), b""))
        with pytest.raises(ValueTooLarge):
            engine.transact(lambda tx: tx.put(b"k", bytes(MAX_VALUE_BYTES + 1)))
        with pytest.raises(ValueTooLarge):
            engine.transact(lambda tx: tx.put_all({b"j": b"", b"k": bytes(MAX_VALUE_BYTES + 1)}))

    def test_an_empty_key_is_refused_and_never_there(self, engine: Engine) -> None:
        with pytest.raises(BadInput, match="at least one byte"):
            engine.transact(lambda tx: tx.put(b"", b""))
        with engine.view() as view:
            assert view.get(b"") is None

    def test_a_transaction_writes_in_its_own_space_only(self, engine: Engine) -> None:
        for write in (
            lambda tx: tx.put(b"Bkey", b""),
            lambda tx: tx.put_all({b"A": b"", b"Bkey": b""}),
            lambda tx: tx.delete(b"Bkey"),
            lambda tx: tx.add(b"Bkey", 1),
            lambda tx: tx.clear(b"A", b"C"),
        ):
            with pytest.raises(OutsideSpace):
                engine.transact(write, space=b"A")
        engine.transact(lambda tx: tx.clear(b"A", b"B"), space=b"A")

    def test_a_counter_keeps_to_64_bits_and_to_itself(self, engine: Engine) -> None:
        engine.transact(lambda tx: tx.add(b"n", MAX_COUNTER))
        engine.transact(lambda tx: tx.put(b"text", b"no counter"))

        with pytest.raises(NotACounter, match="64 bits"):
            engine.transact(lambda tx: tx.add(b"n", 1))
        with pytest.raises(NotACounter, match="10 bytes"):
            engine.transact(lambda tx: tx.add(b"text", 1))
        with engine.view() as view:
            assert read_counter(view.get(b"n")) == MAX_COUNTER

    @pytest.mark.parametrize("replace", REPLACEMENTS, ids=["put", "put_all", "delete", "clear"])
    def test_an_addition_that_can_not_be_made_fails_even_if_its_key_is_replaced_later(
        self, engine: Engine, replace: Callable[[Transaction, bytes], None]
    ) -> None:
        engine.transact(lambda tx: tx.put_all({b"full": pack_counter(MAX_COUNTER), b"text": b"1"}))

        for key in (b"full", b"text"):

            def add_and_replace(tx: Transaction, key: bytes = key) -> None:
                tx.add(key, 1)
                replace(tx, key)

            with pytest.raises(NotACounter):
                engine.transact(add_and_replace)
            with pytest.raises(NotACounter), engine.transaction() as tx:
                add_and_replace(tx)

        with engine.view() as view:
            assert view.get_many([b"full", b"text"]) == [pack_counter(MAX_COUNTER), b"1"]

    @pytest.mark.parametrize("replace", REPLACEMENTS, ids=["put", "put_all", "delete", "clear"])
    def test_an_addition_that_can_not_be_made_fails_even_if_the_next_transaction_replaces_its_key(
        self, engine: Engine, replace: Callable[[Transaction, bytes], None]
    ) -> None:
        engine.transact(lambda tx: tx.put(b"text", b"1"))

        outcomes = engine.transact_many(
            [lambda tx: tx.add(b"text", 1), lambda tx: replace(tx, b"text")]
        )

        assert [type(outcome.error) for outcome in outcomes] == [NotACounter, type(None)]
        with engine.view() as view:
            assert view.get(b"text") != b"1"

    def test_a_closed_engine_says_so_and_closes_twice(self, url: str) -> None:
        engine = open_engine(url)
        engine.close()
        engine.close()

        with pytest.raises(StoreClosed):
            engine.transact(lambda tx: None)
        with pytest.raises(StoreClosed), engine.view():
            pass

    def test_closing_waits_for_those_who_write(self, url: str) -> None:
        engine = open_engine(url)
        inside, go_on = threading.Event(), threading.Event()

        def work(tx: Transaction) -> None:
            inside.set()
            go_on.wait()
            tx.put(b"a", b"1")

        with ThreadPoolExecutor(2) as pool:
            writing = pool.submit(engine.transact, work)
            inside.wait()
            closing = pool.submit(engine.close)
            go_on.set()
            writing.result()
            closing.result()
        engine = open_engine(url)
        with engine.view() as view:
            assert view.get(b"a") == b"1"
        engine.close()

    # --- care -------------------------------------------------------------------------------------

    def test_what_was_committed_is_there_after_a_reopen(self, url: str) -> None:
        for number in range(3):
            engine = open_engine(url)
            assert engine.transact(_increment) == number + 1
            engine.close()

    def test_a_clock_that_fails_undoes_its_own_transaction_only(self, url: str) -> None:
        times = iter([1.0, 2.0])
        engine = open_engine(url, clock=lambda: next(times))
        engine.transact(_increment)
        with engine.transaction() as tx:
            _increment(tx)

        with pytest.raises(StopIteration):
            engine.transact(_increment)
        with pytest.raises(RuntimeError), engine.transaction():
            pass

        times = iter([3.0])
        assert engine.transact(_increment) == 3
        engine.close()

    def test_the_clock_is_read_once_for_each_transaction(self, url: str) -> None:
        ticks = iter(range(100))
        engine = open_engine(url, clock=lambda: float(next(ticks)))

        first, second = (engine.transact(lambda tx: (tx.now, tx.now)) for _ in range(2))

        assert first[0] == first[1] < second[0]
        engine.close()
