"""Reads on remote engines: rows that lead to others are fetched together with these."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.contract import Guard, Reader, Transaction
from holdfast.engine.long_keys import LongKeys
from holdfast.engine.remote import RangeRead, RemoteEngine, Row
from holdfast.engine.remote.read_cache import ReadCache
from holdfast.errors import UnknownSpace
from tests.engine.memory_backend import MemoryBackend, MemorySession

KEYS = [b"a", b"b", b"c", b"d", b"e" * 40]
rows = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(KEYS), max_size=5)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def engine(backend: MemoryBackend) -> Iterator[RemoteEngine]:
    engine = RemoteEngine(backend, clock=lambda: 1.0, reconnect_seconds=30.0)
    yield engine
    engine.close()


class MovingSession(MemorySession):
    """Reads what is there now with each fetch, as a session in its turn may."""

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        self._rows = None
        return super().fetch(keys, pages)


def follow(reader: Reader) -> list[bytes]:
    """Walks from `a` to the row that it names, and so on; each step depends on the one before."""
    path = [b"a"]
    while (following := reader.get(path[-1])) is not None and len(path) < 5:
        path.append(following)
    return path


def test_a_key_that_a_later_scan_finds_changed_is_checked_as_it_was_read(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    engine.transact(lambda tx: tx.put(b"a", b"old"))
    old = backend.rows[b"a"].version
    seen = ReadCache(MovingSession(backend), b"", 1.0)

    assert seen.get(b"a") == b"old"
    engine.transact(lambda tx: tx.put(b"a", b"new"))
    assert list(seen.scan(b"a", b"b")) == [(b"a", b"new")]

    ranges = seen.read_ranges()
    assert [walked.versions for walked in ranges] == [[backend.rows[b"a"].version]]
    assert seen.read_keys(ranges) == {b"a": old}


def test_a_read_that_follows_known_rows_costs_one_round_trip(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def lead(tx: Transaction) -> None:
        tx.put(b"a", b"b")
        tx.put(b"b", b"c")
        tx.put(b"c", b"d")

    engine.transact(lead)
    counts = []
    for _ in range(4):
        backend.messages = 0
        assert engine.read(follow) == [b"a", b"b", b"c", b"d"]
        counts.append(backend.messages)
    assert counts == [4, 3, 2, 1]


def test_a_read_runs_once_if_its_guesses_were_right_and_twice_if_not(
    engine: RemoteEngine,
) -> None:
    runs: list[list[bytes]] = []

    def counted(reader: Reader) -> list[bytes]:
        path = [b"a"]
        runs.append(path)
        while (following := reader.get(path[-1])) is not None:
            path.append(following)
        return path

    engine.transact(lambda tx: tx.put(b"a", b"b"))
    for _ in range(2):
        engine.read(counted)
    runs.clear()

    assert engine.read(counted) == [b"a", b"b"]
    assert len(runs) == 1
    engine.transact(lambda tx: tx.put(b"a", b"c"))
    assert engine.read(counted) == [b"a", b"c"]
    assert runs[1:] == [[b"a", b"b"], [b"a", b"c"]]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_read_is_judged_by_what_it_was_told_and_not_by_what_others_learned_meanwhile(
    forgets: bool, engine: RemoteEngine
) -> None:
    """Reads of several threads share the rows that lead to others."""

    def change(number: bytes) -> None:
        engine.transact(lambda tx: tx.put_all({b"a": number, b"b": number}))

    def both(reader: Reader) -> tuple[bytes | None, bytes | None]:
        return reader.get(b"a"), reader.get(b"b")

    change(b"1")
    assert engine.read(both) == (b"1", b"1")  # from now on, `a` prefetch_hints to `b`
    change(b"2")
    overtakes = iter([True])

    def overtaken(reader: Reader) -> tuple[bytes | None, bytes | None]:
        first = reader.get(b"a")
        if next(overtakes, False):
            engine.read(both)  # another thread, which learns how `a` is now
            if forgets:
                engine._views.prefetch_hints.clear()
        return first, reader.get(b"b")

    assert engine.read(overtaken) == (b"2", b"2")


def test_a_scan_goes_on_with_what_was_fetched_for_it(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def name_range(tx: Transaction) -> None:
        tx.put(b"range", b"r")
        for number in range(5):
            tx.put(b"r%d" % number, b"%d" % number)

    def scanned(reader: Reader) -> list[bytes]:
        begin = reader.get(b"range") or b""
        forward = reader.scan(begin + b"0", begin + b"9")
        backward = reader.scan(begin + b"0", begin + b"9", limit=2, reverse=True)
        return [value for _, value in (*forward, *backward)]

    engine.transact(name_range)
    for _ in range(2):
        assert engine.read(scanned) == [b"0", b"1", b"2", b"3", b"4", b"4", b"3"]
    backend.messages = 0
    assert engine.read(scanned, kind="scan") == [b"0", b"1", b"2", b"3", b"4", b"4", b"3"]
    assert backend.messages == 1


def test_a_row_that_no_longer_leads_where_it_did_misleads_nobody(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    engine.transact(lambda tx: tx.put(b"a", b"b"))
    for _ in range(2):
        assert engine.read(follow) == [b"a", b"b"]
    engine.transact(lambda tx: tx.put(b"a", b"c"))

    assert engine.read(follow) == [b"a", b"c"]
    backend.messages = 0
    assert engine.read(follow) == [b"a", b"c"]
    assert backend.messages == 1


def test_a_read_that_fails_on_what_is_remembered_is_judged_by_what_is_true(
    engine: RemoteEngine,
) -> None:
    def read_number(reader: Reader) -> bytes | None:
        return reader.get(b"row %d" % int(reader.get(b"number") or b"0"))

    def fill(tx: Transaction) -> None:
        tx.put(b"number", b"no number")
        tx.put(b"row 7", b"seven")

    engine.transact(fill)
    engine.transact(lambda tx: tx.put(b"number", b"7"))
    for _ in range(2):
        assert engine.read(read_number) == b"seven"
    engine.transact(lambda tx: tx.put(b"number", b"no number"))
    with pytest.raises(ValueError, match="no number"):
        engine.read(read_number)
    engine.transact(lambda tx: tx.put(b"number", b"7"))
    assert engine.read(read_number) == b"seven"


def test_a_kind_of_read_that_needed_one_fetch_may_need_more_the_next_time(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    for _ in range(2):
        assert engine.read(follow, kind="follow") == [b"a"]
    engine.transact(lambda tx: tx.put(b"a", b"b"))

    assert engine.read(follow, kind="follow") == [b"a", b"b"]
    assert engine.read(follow, kind="follow") == [b"a", b"b"]
    backend.messages = 0
    assert engine.read(follow, kind="follow") == [b"a", b"b"]
    assert backend.messages == 1


def test_a_guard_refuses_a_read_before_its_result_is_believed(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def refuse(reader: Reader) -> None:
        raise UnknownSpace("dropped")

    guard = Guard(b"dropped", refuse)
    engine.transact(lambda tx: tx.put(b"a", b"b"))
    for _ in range(2):
        assert engine.read(follow, guard=guard) == [b"a", b"b"]
    backend.messages = 0
    engine.transact(lambda tx: tx.put(b"dropped", b""))
    with pytest.raises(UnknownSpace):
        engine.read(follow, guard=guard)
    assert backend.messages == 2


@settings(max_examples=150)
@given(
    st.lists(st.tuples(rows, st.booleans()), min_size=1, max_size=8),
    st.sampled_from([None, LongKeys(24)]),
)
def test_a_read_sees_one_moment_whatever_other_processes_have_changed(
    states: list[tuple[dict[bytes, bytes], bool]], rule: LongKeys | None
) -> None:
    backend = MemoryBackend(rule)
    here = RemoteEngine(backend, clock=lambda: 1.0, reconnect_seconds=30.0)
    there = RemoteEngine(backend, clock=lambda: 1.0, reconnect_seconds=30.0)

    def together(reader: Reader) -> tuple[list[bytes], list[bytes | None], list[bytes]]:
        path = follow(reader)
        return path, reader.get_many(path), [key for key, _ in reader.scan(path[-1], b"z")]

    for state, elsewhere in states:

        def fill(tx: Transaction, state: dict[bytes, bytes] = state) -> None:
            tx.clear(b"a", b"z")
            for pair in state.items():
                tx.put(*pair)

        (there if elsewhere else here).transact(fill)
        with here.view() as view:
            expected = together(view)
        assert here.read(together, kind="a") == here.read(together, kind="a") == expected
        assert here.read(together) == expected
    here.close()
    there.close()
