"""Expiry: what is due is removed exactly on time, in bounded steps, and nobody is held up."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import expiry
from holdfast.engine.contract import Engine, Reader, Transaction
from holdfast.errors import (
    BadInput,
    Conflict,
    HoldfastError,
    RemovalFailed,
    StoreFull,
    UnknownSpace,
)
from holdfast.expiry import Due, Remover, cancel, due, is_expired, mark_dropped, schedule, to_ms
from holdfast.keys import pack, prefix_range
from holdfast.limits import (
    EXPIRED_PER_WRITE,
    EXPIRY_RETRY_MS,
    FAILED_REMOVAL_RETRY_MS,
    MAX_FAILURE_CHARACTERS,
    UNKNOWN_EXPIRY_RETRY_MS,
    WORK_STEPS_PER_SWEEP,
)
from holdfast.testing import Clock

T = TypeVar("T")
SPACE = pack(7)


class Space:
    """One space of an engine, with a remover that remembers what it was called with."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock
        self.removed: list[bytes] = []
        self.stubborn: set[bytes] = set()

    def transact(self, work: Callable[[Transaction], T]) -> T:
        return self.engine.transact(work, space=SPACE)

    def schedule(self, seconds: float, subject: bytes, kind: str = "thing") -> int:
        at = self.clock() + seconds
        return self.transact(lambda tx: schedule(tx, at, kind, subject))

    def begin_work(self, subject: bytes) -> None:
        self.transact(lambda tx: expiry.begin_work(tx, "thing", subject))

    def due_next(self) -> float | None:
        return self.read(expiry.next_due)

    def sweep(self, *, limit: int = EXPIRED_PER_WRITE) -> int:
        removers: dict[str, Remover] = {"thing": self.remove}
        before = self.removed

        def work(tx: Transaction) -> int:
            self.removed = list(before)  # work may run more than once
            return expiry.sweep(tx, removers, limit=limit)

        return self.transact(work)

    def remove(self, tx: Transaction, subject: bytes) -> bool:
        self.removed.append(subject)
        return subject not in self.stubborn

    def read(self, work: Callable[[Reader], T]) -> T:
        with self.engine.view(space=SPACE) as view:
            return work(view)

    def entries(self) -> int:
        return self.read(lambda view: len(list(view.scan(*prefix_range(SPACE + pack(0))))))


@pytest.fixture
def space(engine: Engine, clock: Clock) -> Space:
    return Space(engine, clock)


# --- time -------------------------------------------------------------------------------------


@given(ms=st.integers(-(10**14), 10**14))
def test_whole_milliseconds_survive_the_way_through_seconds(ms: int) -> None:
    assert to_ms(ms / 1_000) == ms


@given(ms=st.integers(0, 10**13), ttl_ms=st.integers(1, 10**10))
def test_a_thing_expires_in_the_very_millisecond(ms: int, ttl_ms: int) -> None:
    expires_ms = to_ms(ms / 1_000 + ttl_ms / 1_000)

    assert not is_expired(expires_ms, now=(ms + ttl_ms - 1) / 1_000)
    assert is_expired(expires_ms, now=(ms + ttl_ms) / 1_000)


@pytest.mark.parametrize("seconds", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(BadInput, match="is not a time"):
        to_ms(seconds)


# --- schedule, cancel, due --------------------------------------------------------------------


def test_an_entry_is_one_key_that_sorts_by_its_time(space: Space) -> None:
    due_ms = space.schedule(60, b"a\0b")

    [(key, value)] = space.read(lambda view: list(view.scan(*prefix_range(SPACE))))
    assert (key, value) == (SPACE + pack(0, due_ms, "thing", b"a\0b"), b"")
    assert due_ms == to_ms(space.clock()) + 60_000


def test_what_is_due_comes_longest_due_first(space: Space) -> None:
    last_ms = space.schedule(3, b"last")
    first_ms = space.schedule(1, b"first")
    space.schedule(3.001, b"later")

    space.clock.advance(seconds=3)

    assert space.read(lambda view: due(view, 10)) == [
        Due(due_ms=first_ms, kind="thing", subject=b"first"),
        Due(due_ms=last_ms, kind="thing", subject=b"last"),
    ]
    assert [entry.subject for entry in space.read(lambda view: due(view, 1))] == [b"first"]


def test_what_was_cancelled_is_never_due(space: Space) -> None:
    space.schedule(1, b"a")
    space.schedule(1, b"b")
    at = space.clock() + 1

    space.transact(lambda tx: cancel(tx, at, "thing", b"a"))
    space.transact(lambda tx: cancel(tx, at, "thing", b"never there"))
    space.clock.advance(seconds=1)
    space.sweep()

    assert space.removed == [b"b"]


def test_spaces_do_not_see_each_other(space: Space) -> None:
    at = space.clock() - 1
    space.engine.transact(lambda tx: schedule(tx, at, "thing", b"other"), space=pack(8))
    space.engine.transact(lambda tx: schedule(tx, at, "thing", b"other"), space=pack(6))

    assert space.sweep() == 0


# --- sweep ------------------------------------------------------------------------------------


def test_a_sweep_removes_in_the_very_millisecond_and_not_before(space: Space) -> None:
    space.schedule(1.5, b"a")

    space.clock.advance(seconds=1.499)
    assert space.sweep() == 0

    space.clock.advance(seconds=0.001)
    assert space.sweep() == 1
    assert (space.removed, space.entries()) == ([b"a"], 0)


def test_a_sweep_is_bounded_and_the_next_one_goes_on(space: Space) -> None:
    for number in range(20):
        space.schedule(number / 1_000, b"%02d" % number)
    space.clock.advance(seconds=1)

    dealt_with = [space.sweep(limit=8) for _ in range(4)]

    assert dealt_with == [8, 8, 4, 0]
    assert space.removed == [b"%02d" % number for number in range(20)]


def test_a_removal_in_steps_is_called_until_it_is_done(space: Space) -> None:
    space.stubborn = {b"large"}
    space.schedule(0, b"large")

    for _ in range(3):
        space.sweep()
        space.clock.advance(seconds=EXPIRY_RETRY_MS / 1_000)
    space.stubborn = set()
    space.sweep()

    assert (space.removed, space.entries()) == ([b"large"] * 4, 0)


def test_stubborn_entries_do_not_starve_those_behind_them(space: Space) -> None:
    space.stubborn = {b"stubborn %d" % number for number in range(20)}
    for subject in sorted(space.stubborn):
        space.schedule(0, subject)
    space.schedule(0.001, b"willing")
    space.clock.advance(seconds=1)

    dealt_with = [space.sweep(limit=4) for _ in range(7)]

    assert dealt_with == [4, 4, 4, 4, 4, 1, 0]
    assert space.removed == [*sorted(space.stubborn), b"willing"]
    assert space.entries() == 20


YEARS = 10 * 365 * 86_400.0


def test_work_that_a_clock_ahead_has_begun_or_continued_goes_on(space: Space) -> None:
    space.stubborn = {b"begun", b"continued"}
    space.begin_work(b"continued")
    space.clock.advance(seconds=YEARS)
    space.begin_work(b"begun")
    space.sweep()
    space.clock.advance(seconds=-YEARS)
    space.removed.clear()

    space.sweep()
    space.stubborn = set()
    space.clock.advance(seconds=EXPIRY_RETRY_MS / 1_000)
    assert space.due_next() == space.clock()
    space.sweep()

    assert space.removed == [b"begun", b"continued"] * 2
    assert space.entries() == 0


def test_a_step_of_work_waits_for_its_time_and_does_not_hide_what_is_due(space: Space) -> None:
    space.stubborn = {b"work %d" % number for number in range(8)}
    for subject in sorted(space.stubborn):
        space.begin_work(subject)
    space.schedule(0.001, b"thing")
    assert space.sweep(limit=8) == 8
    space.clock.advance(seconds=0.001)
    space.removed.clear()

    assert (space.sweep(limit=8), space.sweep(limit=8)) == (1, 0)
    assert space.removed == [b"thing"]
    space.clock.advance(seconds=EXPIRY_RETRY_MS / 1_000)
    assert space.sweep(limit=8) == 8


def test_a_sweep_takes_a_few_steps_of_work_and_everything_else(space: Space) -> None:
    for number in range(WORK_STEPS_PER_SWEEP + 5):
        space.begin_work(b"work %02d" % number)
    for number in range(20):
        space.schedule(0, b"thing %02d" % number)

    assert space.sweep(limit=100) == WORK_STEPS_PER_SWEEP + 20
    assert space.sweep(limit=100) == 5
    assert len(space.removed) == len(set(space.removed)) == WORK_STEPS_PER_SWEEP + 25
    assert space.sweep(limit=100) == 0


def test_where_entries_are_stored_is_a_promise(space: Space) -> None:
    """A step of work is stored 2^50 ms before its time; older versions take it for overdue."""
    due_ms = space.schedule(0, b"thing")
    space.begin_work(b"work")

    assert space.read(lambda view: [key for key, _ in view.scan(*prefix_range(SPACE))]) == [
        SPACE + pack(0, due_ms - 2**50, "thing", b"work"),
        SPACE + pack(0, due_ms, "thing", b"thing"),
    ]


def test_an_unknown_kind_is_kept_for_who_knows_it_and_blocks_nobody(space: Space) -> None:
    for number in range(10):
        space.schedule(0, b"%d" % number, kind="future")
    space.schedule(0.001, b"known")
    space.clock.advance(seconds=1)

    with space.engine.subscribe(topic_prefix="expiry.", space=SPACE) as subscription:
        while space.sweep(limit=3):
            pass
        notices = subscription.poll()

    assert space.removed == [b"known"]
    assert space.entries() == 10
    assert {(notice.topic, notice.payload) for notice in notices} == {
        (expiry.UNKNOWN_KIND_TOPIC, b"future")
    }


def test_an_unknown_kind_is_removed_by_the_first_process_that_knows_it(space: Space) -> None:
    space.schedule(0, b"a", kind="future")
    space.sweep()

    space.clock.advance(seconds=UNKNOWN_EXPIRY_RETRY_MS / 1_000)
    space.transact(lambda tx: expiry.sweep(tx, {"future": space.remove}))

    assert (space.removed, space.entries()) == ([b"a"], 0)


def test_a_remover_may_schedule_its_subject_again_at_the_same_time(space: Space) -> None:
    due_ms = space.schedule(0, b"a")

    def remove(tx: Transaction, subject: bytes) -> bool:
        schedule(tx, due_ms / 1_000, "thing", subject)
        return True

    space.transact(lambda tx: expiry.sweep(tx, {"thing": remove}))

    assert [entry.due_ms for entry in space.read(lambda view: due(view, 10))] == [due_ms]


def test_what_a_remover_schedules_for_now_is_swept_the_next_time(space: Space) -> None:
    space.schedule(0, b"a")
    calls: list[bytes] = []

    def remove(tx: Transaction, subject: bytes) -> bool:
        calls.append(subject)
        if subject == b"a":
            schedule(tx, tx.now, "thing", b"b")
        return True

    dealt_with = [space.transact(lambda tx: expiry.sweep(tx, {"thing": remove})) for _ in range(3)]

    assert (dealt_with, calls) == ([1, 1, 0], [b"a", b"b"])


def test_a_remover_that_fails_undoes_its_transaction(space: Space) -> None:
    space.schedule(0, b"a")

    def remove(tx: Transaction, subject: bytes) -> bool:
        tx.put(SPACE + b"half", b"")
        raise RuntimeError("broken")

    with pytest.raises(RemovalFailed) as failure:
        space.transact(lambda tx: expiry.sweep(tx, {"thing": remove}))

    assert isinstance(failure.value.__cause__, RuntimeError)
    assert space.read(lambda view: view.get(SPACE + b"half")) is None
    assert space.read(lambda view: due(view, 10)) == [failure.value.entry]


def fail_to_remove(space: Space, subject: bytes) -> RemovalFailed:
    def remove(tx: Transaction, subject: bytes) -> bool:
        raise ValueError("damaged" * 1_000)

    space.schedule(0, subject)
    with pytest.raises(RemovalFailed) as failure:
        space.transact(lambda tx: expiry.sweep(tx, {"thing": remove}))
    return failure.value


def test_a_removal_that_failed_waits_while_the_others_are_dealt_with(space: Space) -> None:
    failure = fail_to_remove(space, b"damaged")
    space.schedule(0, b"sound")

    with space.engine.subscribe(topic_prefix=expiry.REMOVAL_FAILED_TOPIC) as subscription:
        space.transact(lambda tx: expiry.postpone_failed(tx, failure))
        [notice] = subscription.poll()

    content = msgspec.json.decode(notice.payload)
    assert content["kind"] == "thing"
    assert content["error"].startswith("ValueError('damageddamaged")
    assert len(content["error"]) == MAX_FAILURE_CHARACTERS
    assert (space.sweep(), space.removed) == (1, [b"sound"])

    space.clock.advance(seconds=FAILED_REMOVAL_RETRY_MS / 1_000)
    assert (space.sweep(), space.removed) == (1, [b"sound", b"damaged"])


def test_a_failed_removal_that_another_process_has_done_is_not_scheduled_again(
    space: Space,
) -> None:
    failure = fail_to_remove(space, b"damaged")
    space.sweep()

    space.transact(lambda tx: expiry.postpone_failed(tx, failure))

    assert space.entries() == 0


@pytest.mark.parametrize("error", [Conflict, StoreFull, UnknownSpace])
def test_an_error_about_the_whole_transaction_is_not_blamed_on_an_entry(
    space: Space, error: type[HoldfastError]
) -> None:
    def remove(tx: Transaction, subject: bytes) -> bool:
        raise error

    space.schedule(0, b"a")

    with pytest.raises(error):
        space.transact(lambda tx: expiry.sweep(tx, {"thing": remove}))


class Counting:
    """A transaction that counts the keys that are scanned in it."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.space, self.now = tx.space, tx.now
        self.scans = self.keys = 0

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> object:
        self.scans += 1
        for pair in self._tx.scan(begin, end, limit=limit, reverse=reverse):
            self.keys += 1
            yield pair


def test_an_idle_sweep_costs_one_scan_of_no_key(space: Space) -> None:
    for number in range(100):
        space.schedule(1, b"%d" % number)

    def idle(tx: Transaction) -> tuple[int, int, int]:
        counting = Counting(tx)
        return expiry.sweep(counting, {}), counting.scans, counting.keys  # type: ignore[arg-type]  # all that an idle sweep may use

    assert space.transact(idle) == (0, 1, 0)


# --- dropped spaces ---------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [0, 10])
def test_a_sweep_of_a_dropped_space_says_that_it_is_gone(space: Space, entries: int) -> None:
    for number in range(entries):
        space.schedule(-1_000_000_000_000, b"%d" % number)  # due long before there were clocks
    space.transact(mark_dropped)

    with pytest.raises(UnknownSpace, match="dropped"):
        space.sweep()

    assert space.removed == []
    assert len(space.read(lambda view: due(view, 100))) == entries


def test_the_marker_of_a_dropped_space_is_its_first_key(space: Space) -> None:
    space.schedule(-(10**12), b"a")
    space.transact(mark_dropped)

    keys = space.read(lambda view: [key for key, _ in view.scan(*prefix_range(SPACE))])

    with pytest.raises(UnknownSpace, match="dropped"):
        space.read(expiry.refuse_dropped)
    assert keys[0] == expiry.dropped_key(SPACE) == SPACE + pack(0, None)
