"""Steps and signals: what a workflow remembers and what it is told."""

import pytest

from holdfast.errors import BadArgument, JobLost, UnknownJob, WrongState
from holdfast.jobs import Job, NewJob, Report, Step, Take
from holdfast.limits import MAX_JOB_SIGNALS, MAX_STEP_RESULT_BYTES, MAX_STEPS
from holdfast.store import Store, Tx
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


@pytest.fixture
def job(store: Store) -> Job:
    store.jobs.put("q", "flow", id="a")
    return store.jobs.pop("q", "w")[0]


def report(store: Store, job: Job, what: str, **more: object) -> None:
    told = Report(id=job.id, worker="w", what=what, lock=job.lock, **more)  # type: ignore[arg-type]  # tests give what they like
    store.jobs.report([told], all_or_none=True)


def state(store: Store, id: str = "a") -> str:
    found = store.jobs.get(id)
    return "gone" if found is None else found.state


def test_a_step_is_remembered_with_its_result(store: Store, job: Job) -> None:
    steps = [Step(number=number, name=f"s{number}", result={"n": number}) for number in range(12)]

    for step in steps:
        report(store, job, "remember", steps=(step,))

    assert store.jobs.steps("a") == steps
    assert store.jobs.steps("a", after=9) == steps[10:]
    assert [step.number for step in store.jobs.steps("a", after=3, count=2)] == [4, 5]
    assert state(store) == "running"


def test_a_worker_that_lost_the_job_remembers_nothing(store: Store, job: Job) -> None:
    store.jobs.timeout("a")
    store.jobs.pop("q", "other")

    with pytest.raises(JobLost):
        report(store, job, "remember", steps=(Step(number=0, name="s"),))

    assert store.jobs.steps("a") == []


def test_steps_stay_when_the_job_fails_and_comes_back(store: Store, job: Job) -> None:
    report(store, job, "fail", group="g", message="m", steps=(Step(number=0, name="s"),))

    store.jobs.requeue("q", "a")

    assert len(store.jobs.steps("a")) == 1


def test_steps_and_signals_go_with_their_job(store: Store, job: Job) -> None:
    report(store, job, "remember", steps=(Step(number=0, name="s"),))
    store.jobs.signal("a", "go")

    store.jobs.cancel("a")

    assert (store.jobs.steps("a"), store.jobs.signals("a")) == ([], [])


def test_other_data_is_another_workflow(store: Store, job: Job) -> None:
    report(store, job, "complete", steps=(Step(number=0, name="s"),))

    store.jobs.put("q", "flow", {"new": True}, id="a")

    assert store.jobs.steps("a") == []


def test_steps_have_bounds(store: Store, job: Job) -> None:
    with pytest.raises(BadArgument, match="at most"):
        report(store, job, "remember", steps=(Step(number=MAX_STEPS, name="s"),))
    large = "x" * MAX_STEP_RESULT_BYTES
    with pytest.raises(BadArgument, match="at most"):
        report(store, job, "remember", steps=(Step(number=0, name="s", result=large),))


def test_a_signal_wakes_the_job_that_waits_for_it(store: Store, job: Job) -> None:
    report(store, job, "retry", free=True, delay=1000, awaits="approved")
    assert state(store) == "scheduled"

    store.jobs.signal("a", "other")
    assert state(store) == "scheduled"
    store.jobs.signal("a", "approved", {"by": "ann"})

    assert state(store) == "waiting"
    [other] = [each for each in store.jobs.signals("a") if each.name == "approved"]
    assert other.value == {"by": "ann"}


def test_a_signal_that_came_first_lets_the_job_wait_no_longer(store: Store, job: Job) -> None:
    store.jobs.signal("a", "approved")

    report(store, job, "retry", free=True, delay=1000, awaits="approved")

    assert state(store) == "waiting"


def test_a_wait_ends_at_its_time(store: Store, clock: Clock, job: Job) -> None:
    report(store, job, "retry", free=True, delay=1000, awaits="approved")

    clock.advance(seconds=1000)

    assert [each.id for each in store.jobs.pop("q", "w")] == ["a"]


def test_signals_of_one_name_are_taken_in_order(store: Store, job: Job) -> None:
    for number in range(3):
        store.jobs.signal("a", "more", number)

    first = store.jobs.signals("a")[0]
    report(store, job, "remember", took=first.name, took_number=first.number)

    assert [each.value for each in store.jobs.signals("a")] == [1, 2]


def test_signals_have_bounds(store: Store, job: Job) -> None:
    def fill(tx: Tx) -> None:
        for _ in range(MAX_JOB_SIGNALS):
            tx.jobs.signal("a", "more")

    store.transact(fill)

    with pytest.raises(BadArgument, match="has not taken"):
        store.jobs.signal("a", "more")


def test_a_job_that_is_gone_or_done_takes_no_signal(store: Store, job: Job) -> None:
    report(store, job, "complete")

    with pytest.raises(WrongState, match="complete"):
        store.jobs.signal("a", "go")
    with pytest.raises(UnknownJob):
        store.jobs.signal("nobody", "go")


# --- children -----------------------------------------------------------------------------------


def gather(store: Store, job: Job, *ids: str) -> None:
    children = tuple(NewJob(queue="c", id=id, parent="a") for id in ids)
    report(store, job, "retry", free=True, puts=children, depends=ids, steps=(_GATHER,))


_GATHER = Step(number=0, name="gather")


def test_a_workflow_waits_until_its_children_are_settled(store: Store, job: Job) -> None:
    gather(store, job, "c1", "c2")
    assert state(store) == "depends"

    for child in store.jobs.pop("c", "w", 2):
        assert state(store) == "depends"
        if child.id == "c1":
            store.jobs.complete(child.id, "w")
        else:
            store.jobs.fail(child.id, "w", "g", "m")

    assert state(store) == "waiting"


def test_a_child_without_retries_releases_its_workflow_too(store: Store, job: Job) -> None:
    gather(store, job, "c1")
    [child] = store.jobs.pop("c", "w")

    for _ in range(6):
        store.jobs.retry(child.id, "w")
        store.jobs.pop("c", "w")

    assert (state(store, "c1"), state(store)) == ("failed", "waiting")


def test_canceling_a_workflow_cancels_its_children(store: Store, job: Job) -> None:
    gather(store, job, "c1", "c2", "c3")
    [child] = store.jobs.pop("c", "w")
    store.jobs.complete(child.id, "w")

    store.jobs.cancel("a")

    assert [state(store, id) for id in ("a", "c1", "c2", "c3")] == [
        *("gone", "complete", "gone", "gone")
    ]


def test_children_are_put_with_their_workflow_or_not_at_all(store: Store, job: Job) -> None:
    store.jobs.cancel("a")

    children = (NewJob(queue="c", id="c1", parent="a"),)
    told = Report(id="a", worker="w", what="retry", lock=job.lock, puts=children, depends=("c1",))
    reported = store.jobs.report([told], takes=[Take(worker="w", queues=("c",))])

    assert [each.code for each in reported.refused] == ["unknown_job"]
    assert reported.jobs == ()
