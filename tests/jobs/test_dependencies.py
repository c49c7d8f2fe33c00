"""Dependencies: who waits for whom, and for how long."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from holdfast.compat.qless import batch_commands
from holdfast.errors import BadArgument, CircularDependency, JobNeeded, UnknownJob, WrongState
from holdfast.jobs import NewJob, Report, cancellation
from holdfast.limits import DEPENDENTS_RELEASED_AT_ONCE, JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless


def put(qless: Qless, jid: str, *depends: str, now: float = 0, delay: float = 0) -> None:
    options = ["depends", list(depends)] if depends else []
    qless("put", now, "worker", "queue", jid, "klass", "{}", delay, *options)


def finish(qless: Qless, jid: str, now: float = 1, *options: object) -> None:
    [popped] = qless("pop", now, "queue", "worker", 1)
    assert popped["jid"] == jid
    qless("complete", now, jid, "worker", "queue", "{}", *options)


def test_a_job_waits_until_its_dependency_is_complete(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a")
    assert qless("get", 0, "b")["state"] == "depends"
    assert qless("get", 0, "b")["dependencies"] == ["a"]
    assert qless("get", 0, "a")["dependents"] == ["b"]
    assert qless("jobs", 0, "depends", "queue") == ["b"]
    assert qless("queues", 0, "queue")["depends"] == 1
    assert qless("length", 0, "queue") == 1

    finish(qless, "a")

    job = qless("get", 1, "b")
    assert (job["state"], job["dependencies"]) == ("waiting", {})
    finish(qless, "b")


def test_dependencies_that_are_unknown_or_complete_count_as_met(qless: Qless) -> None:
    put(qless, "a")
    finish(qless, "a")

    put(qless, "b", "a", "nobody")

    job = qless("get", 1, "b")
    assert (job["state"], job["dependencies"]) == ("waiting", {})


def test_completing_with_next_releases_nobody(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a")

    finish(qless, "a", 1, "next", "queue")
    assert qless("get", 1, "b")["state"] == "depends"

    finish(qless, "a", 2)
    assert qless("get", 2, "b")["state"] == "waiting"


def test_a_failed_job_keeps_its_dependents_waiting(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a")
    qless("pop", 0, "queue", "worker", 1)
    qless("fail", 0, "a", "worker", "group", "message")

    assert qless("get", 0, "b")["state"] == "depends"


def test_dependents_and_dependencies_are_shown_in_ascending_order(qless: Qless) -> None:
    for jid in ("c", "a", "b"):
        put(qless, jid)
    for jid in ("z", "x", "y"):
        put(qless, jid, "c", "a", "b")

    assert qless("get", 0, "x")["dependencies"] == ["a", "b", "c"]
    assert qless("get", 0, "a")["dependents"] == ["x", "y", "z"]


def test_putting_again_keeps_or_replaces_the_dependencies(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b")
    put(qless, "c", "a")
    qless("put", 1, "worker", "queue", "c", "klass", "{}", 0, "depends", [])
    assert qless("get", 1, "c")["dependencies"] == ["a"]

    put(qless, "c", "b")

    assert qless("get", 1, "c")["dependencies"] == ["b"]
    assert qless("get", 1, "a")["dependents"] == {}


def test_a_delay_is_remembered_until_the_dependencies_are_met(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a", delay=100)
    finish(qless, "a", 10)

    assert qless("get", 10, "b")["state"] == "scheduled"
    assert qless("pop", 99, "queue", "worker", 1) == {}
    assert len(qless("pop", 100, "queue", "worker", 1)) == 1


def test_a_remembered_delay_is_forgotten_when_the_job_is_put_again(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a", delay=100)
    put(qless, "b")
    finish(qless, "a", 10)

    assert qless("get", 10, "b")["state"] == "waiting"


# --- on and off ---------------------------------------------------------------------------------


def test_dependencies_can_be_added_and_removed_while_a_job_waits(qless: Qless) -> None:
    for jid in ("a", "b", "c"):
        put(qless, jid)
    put(qless, "d", "a")

    assert qless("depends", 1, "d", "on", "b", "nobody", "b") == 1
    assert qless("get", 1, "d")["dependencies"] == ["a", "b"]
    assert qless("depends", 1, "d", "off", "a", "nobody") == 1
    assert qless("get", 1, "d")["state"] == "depends"
    assert qless("depends", 1, "d", "off", "b") == 1
    assert qless("get", 1, "d")["state"] == "waiting"


def test_all_dependencies_can_be_removed_at_once_and_the_delay_is_honoured(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a", delay=50)

    qless("depends", 1, "b", "off", "all")

    job = qless("get", 1, "b")
    assert (job["state"], job["dependencies"]) == ("scheduled", {})
    assert qless("get", 1, "a")["dependents"] == {}


@pytest.mark.parametrize("action", ["on", "off"])
def test_dependencies_change_only_in_the_depends_state(qless: Qless, action: str) -> None:
    put(qless, "a")

    with pytest.raises(WrongState) as refused:
        qless("depends", 1, "a", action, "b")
    assert refused.value.message == "Depends(): Job a not in the depends state: waiting"
    with pytest.raises(UnknownJob) as unknown:
        qless("depends", 1, "nobody", action, "b")
    assert unknown.value.message == "Depends(): Job nobody not in the depends state: false"


def test_depends_knows_on_and_off_only(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a")

    with pytest.raises(BadArgument, match='Argument "command" must be "on" or "off"'):
        qless("depends", 1, "b", "foo", "a")
    with pytest.raises(BadArgument, match=r'Depends\(\): Arg "command" missing'):
        qless("depends", 1, "b")
    with pytest.raises(BadArgument, match="no jid"):
        qless("depends", 1)


# --- circles ------------------------------------------------------------------------------------


def test_a_circle_is_refused_however_it_is_closed(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a")
    put(qless, "c", "b")

    with pytest.raises(CircularDependency) as refused:
        put(qless, "a", "c")
    assert refused.value.message == "Put(): Job a would depend on itself"
    with pytest.raises(CircularDependency, match=r"Depends\(\): Job b would depend on itself"):
        qless("depends", 1, "b", "on", "c")
    qless("pop", 1, "queue", "worker", 1)
    with pytest.raises(CircularDependency, match=r"Complete\(\): Job a would depend on itself"):
        qless("complete", 1, "a", "worker", "queue", "{}", "next", "queue", "depends", ["c"])
    assert qless("get", 1, "a")["state"] == "running"


# --- canceling ----------------------------------------------------------------------------------


def test_a_job_is_canceled_together_with_all_that_depend_on_it(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a")
    put(qless, "c", "b")

    with pytest.raises(JobNeeded) as refused:
        qless("cancel", 1, "a", "b")
    text = "Cancel(): b is a dependency of c but is not mentioned to be canceled"
    assert refused.value.message == text
    assert qless("get", 1, "a")["state"] == "waiting"

    assert qless("cancel", 1, "c", "a", "b") == ["c", "a", "b"]
    assert qless("multiget", 1, "a", "b", "c") == {}
    assert qless("queues", 1, "queue")["depends"] == 0


def test_a_canceled_job_is_forgotten_by_those_it_waited_for(qless: Qless) -> None:
    put(qless, "a")
    put(qless, "b", "a")

    qless("cancel", 1, "b")

    assert qless("get", 1, "a")["dependents"] == {}
    assert qless("cancel", 1, "a") == ["a"]


def test_a_great_many_jobs_are_canceled_in_steps(store: Store) -> None:
    ids = [f"j{n:05}" for n in range(JOBS_PER_STEP + 100)]
    for n, jid in enumerate(ids):
        store.jobs.put("queue", id=jid, depends=[ids[n - 100]] if n >= 100 else None)

    with pytest.raises(JobNeeded):
        store.jobs.cancel(*ids[:-1])
    assert store.jobs.cancel(*ids) == ids

    assert store.jobs.multiget(*ids) == []
    counts = store.jobs.counts("queue")
    assert (counts.waiting, counts.depends) == (0, 0)


def test_a_whole_queue_is_canceled_in_steps(store: Store) -> None:
    for n in range(JOBS_PER_STEP + 10):
        store.jobs.put("queue", id=f"j{n}", delay=n % 2)
    store.jobs.put("other", id="dependent", depends=["j0"])
    store.jobs.pop("queue", "worker", 3)

    assert store.jobs.cancel_queue("queue") == JOBS_PER_STEP + 11

    assert store.jobs.length("queue") == 0
    assert store.jobs.get("dependent") is None


# --- a great many dependents --------------------------------------------------------------------


def put_with_dependents(store: Store, count: int) -> list[str]:
    """Puts the job `root` and so many jobs that wait for it, takes `root`, and returns the ids of
    the others."""
    store.jobs.put("first", id="root")
    ids = [f"d{number:05}" for number in range(count)]
    new = [NewJob(queue="later", id=id, depends=("root",)) for id in ids]
    store.jobs.put_many(new)
    store.jobs.pop("first", "worker")
    return ids


def sweep_all(store: Store, clock: Clock) -> None:
    for _ in range(20):
        clock.advance(seconds=1)
        store.sweep()


def waiting(store: Store) -> int:
    return store.jobs.counts("later").waiting


MANY = DEPENDENTS_RELEASED_AT_ONCE + 3 * JOBS_PER_STEP


def test_a_great_many_dependents_are_released_in_steps(store: Store, clock: Clock) -> None:
    ids = put_with_dependents(store, MANY)

    store.jobs.complete("root", "worker")

    # The sweep that ends each write has made one step already.
    assert DEPENDENTS_RELEASED_AT_ONCE <= waiting(store) <= MANY - 2 * JOBS_PER_STEP
    left = store.jobs.get("root")
    assert left is not None
    assert left.dependents == tuple(ids[waiting(store) :])
    last = store.jobs.get(ids[-1])
    assert last is not None
    assert (last.state, last.dependencies) == ("depends", ("root",))
    assert store.check() == []

    sweep_all(store, clock)
    done = store.jobs.get("root")
    assert done is not None
    assert done.dependents == ()
    assert store.check() == []
    assert [job.id for job in store.jobs.pop("later", "worker", MANY)] == ids


def test_later_pops_of_a_library_release_the_rest(store: Store, clock: Clock) -> None:
    ids = put_with_dependents(store, MANY)
    store.jobs.complete("root", "worker")

    taken = []
    for _ in range(10):
        clock.advance(seconds=1)
        taken += [job.id for job in store.jobs.pop("later", "worker", JOBS_PER_STEP)]

    assert taken == ids


def test_one_call_that_completes_several_jobs_releases_no_more_at_once(
    store: Store, clock: Clock
) -> None:
    roots = [f"r{number}" for number in range(3)]
    for root in roots:
        store.jobs.put("first", id=root)
        store.jobs.put_many(
            [
                NewJob(queue="later", depends=(root,))
                for _ in range(DEPENDENTS_RELEASED_AT_ONCE - 100)
            ]
        )
    store.jobs.pop("first", "worker", 3)

    store.jobs.report([Report(id=root, worker="worker", what="complete") for root in roots])
    # Two releases were left for later, and the sweep of this write has made one step of each.
    assert waiting(store) <= DEPENDENTS_RELEASED_AT_ONCE + 2 * JOBS_PER_STEP

    sweep_all(store, clock)
    assert waiting(store) == 3 * (DEPENDENTS_RELEASED_AT_ONCE - 100)
    assert store.check() == []


def test_dependents_that_are_changed_before_their_release_stay_changed(
    store: Store, clock: Clock
) -> None:
    ids = put_with_dependents(store, MANY)
    store.jobs.put("first", id="other")
    store.jobs.complete("root", "worker")

    store.jobs.cancel(ids[-1])
    store.jobs.depends_off(ids[-2], "root")
    store.jobs.depends_on(ids[-3], "other")
    store.jobs.put("later", id="late", depends=("root",))  # it is complete, so nothing to wait for
    sweep_all(store, clock)

    states = {job.id: job.state for job in store.jobs.multiget(*ids[-3:], "late")}
    assert states == {ids[-2]: "waiting", ids[-3]: "depends", "late": "waiting"}
    assert waiting(store) == MANY - 1
    assert store.check() == []


def test_a_job_that_is_put_again_still_releases_those_that_waited_for_its_completion(
    store: Store, clock: Clock
) -> None:
    ids = put_with_dependents(store, MANY)
    store.jobs.complete("root", "worker")
    # In one transaction: the sweep that ends each write must find all of it.
    new = [NewJob(queue="later", id=f"n{number:05}", depends=("root",)) for number in range(300)]
    store.jobs.put_many([NewJob(queue="first", id="root"), *new])

    sweep_all(store, clock)
    assert waiting(store) == MANY
    job = store.jobs.get("root")
    assert job is not None
    assert job.dependents == tuple(each.id for each in new)
    assert store.check() == []

    store.jobs.pop("first", "worker")
    store.jobs.complete("root", "worker")
    assert waiting(store) == MANY + len(new)
    assert [job.id for job in store.jobs.pop("later", "worker", MANY)] == ids


def test_retention_keeps_a_job_until_all_that_waited_for_it_are_released(
    store: Store, clock: Clock
) -> None:
    store.jobs.config_set("jobs-history-count", 0)
    put_with_dependents(store, MANY)

    store.jobs.complete("root", "worker")
    assert store.jobs.jobs("complete") == ["root"]
    assert store.check() == []

    sweep_all(store, clock)
    assert (waiting(store), store.jobs.get("root")) == (MANY, None)
    assert store.check() == []


@pytest.fixture
def most_canceled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Returns how many jobs the largest transaction has canceled so far."""
    ledgers: list[Any] = []
    cancel = cancellation._cancel

    def counted(ledger: Any, *arguments: Any) -> None:
        ledgers.append(ledger)
        cancel(ledger, *arguments)

    monkeypatch.setattr(cancellation, "_cancel", counted)
    return lambda: max(Counter(map(id, ledgers)).values())


@pytest.mark.parametrize("shape", ["fan", "chain"])
@pytest.mark.parametrize("call", ["cancel", "cancel_queue", "batch_cancel"])
def test_a_job_is_canceled_in_steps_with_the_great_many_that_depend_on_it(
    store: Store, most_canceled: Callable[[], int], shape: str, call: str
) -> None:
    store.jobs.batch_open("batch")
    ids = [f"j{number:05}" for number in range(2 * JOBS_PER_STEP)]
    store.jobs.put("first", id=ids[0], batch="batch")
    for before, id in pairwise(ids):
        store.jobs.put("later", id=id, depends=[before if shape == "chain" else ids[0]])

    match call:
        case "cancel":
            store.jobs.cancel(*ids)
        case "cancel_queue":
            assert store.jobs.cancel_queue("first") == len(ids)
        case "batch_cancel":
            assert store.jobs.batch_cancel("batch") == len(ids)

    assert most_canceled() == JOBS_PER_STEP
    assert store.jobs.multiget(*ids) == []
    assert store.check() == []


def test_a_command_refuses_to_cancel_a_batch_that_too_many_jobs_depend_on(
    qless: Qless, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_commands, "MAX_JOBS_PER_CALL", 10)
    store.jobs.batch_open("batch")
    store.jobs.put("first", id="root", batch="batch")
    for _ in range(10):
        store.jobs.put("later", depends=["root"])

    with pytest.raises(BadArgument, match="more than 10 jobs"):
        qless("batch.cancel", 1, "batch")

    assert store.jobs.get("root") is not None
