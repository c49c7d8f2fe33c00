"""Pops: order, locks, grace, retries, pause, concurrency, peek."""

import pytest

from holdfast.errors import BadArgument, WrongState
from holdfast.jobs import NewJob, pops
from holdfast.limits import JOBS_PER_STEP, MAX_JOBS_PER_CALL
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Events, Qless
from tests.jobs.popping import jids, put

# --- order --------------------------------------------------------------------------------------


def test_the_highest_priority_comes_first(qless: Qless) -> None:
    for priority in (-3, 10, 0, 2.5):
        put(qless, f"p{priority}", 0, "priority", priority)

    assert jids(qless("pop", 1, "queue", "worker", 10)) == ["p10", "p2.5", "p0", "p-3"]


def test_equal_priorities_leave_in_the_order_of_their_times(qless: Qless) -> None:
    for now in (3, 1, 2):
        put(qless, f"t{now}", now)

    assert jids(qless("peek", 4, "queue", 10)) == ["t1", "t2", "t3"]


def test_jobs_of_one_moment_leave_in_the_order_in_which_they_came(qless: Qless) -> None:
    names = ["m", "z", "a", "k", "b"]
    for name in names:
        put(qless, name)

    assert jids(qless("pop", 0, "queue", "worker", 2)) == names[:2]
    put(qless, "c")
    assert jids(qless("pop", 0, "queue", "worker", 9)) == [*names[2:], "c"]


def test_a_great_priority_does_not_blur_the_time(qless: Qless) -> None:
    put(qless, "second", 2, "priority", 10**12)
    put(qless, "first", 1, "priority", 10**12)

    assert jids(qless("pop", 3, "queue", "worker", 2)) == ["first", "second"]


def test_a_new_priority_brings_a_waiting_job_to_its_front(qless: Qless) -> None:
    put(qless, "old", 0, "priority", 5)
    put(qless, "urgent", 1)

    assert qless("priority", 2, "urgent", 5) == 5
    assert jids(qless("pop", 3, "queue", "worker", 2)) == ["urgent", "old"]


def test_a_job_that_was_timed_out_comes_before_everything(qless: Qless) -> None:
    put(qless, "low", 0, "priority", -5)
    qless("pop", 0, "queue", "worker", 1)
    put(qless, "high", 0, "priority", 100)

    qless("timeout", 1, "low")

    assert qless("get", 1, "low")["state"] == "stalled"
    assert jids(qless("pop", 2, "queue", "worker", 2)) == ["low", "high"]


def test_seed_and_later_clients_share_one_order(store: Store) -> None:
    store.jobs.v1.put("queue", "seed", "{}", 0, -5)
    store.jobs.put("queue", id="later", priority=4)
    store.jobs.put("queue", id="first", priority=6)

    assert [job.id for job in store.jobs.peek("queue", 3)] == ["first", "seed", "later"]


# --- pause and concurrency ----------------------------------------------------------------------


def test_a_paused_queue_gives_nothing_and_sees_no_worker(qless: Qless) -> None:
    put(qless, "jid")
    qless("pause", 0, "queue")

    assert qless("pop", 1, "queue", "worker", 1) == {}
    assert qless("workers", 1) == {}
    assert qless("queues", 1, "queue")["paused"] is True
    assert jids(qless("peek", 1, "queue", 1)) == ["jid"]

    qless("unpause", 2, "queue")
    assert jids(qless("pop", 2, "queue", "worker", 1)) == ["jid"]


def test_pausing_does_not_make_a_queue_known(qless: Qless) -> None:
    qless("pause", 0, "queue")

    assert qless("queues", 0) == {}
    with pytest.raises(BadArgument):
        qless("pause", 0)


def test_no_more_jobs_run_than_the_concurrency_allows(qless: Qless) -> None:
    qless("config.set", 0, "queue-max-concurrency", 3)
    for n in range(5):
        put(qless, f"j{n}", n)

    assert len(qless("pop", 5, "queue", "worker", 5)) == 3
    assert qless("pop", 6, "queue", "worker", 5) == {}
    qless("complete", 7, "j0", "worker", "queue", "{}")
    assert jids(qless("pop", 8, "queue", "worker", 5)) == ["j3"]


def test_jobs_whose_lock_has_ended_can_be_handed_over_in_a_full_queue(qless: Qless) -> None:
    qless("config.set", 0, "queue-max-concurrency", 1)
    qless("config.set", 0, "grace-period", 0)
    put(qless, "jid")
    qless("pop", 0, "queue", "one", 1)

    assert jids(qless("pop", 61, "queue", "two", 1)) == ["jid"]


@pytest.mark.every_engine
def test_a_large_concurrency_counts_the_same_locks_as_a_small_one(store: Store) -> None:
    limit = JOBS_PER_STEP + 10
    store.jobs.config_set("queue-max-concurrency", str(limit))
    store.jobs.config_set("grace-period", "0")
    store.jobs.put_many([NewJob(queue="queue") for _ in range(limit + 20)], now=0)

    store.jobs.pop("queue", "lost", 5, lock_seconds=10, now=1)
    ending = store.jobs.pop("queue", "ending", 5, lock_seconds=20, now=1)
    rest = store.jobs.pop("queue", "worker", limit, lock_seconds=60, now=1)
    at_the_end = store.jobs.pop("queue", "another", limit, lock_seconds=60, now=21)

    assert (len(ending), len(rest)) == (5, limit - 10)
    assert len(at_the_end) == 5  # a lock that ends at this moment still counts
    assert store.jobs.next_wake("queue") is not None


def test_lowering_the_concurrency_leaves_running_jobs_alone(qless: Qless) -> None:
    for n in range(4):
        put(qless, f"j{n}", n)
    qless("pop", 4, "queue", "worker", 3)
    qless("config.set", 5, "queue-max-concurrency", 1)

    assert qless("pop", 6, "queue", "worker", 1) == {}
    assert qless("complete", 7, "j0", "worker", "queue", "{}") == "complete"


# --- peek and schedule --------------------------------------------------------------------------


def test_peek_shows_jobs_in_the_order_of_pop_and_changes_nothing(qless: Qless) -> None:
    put(qless, "lost")
    qless("pop", 0, "queue", "one", 1)
    put(qless, "fresh", 1)

    shown = qless("peek", 60, "queue", 5)

    assert jids(shown) == ["lost", "fresh"]
    assert (shown[0]["worker"], shown[0]["remaining"]) == ("one", 5)
    assert qless("stats", 60, "queue", 60)["retries"] == 0


def test_a_scheduled_job_waits_for_its_time(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 10)

    assert qless("get", 0, "jid")["state"] == "scheduled"
    assert qless("pop", 9.9, "queue", "worker", 1) == {}
    assert qless("jobs", 9, "scheduled", "queue") == ["jid"]
    [job] = qless("pop", 10, "queue", "worker", 1)
    assert job["state"] == "running"


@pytest.mark.parametrize(
    "command", [("queues",), ("queues", "queue"), ("jobs", "scheduled", "queue")]
)
def test_looking_at_a_queue_starts_what_is_due(qless: Qless, command: tuple[str, ...]) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 10)

    qless(command[0], 10, *command[1:])

    assert qless("get", 10, "jid")["state"] == "waiting"


def test_a_great_many_due_jobs_start_in_steps_and_count_at_once(store: Store) -> None:
    total = JOBS_PER_STEP * 2 + 5
    store.jobs.put_many([NewJob(queue="queue", delay=5) for _ in range(total)], now=0)

    counts = store.jobs.counts("queue", now=5)

    assert (counts.waiting, counts.scheduled) == (total, 0)
    assert store.jobs.jobs("scheduled", "queue", now=5) == []
    assert len(store.jobs.pop("queue", "worker", total, now=5)) == total


@pytest.mark.parametrize("command", [("pop", 200, "queue", "worker", 1), ("peek", 200, "queue", 1)])
def test_nothing_starts_while_ended_locks_are_enough(
    qless: Qless, command: tuple[str | int, ...]
) -> None:
    qless("config.set", 0, "grace-period", 0)
    put(qless, "lost")
    qless("pop", 1, "queue", "worker", 1)
    qless("put", 2, "worker", "queue", "later", "klass", "{}", 10)
    qless("recur", 3, "queue", "often", "klass", "{}", "interval", 60, 0)

    assert jids(qless(*command)) == ["lost"]
    assert qless("get", 200, "later")["state"] == "scheduled"
    assert qless("get", 200, "often-1") is None

    assert jids(qless("pop", 200, "queue", "another", 10))[-2:] == ["often-4", "later"]


def test_an_urgent_due_job_is_not_overtaken(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "dull", "klass", "{}", 5)
    qless("put", 0, "worker", "queue", "urgent", "klass", "{}", 9, "priority", 9)

    assert jids(qless("pop", 10, "queue", "worker", 1)) == ["urgent"]


def test_nor_is_it_when_a_great_many_are_due(store: Store) -> None:
    total = JOBS_PER_STEP * 2 + 5
    store.jobs.put_many([NewJob(queue="queue", delay=5, id=f"{n:04}") for n in range(total)], now=0)
    store.jobs.put("queue", id="urgent", delay=8, priority=9, now=0)
    store.jobs.put("queue", id="raised", delay=9, now=0)
    store.jobs.priority("raised", 8)

    popped = [store.jobs.pop("queue", "worker", now=10)[0].id for _ in range(4)]
    rest = store.jobs.pop("queue", "worker", total, now=10)

    assert popped == ["urgent", "raised", "0000", "0001"]
    assert [job.id for job in rest] == [f"{n:04}" for n in range(2, total)]


def test_looking_through_the_store_moves_what_is_due_too(store: Store, clock: Clock) -> None:
    store.jobs.put("queue", id="jid", delay=10)
    assert store.jobs.counts("queue").scheduled == 1

    clock.advance(seconds=10)

    assert store.jobs.counts("queue").waiting == 1
    assert store.jobs.jobs("scheduled", "queue") == []
    assert [job.id for job in store.jobs.peek("queue")] == ["jid"]


# --- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "Queue(): no queue name provided"),
        (["queue"], 'Pop(): Arg "worker" missing'),
        (["queue", ""], 'Pop(): Arg "worker" missing'),
        (["queue", "w"], 'Pop(): Arg "count" missing or not a number: nil'),
        (["queue", "w", "x"], 'Pop(): Arg "count" missing or not a number: x'),
        (["queue", "w", "1.5"], 'Pop(): Arg "count" missing or not a number: 1.5'),
    ],
)
def test_malformed_pops_are_refused(qless: Qless, args: list[str], text: str) -> None:
    with pytest.raises(BadArgument) as refused:
        qless("pop", 0, *args)

    assert refused.value.message == text


def test_popping_none_gives_none_and_too_many_is_refused(store: Store) -> None:
    store.jobs.put("queue")

    assert store.jobs.pop("queue", "worker", 0) == []
    assert store.jobs.pop("queue", "worker", -1) == []
    with pytest.raises(BadArgument, match="at most"):
        store.jobs.pop("queue", "worker", MAX_JOBS_PER_CALL + 1)
    with pytest.raises(BadArgument, match="at most"):
        store.jobs.peek("queue", MAX_JOBS_PER_CALL + 1)


def test_a_thousand_jobs_are_popped_at_once(store: Store) -> None:
    store.jobs.put_many([NewJob(queue="queue", id=f"{n:04}") for n in range(1_000)])

    jobs = store.jobs.pop("queue", "worker", 1_000)

    assert [job.id for job in jobs] == [f"{n:04}" for n in range(1_000)]
    assert store.jobs.counts("queue").running == 1_000
    assert store.jobs.stats("queue").wait.count == 1_000


def test_nobody_hears_of_a_pop_unless_the_job_is_tracked(qless: Qless, events: Events) -> None:
    put(qless, "jid")
    put(qless, "tracked")
    qless("track", 0, "track", "tracked")
    events.new()

    qless("pop", 1, "queue", "worker", 2)

    assert events.new() == [("ql:popped", "tracked")]


def test_a_refused_operation_changes_nothing(store: Store) -> None:
    store.jobs.put("queue", id="jid")

    with pytest.raises(WrongState):
        store.jobs.complete("jid", "worker")

    job = store.jobs["jid"].get()
    assert [entry.what for entry in job.history] == ["put"]


# --- large data ---------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_a_pop_ends_early_where_the_data_of_the_jobs_would_be_too_much_for_one_answer(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pops, "MAX_POPPED_BYTES", 10_000)
    for number in range(5):
        store.jobs.put("queue", data="x" * 4_000, id=f"large{number}")
    store.jobs.put("queue", data="x" * 20_000, id="huge")

    taken = [[job.id for job in store.jobs.pop("queue", "one", 100)] for _ in range(5)]

    assert taken == [["large0", "large1"], ["large2", "large3"], ["large4"], ["huge"], []]


def test_jobs_of_a_lost_worker_come_in_several_pops_too(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pops, "MAX_POPPED_BYTES", 10_000)
    store.jobs.config_set("grace-period", 0)
    for number in range(3):
        store.jobs.put("queue", data="x" * 4_000, id=f"large{number}")
        store.jobs.pop("queue", "lost", lock_seconds=60)
    clock.advance(seconds=61)

    taken = [[job.id for job in store.jobs.pop("queue", "next", 100)] for _ in range(3)]

    assert taken == [["large0", "large1"], ["large2"], []]
