"""Shared parts of engines with remote state, on a backend in memory that can fail on demand."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.contract import Notice, Transaction, read_counter
from holdfast.engine.long_keys import LongKeys
from holdfast.engine.remote import RemoteEngine
from holdfast.errors import (
    Conflict,
    NotACounter,
    OutcomeUnknown,
    OutsideSpace,
    StoreClosed,
    StoreUnreachable,
)
from holdfast.limits import MAX_COUNTER, MAX_KEY_BYTES
from tests.engine.memory_backend import MemoryBackend
from tests.engine.model import END, apply, compare, keys, operation, short_keys, transactions

RULES = [None, LongKeys(511), LongKeys(24)]


class Undone(Exception):
    """Raised by a test in order to undo a transaction."""


def open_memory(backend: MemoryBackend, seconds: float = 30.0) -> RemoteEngine:
    return RemoteEngine(backend, clock=lambda: 1.0, reconnect_seconds=seconds)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def engine(backend: MemoryBackend) -> Iterator[RemoteEngine]:
    engine = open_memory(backend)
    yield engine
    engine.close()


def increment(tx: Transaction) -> int:
    number = int(tx.get(b"n") or b"0") + 1
    tx.put(b"n", b"%d" % number)
    return number


def put_all(keys: Sequence[bytes]) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        for key in keys:
            tx.put(key, b"")

    return work


def step(operations: Any, keep: bool, model: dict[bytes, bytes]) -> Any:
    def work(tx: Transaction) -> dict[bytes, bytes]:
        attempt = dict(model)
        for each in operations:
            apply(tx, attempt, each)
        if not keep:
            raise Undone
        return attempt

    return work


# --- a sorted map, whatever happens ---------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    history=transactions,
    begin=keys | short_keys,
    end=keys | short_keys,
    rule=st.sampled_from(RULES),
    reads=st.booleans(),
    faults=st.randoms(use_true_random=False),
)
def test_it_is_a_sorted_map_whatever_is_lost_on_the_way(
    history: Any, begin: bytes, end: bytes, rule: LongKeys | None, reads: bool,
    faults: random.Random,
) -> None:  # fmt: skip
    backend = MemoryBackend(rule)
    engine = open_memory(backend)
    engine._patience.stopped.wait = lambda timeout=None: False  # type: ignore[method-assign]  # no pauses
    backend.fault = lambda message: (
        "" if faults.random() < 0.7 else faults.choice(["unreachable", "lost before", "lost after"])
    )
    model: dict[bytes, bytes] = {}
    for operations, keep in history:
        work = step(operations, keep, model)

        def run(tx: Transaction, work: Any = work) -> dict[bytes, bytes]:
            attempt: dict[bytes, bytes] = work(tx)
            if reads:
                compare(tx, attempt, begin, end)
            return attempt

        try:
            model = engine.transact(run)
        except Undone:
            assert not keep
    backend.fault = lambda message: ""
    with engine.view() as view:
        compare(view, model, begin, end)
        compare(view, model, b"", END)
    engine.close()


@settings(max_examples=100, deadline=None)
@given(
    group=st.lists(st.tuples(st.lists(operation, max_size=5), st.booleans()), max_size=6),
    rule=st.sampled_from(RULES),
    read=st.lists(keys | short_keys, max_size=4),
)
def test_each_transaction_of_a_group_succeeds_or_fails_alone(
    group: Any, rule: LongKeys | None, read: list[bytes]
) -> None:
    engine = open_memory(MemoryBackend(rule))

    def work(operations: Any, keep: bool) -> Any:
        def run(tx: Transaction) -> None:
            for each in operations:
                apply(tx, {}, each)
                tx.get_many(read)
            if not keep:
                raise Undone

        return run

    outcomes = engine.transact_many([work(*each) for each in group])

    model: dict[bytes, bytes] = {}
    scratch = open_memory(MemoryBackend())
    with engine.view() as view:
        stored = dict(view.scan(b"", END))
    with scratch.transaction() as tx:
        for operations, keep in group:
            for each in operations if keep else ():
                apply(tx, model, each)
    assert stored == model
    for (_, keep), outcome in zip(group, outcomes, strict=True):
        assert isinstance(outcome.error, Undone) is not keep


@settings(max_examples=150, deadline=None)
@given(
    history=st.lists(
        st.tuples(st.integers(0, 1), st.lists(operation, max_size=4), st.booleans()), max_size=12
    ),
    begin=short_keys,
    end=short_keys,
    rule=st.sampled_from(RULES),
)
def test_engines_that_remember_what_others_have_changed_see_one_sorted_map(
    history: Any, begin: bytes, end: bytes, rule: LongKeys | None
) -> None:
    backend = MemoryBackend(rule)
    engines = [open_memory(backend), open_memory(backend)]
    model: dict[bytes, bytes] = {}
    for number, operations, keep in history:
        work = step(operations, keep, model)

        def run(tx: Transaction, work: Any = work) -> Any:
            before = [list(tx.scan(begin, end, limit=2)), list(tx.scan(begin, end, reverse=True))]
            return before, work(tx)

        inside = sorted(pair for pair in model.items() if begin <= pair[0] < end)
        try:
            before, model = engines[number].transact(run)
        except Undone:
            assert not keep
        else:
            assert before == [inside[:2], inside[::-1]]
    with engines[0].view() as view:
        compare(view, model, b"", END)


reading = st.one_of(
    st.tuples(st.just("get"), short_keys),
    st.tuples(st.just("get_many"), st.lists(short_keys, max_size=3)),
    st.tuples(
        st.just("scan"), short_keys, short_keys, st.none() | st.integers(0, 3), st.booleans()
    ),
)
small_operation = st.one_of(
    st.tuples(st.just("put"), short_keys, st.binary(max_size=3)),
    st.tuples(st.just("put_all"), st.dictionaries(short_keys, st.binary(max_size=3), max_size=2)),
    st.tuples(st.just("delete"), short_keys),
    st.tuples(st.just("clear"), short_keys, short_keys),
    st.tuples(st.just("add"), st.sampled_from([b"#1", b"#2"]), st.integers(-5, 5)),
)


def do(tx: Transaction, call: tuple[Any, ...]) -> Any:
    name, *arguments = call
    if name == "get":
        return tx.get(arguments[0])
    if name == "get_many":
        return tx.get_many(arguments[0])
    if name == "scan":
        begin, end, limit, reverse = arguments
        return list(tx.scan(begin, end, limit=limit, reverse=reverse))
    return apply(tx, {}, call)


@settings(max_examples=300, deadline=None)
@given(
    present=st.dictionaries(short_keys, st.binary(max_size=3), max_size=8),
    mine=st.lists(reading | small_operation, max_size=8),
    rivals=st.lists(st.lists(small_operation, max_size=2), max_size=2),
    rule=st.sampled_from(RULES),
)
def test_a_commit_is_refused_if_what_was_read_has_changed(
    present: Any, mine: Any, rivals: Any, rule: LongKeys | None
) -> None:
    """A transaction must have seen what it would see if it ran alone, at its commit."""
    backend = MemoryBackend(rule)
    engine, rival = open_memory(backend), open_memory(backend)
    with rival.transaction() as tx:
        for key, value in present.items():
            if not key.startswith(b"#"):
                tx.put(key, value)
    answers = []
    refused = False
    try:
        with engine.transaction() as tx:
            answers = [do(tx, call) for call in mine]
            for operations in rivals:
                rival.transact(step(operations, True, {}))
            after = MemoryBackend(rule)
            after.rows = dict(backend.rows)
    except Conflict:
        refused = True

    with open_memory(after).transaction() as alone:
        expected = [do(alone, call) for call in mine]
    writes = any(map(is_write, mine))
    if answers != expected:
        assert refused or not writes
    if writes and not refused:
        with open_memory(after).view() as wanted, engine.view() as stored:
            assert dict(stored.scan(b"", END)) == dict(wanted.scan(b"", END))


def is_write(call: Any) -> bool:
    """Whether it makes a transaction one that writes; to clear an empty range does not."""
    return call[0] in ("put", "delete", "add") or (call[0] == "clear" and call[1] < call[2])


# --- conflicts ------------------------------------------------------------------------------------


def test_a_transaction_that_was_overtaken_is_run_again(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    rival = open_memory(backend)
    overtakes = iter([True, True, False])

    def overtake(message: str) -> str:
        if message == "commit" and next(overtakes, False):
            backend.fault = lambda message: ""
            rival.transact(increment)
            backend.fault = overtake
        return ""

    assert engine.transact(increment) == 1
    backend.fault = overtake
    assert engine.transact(increment) == 4
    assert engine.stats()["conflicts"] == 2


def test_a_with_block_that_was_overtaken_says_so_and_has_written_nothing(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def overtaken() -> None:
        with engine.transaction() as tx:
            increment(tx)
            open_memory(backend).transact(increment)

    with pytest.raises(Conflict):
        overtaken()
    assert engine.transact(increment) == 2


def test_a_transaction_that_never_gets_through_ends_with_a_conflict(
    engine: RemoteEngine, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.remote.runs.MAX_CONFLICT_RUNS", 4)
    rival = open_memory(backend)

    def work(tx: Transaction) -> None:
        increment(tx)
        rival.transact(increment)

    with pytest.raises(Conflict, match="4 times in a row"):
        engine.transact(work)


def test_additions_never_conflict(engine: RemoteEngine, backend: MemoryBackend) -> None:
    rival = open_memory(backend)
    with engine.transaction() as tx:
        tx.add(b"n", 1)
        rival.transact(lambda tx: tx.add(b"n", 10))
        tx.add(b"n", 1)
    with engine.view() as view:
        assert read_counter(view.get(b"n")) == 12


def test_a_counter_that_was_read_can_conflict(engine: RemoteEngine, backend: MemoryBackend) -> None:
    rival = open_memory(backend)

    def overtaken() -> None:
        with engine.transaction() as tx:
            tx.add(b"n", 1)
            assert read_counter(tx.get(b"n")) == 1
            rival.transact(lambda tx: tx.add(b"n", 10))

    with pytest.raises(Conflict):
        overtaken()


def test_a_key_that_appears_in_a_range_that_was_read_is_a_conflict(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    rival = open_memory(backend)

    def overtaken(limit: int | None, appears: bytes) -> None:
        with engine.transaction() as tx:
            found = list(tx.scan(b"a", b"m", limit=limit))
            tx.put(b"z", b"%d" % len(found))
            rival.transact(lambda tx: tx.put(appears, b""))

    engine.transact(put_all((b"c", b"e", b"g")))
    with pytest.raises(Conflict):
        overtaken(None, b"f")
    with pytest.raises(Conflict):
        overtaken(1, b"b")
    overtaken(1, b"h")  # behind what a limit of 1 has walked
    overtaken(None, b"n")


def test_a_clear_reads_nothing_and_conflicts_with_nothing(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    messages = backend.messages
    with engine.transaction() as tx:
        tx.clear(b"a", b"m")
        open_memory(backend).transact(lambda tx: tx.put(b"b", b""))
    assert backend.messages - messages == 2
    assert backend.rows == {}


def test_what_can_not_be_added_to_fails_alone_and_keeps_nothing(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    engine.transact(lambda tx: tx.put(b"text", b"no counter"))
    engine.transact(lambda tx: tx.add(b"full", MAX_COUNTER))

    def bad(key: bytes) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            tx.put(b"half", b"")
            tx.add(key, 1)

        return work

    outcomes = engine.transact_many(
        [lambda tx: tx.add(b"good", 1), bad(b"text"), bad(b"full"), lambda tx: tx.add(b"good", 1)]
    )

    assert [type(outcome.error) for outcome in outcomes] == [
        type(None), NotACounter, NotACounter, type(None),
    ]  # fmt: skip
    with engine.view() as view:
        assert view.get(b"half") is None
        assert read_counter(view.get(b"good")) == 2


def test_a_transaction_that_writes_reads_in_its_own_space_only(engine: RemoteEngine) -> None:
    def work(tx: Transaction) -> None:
        tx.put(b"A1", tx.get(b"B1") or b"")

    with pytest.raises(OutsideSpace, match="has also read b'B1'"):
        engine.transact(work, space=b"A")


# --- round trips ----------------------------------------------------------------------------------


def test_reads_that_depend_on_nothing_share_one_round_trip(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def work(tx: Transaction) -> None:
        for number in range(10):
            tx.get(b"%d" % number)
            list(tx.scan(b"s%d" % number, b"t", limit=1))
        tx.put(b"a", b"1")

    open_memory(backend).transact(lambda tx: tx.put(b"3", b"here"))
    backend.messages = 0
    engine.transact(work)
    assert backend.messages == 2  # the first commit was refused, with all that it had guessed
    engine.transact(work)
    assert backend.messages == 3


def test_a_group_shares_its_round_trips(engine: RemoteEngine, backend: MemoryBackend) -> None:
    def work(number: int) -> Callable[[Transaction], None]:
        def run(tx: Transaction) -> None:
            if tx.get(b"%d" % number) is None:
                tx.put(b"%d" % number, b"")

        return run

    outcomes = engine.transact_many([work(number) for number in range(50)])

    assert all(outcome.error is None for outcome in outcomes)
    assert backend.messages == 1


def test_a_work_that_reads_on_and_on_when_it_finds_nothing_comes_to_an_end(
    engine: RemoteEngine,
) -> None:
    engine.transact(lambda tx: tx.put(b"%d" % 5_000, b"here"))

    def search(tx: Transaction) -> int:
        number = 0
        while tx.get(b"%d" % number) is None:
            number += 1
        return number

    assert engine.transact(search) == 5_000


def test_writing_without_reading_costs_one_round_trip_and_a_single_read_one(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def write(tx: Transaction) -> None:
        tx.put(b"a", b"1")
        tx.add(b"n", 1)
        tx.clear(b"x", b"y")

    engine.transact(write)
    assert backend.messages == 1
    with engine.view() as view:
        assert view.get(b"a") == b"1"
    assert backend.messages == 2


def test_a_scan_is_fetched_in_pages(engine: RemoteEngine, backend: MemoryBackend) -> None:
    engine.transact(put_all([b"%05d" % number for number in range(5_000)]))
    backend.messages = 0
    with engine.view() as view:
        assert sum(1 for _ in view.scan(b"", END)) == 5_000
        assert 2 <= backend.messages <= 8
        messages = backend.messages
        assert sum(1 for _ in view.scan(b"", END, reverse=True)) == 5_000
        assert backend.messages == messages


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(short_keys, st.binary(max_size=8), max_size=300),
    st.lists(st.tuples(short_keys, short_keys, st.booleans()), min_size=1, max_size=4),
    st.lists(short_keys, max_size=20),
    st.integers(0, 200),
)
def test_a_view_that_forgets_what_it_has_read_reads_the_same_again(
    stored: dict[bytes, bytes],
    scans: list[tuple[bytes, bytes, bool]],
    wanted: list[bytes],
    kept_bytes: int,
) -> None:
    engine = open_memory(MemoryBackend())

    def fill(tx: Transaction) -> None:
        for pair in stored.items():
            tx.put(*pair)

    engine.transact(fill)
    with pytest.MonkeyPatch.context() as patch, engine.view() as view:
        patch.setattr("holdfast.engine.remote.read_cache.MAX_SEEN_IN_VIEW_BYTES", kept_bytes)
        # In turn, so that one forgets what the others are in the middle of.
        open_scans = [view.scan(low, high, reverse=back) for low, high, back in scans]
        found: list[list[tuple[bytes, bytes]]] = [[] for _ in scans]
        for step in zip_longest(*open_scans):
            for pairs, pair in zip(found, step, strict=True):
                pairs += [] if pair is None else [pair]
            assert view.get_many(wanted) == [stored.get(key) for key in wanted]

        for (low, high, back), pairs in zip(scans, found, strict=True):
            inside = sorted(pair for pair in stored.items() if low <= pair[0] < high)
            assert pairs == (inside[::-1] if back else inside)
    engine.close()


# --- what is lost ---------------------------------------------------------------------------------


def test_a_commit_whose_reply_is_lost_is_made_once(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    faults = iter(["", "lost after", "", "", "lost before", "", "", ""])
    backend.fault = lambda message: next(faults, "")

    assert [engine.transact(increment), engine.transact(increment)] == [1, 2]
    assert backend.commits == 2


def test_a_commit_that_can_not_be_asked_about_in_time_is_said_to_be_unknown(
    backend: MemoryBackend,
) -> None:
    engine = open_memory(backend, seconds=0.0)
    backend.fault = lambda message: "lost after" if message == "commit" else "unreachable"

    with pytest.raises(OutcomeUnknown):
        engine.transact(lambda tx: tx.put(b"a", b""))


def test_a_server_that_stays_away_is_an_error_in_the_end(backend: MemoryBackend) -> None:
    engine = open_memory(backend, seconds=0.0)
    backend.fault = lambda message: "unreachable"

    with pytest.raises(StoreUnreachable, match="memory:"):
        engine.transact(increment)
    with pytest.raises(StoreUnreachable), engine.view() as view:
        view.get(b"a")


def test_a_view_that_loses_its_server_in_the_middle_says_so(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    with engine.view() as view:
        view.get(b"a")
        backend.fault = lambda message: "unreachable"
        with pytest.raises(StoreUnreachable):
            view.get(b"b")


# --- lines ----------------------------------------------------------------------------------------


def test_transactions_that_wait_for_a_space_are_committed_as_a_group(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        inside.set()
        go_on.wait()

    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(engine.transact, hold)
        inside.wait()
        others = [pool.submit(engine.transact, increment) for _ in range(8)]
        while len(engine._lines._lines[b""].group_commit._waiting) < 8:
            pass
        go_on.set()
        first.result()
        assert sorted(other.result() for other in others) == list(range(1, 9))
    assert backend.commits == 1


def test_another_space_does_not_wait(engine: RemoteEngine) -> None:
    with ThreadPoolExecutor(1) as pool, engine.transaction(space=b"A") as tx:
        tx.put(b"A1", b"")
        pool.submit(engine.transact, lambda tx: tx.put(b"B1", b""), space=b"B").result(30)
    with engine.view() as view:
        assert [key for key, _ in view.scan(b"", END)] == [b"A1", b"B1"]


def test_a_transaction_inside_another_is_refused_in_any_space(engine: RemoteEngine) -> None:
    with pytest.raises(RuntimeError, match="inside another"):
        engine.transact(lambda tx: engine.transact(lambda inner: None, space=b"B"), space=b"A")
    with pytest.raises(RuntimeError, match="inside one of its transactions"):
        engine.transact(lambda tx: engine.close())


def test_transactions_of_several_spaces_keep_their_order_within_each(engine: RemoteEngine) -> None:
    def append(letter: bytes) -> Callable[[Transaction], bytes]:
        def work(tx: Transaction) -> bytes:
            key = tx.space + b"k"
            tx.put(key, (tx.get(key) or b"") + letter)
            return tx.get(key) or b""

        return work

    outcomes = engine.transact_many(
        [append(b"1"), append(b"2"), append(b"3"), append(b"4"), append(b"5")],
        spaces=[b"A", b"B", b"A", b"", b"B"],
    )

    assert [outcome.unwrap() for outcome in outcomes] == [b"1", b"2", b"13", b"4", b"25"]


# --- notices and closing --------------------------------------------------------------------------


def test_notices_come_with_the_commit_and_not_without_it(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def fails(tx: Transaction) -> None:
        tx.after_commit(Notice("no"))
        raise Undone

    with engine.subscribe() as subscription:
        with pytest.raises(Undone):
            engine.transact(fails)
        engine.transact(lambda tx: tx.after_commit(Notice("yes", b"", b"ignored")), space=b"A")

        assert subscription.poll() == [Notice("yes", b"", b"A")]


def test_a_closed_engine_says_so(backend: MemoryBackend) -> None:
    engine = open_memory(backend)
    with engine.view() as view:
        engine.close()
        with pytest.raises(StoreClosed):
            view.get(b"a")
    with pytest.raises(StoreClosed):
        engine.transact(increment)
    engine.close()


def test_keys_up_to_the_limit_can_be_cleared_in_part() -> None:
    backend = MemoryBackend(LongKeys(511))
    engine = open_memory(backend)
    long = [b"k" * 600 + b"%d" % number for number in range(5)] + [b"k" * MAX_KEY_BYTES]
    engine.transact(put_all(long))

    engine.transact(lambda tx: tx.clear(long[1], long[3]))

    with engine.view() as view:
        assert [key for key, _ in view.scan(b"", END)] == [long[0], long[3], long[4], long[5]]
