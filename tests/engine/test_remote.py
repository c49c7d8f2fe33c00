"""Shared parts of engines with remote state, on a backend in memory that can fail on demand."""

import signal
import threading
from collections.abc import Callable
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
from tests.engine.memory_engine import Undone, backend, engine, increment, open_memory, put_all
from tests.engine.model import END, short_keys

__all__ = ["backend", "engine"]


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
    monkeypatch.setattr("holdfast.engine.remote.group_runner.MAX_CONFLICT_RUNS", 4)
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


@pytest.mark.parametrize("size", [1, 2])
def test_what_a_signal_handler_raises_in_the_work_of_another_thread_is_not_its_outcome(
    engine: RemoteEngine, backend: MemoryBackend, size: int
) -> None:
    def strike(*_: object) -> None:
        raise TimeoutError

    def interrupted(tx: Transaction) -> None:
        tx.put(b"a", b"")
        signal.raise_signal(signal.SIGUSR1)

    published: list[Any] = []
    before = signal.signal(signal.SIGUSR1, strike)
    try:
        with pytest.raises(TimeoutError):
            engine._runner.run([interrupted] * size, b"", published.append)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert published == []
    assert backend.rows == {}


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


def test_a_row_that_a_list_names_is_fetched_together_with_the_list(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    producer = open_memory(backend)

    def append(name: bytes, *, with_row: bool = True) -> None:
        row = {b"row-" + name: b""} if with_row else {}
        producer.transact(lambda tx: tx.put_all({b"list-" + name: name, **row}))

    def take(tx: Transaction) -> bytes | None:
        for key, name in tx.scan(b"list-", b"list.", limit=1):
            tx.delete(key)
            return name if tx.get(b"row-" + name) is not None else None
        return b"the list is empty"

    def messages(name: bytes | None) -> int:
        backend.messages = 0
        assert engine.transact(take) == name
        return backend.messages

    append(b"name-one")
    assert messages(b"name-one") == 3  # the list, what it names, and the commit
    append(b"name-two")
    assert messages(b"name-two") == 2
    append(b"name-nowhere", with_row=False)
    assert messages(None) == 3
    append(b"name-four")
    assert messages(b"name-four") == 2


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
        patch.setattr("holdfast.engine.remote.read_cache.MAX_VIEW_CACHE_BYTES", kept_bytes)
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
        while len(engine._queues._queues[b""].group_commit.waiting) < 8:
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


def test_a_call_that_waited_in_vain_for_its_time_is_not_repeated(backend: MemoryBackend) -> None:
    engine = open_memory(backend, seconds=0.01)
    engine.transact(increment)
    never = threading.Event()

    def silent(message: str) -> str:
        never.wait(0.02)
        return "unreachable"

    backend.fault, before = silent, backend.messages
    with pytest.raises(StoreUnreachable):
        engine.stats()
    assert backend.messages == before + 1


def test_a_process_that_ends_does_not_wait_for_a_server_to_come_back(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.remote.reconnector.STOPPING_RECONNECT_SECONDS", 0.0)
    engine = open_memory(backend, seconds=3_600)
    backend.fault = lambda message: "unreachable"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.transact, increment)
        engine.shorten_waits()
        with pytest.raises(StoreUnreachable):
            waiting.result(timeout=30)
