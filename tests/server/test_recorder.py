"""The recorder: what a server counts of itself, and that it is bounded."""

import msgspec
import pytest

import holdfast
from holdfast.errors import LimitExceeded, UnknownMetric
from holdfast.limits import MAX_RECORDED_REFUSALS, MAX_SLOW_CALLS, MAX_SLOW_CHARS
from holdfast.operations import OPERATIONS
from holdfast.server.recorder import SPACE, DurationHistogram, Recorder
from holdfast.store import Store


@pytest.fixture
def recorder(store: Store) -> Recorder:
    return Recorder(store, is_on=True)


def run(recorder: Recorder, store: Store, name: str, **arguments: object) -> object:
    """Runs an operation as a server would."""
    operation = OPERATIONS[name]
    given = msgspec.convert(arguments, operation.arguments)
    return store.transact(recorder.work_of(operation, given))


def total(store: Store, metric: str, *entity: str) -> float:
    system = store.space(SPACE).metrics
    return system.rate(metric, list(entity) or None, latest=3600).total


def test_calls_failures_and_commits_are_counted(recorder: Recorder, store: Store) -> None:
    run(recorder, store, "jobs.put", queue="q", id="one")
    with pytest.raises(holdfast.HoldfastError):
        run(recorder, store, "jobs.complete", id="one", worker="nobody")
    recorder.note_commit(3, 0.002)
    recorder.protocols["resp"] += 5

    recorder.write()
    recorder.write()  # what was written is not written again

    assert total(store, "calls", "operation", "jobs.put") == 1
    assert total(store, "failures", "operation", "jobs.complete") == 1
    assert total(store, "commits") == 3
    assert total(store, "requests", "protocol", "resp") == 5
    found = store.space(SPACE).metrics.distribution("commit_ms", latest=3600)
    assert found.count == 1


def test_recording_goes_on_after_somebody_has_dropped_its_space(
    recorder: Recorder, store: Store
) -> None:
    recorder.note_commit(3, 0.002)
    recorder.write()
    store.drop_space(SPACE)
    recorder.note_commit(1, 0.002)
    with pytest.raises(UnknownMetric):
        recorder.write()

    recorder.note_commit(2, 0.002)
    recorder.write()

    assert total(store, "commits") == 2


def test_jobs_are_recorded_as_totals_of_all_workers(recorder: Recorder, store: Store) -> None:
    for name in ("one", "two", "three"):
        store.jobs.put("q", id=name)
    store.jobs.pop("q", "w")
    store.jobs.complete("one", "w")

    recorder.write()

    system, entity = store.space(SPACE).metrics, ["space", store.name, "queue", "q"]
    assert system.gauge("jobs_put", entity, latest=3600).last == 3
    assert system.gauge("jobs_completed", entity, latest=3600).last == 1


def test_refusals_of_limits_are_counted_by_condition(recorder: Recorder, store: Store) -> None:
    asked = {
        "operations": [{"condition": "logins", "entity": ["user", "ann"]}],
        "conditions": {"logins": {"limit": 1, "window": 60}},
    }
    run(recorder, store, "metrics.try_incr", **asked)
    run(recorder, store, "metrics.try_incr", **asked)
    with pytest.raises(LimitExceeded):
        run(recorder, store, "metrics.require", **asked)
    many = {f"c{n}": {"limit": 0, "window": 60} for n in range(MAX_RECORDED_REFUSALS + 9)}
    for name in many:
        run(recorder, store, "metrics.try_incr", operations=[{"condition": name}], conditions=many)

    recorder.write()
    recorder.write()

    assert total(store, "refusals", "space", store.name, "condition", "logins") == 2
    assert total(store, "refusals", "space", store.name, "condition", "c7") == 1
    assert total(store, "refusals", "space", store.name, "condition", "") == 10


def test_the_slowest_calls_are_kept_with_short_arguments(recorder: Recorder, store: Store) -> None:
    operation = OPERATIONS["jobs.put"]
    arguments = msgspec.convert({"queue": "q", "data": "x" * 10_000}, operation.arguments)
    for number in range(MAX_SLOW_CALLS + 50):
        recorder._note_slow(operation, arguments, 0.1 + number)

    recorder.write()

    [row] = store.space(SPACE).tables.get("slow").items
    assert len(row["calls"]) == MAX_SLOW_CALLS
    assert row["calls"][0]["seconds"] == pytest.approx(0.1 + MAX_SLOW_CALLS + 49)
    assert all(len(call["arguments"]) <= MAX_SLOW_CHARS for call in row["calls"])


def test_of_large_arguments_a_few_members_are_shown(recorder: Recorder, store: Store) -> None:
    operation = OPERATIONS["jobs.put"]
    data = {"numbers": list(range(1_000_000)), "deep": [[[[["out of sight"]]]]]}
    arguments = msgspec.convert({"queue": "q", "data": data}, operation.arguments)

    recorder._note_slow(operation, arguments, 1.0)
    recorder.write()

    [row] = store.space(SPACE).tables.get("slow").items
    [call] = row["calls"]
    assert "'numbers': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 'deep': [[" in call["arguments"]
    assert "out of sight" not in call["arguments"]


def test_a_recorder_that_is_off_writes_nothing(store: Store) -> None:
    recorder = Recorder(store, is_on=False)

    run(recorder, store, "jobs.put", queue="q")

    assert not store.has_space(SPACE)


def test_a_time_is_known_within_an_eighth() -> None:
    for nanoseconds in (0, 7, 8, 10_000, 2**19 - 1, 2**19, 20_000_000, 10**9, 300 * 10**9, 2**63):
        times = DurationHistogram()
        times.add(nanoseconds)
        found, _ = times.changes()
        [told] = found
        assert told * 1e6 == pytest.approx(nanoseconds, rel=0.125, abs=8)
