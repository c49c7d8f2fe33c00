"""Random operations at random times: the layer and a simple model of it must agree on all that can
be read.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.errors import BadArgument, UnknownJob, WrongState
from holdfast.jobs import Job
from holdfast.testing import Clock
from tests.jobs.model import Model, ModelJob, Refused
from tests.stores import Stores

JIDS = st.sampled_from(["a", "b", "c", "d", "e"])
QUEUES = st.sampled_from(["one", "two"])
WORKERS = st.sampled_from(["w1", "w2"])
TIMES = st.integers(0, 300)  # any order: no command may compare its time with another clock
NOTHING = object()
Name = Literal["class", "tag", "worker"]


class JobsAgainstModel(RuleBasedStateMachine):
    """Every rule does the same to both; the invariant compares."""

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self.stores = stores

    @initialize(grace=st.sampled_from([10, 0]), letters=st.sampled_from(["", "letters"]))
    def open(self, grace: int, letters: str) -> None:
        # So early that nothing disappears by the store's own clock: all times are the rules'.
        self.context = self.stores.open(clock=Clock(1))
        self.store = self.context.__enter__()
        self.jobs = self.store.jobs
        self.model = Model()
        self.model.grace = grace
        self.jobs.config_set("grace-period", grace)
        self.jobs.batch_open("batch")
        if letters:
            self.model.letters = letters
            self.jobs.config_set("two-dead-letter", letters)
        self.jobs.config_set("stats-tags", "x,y")
        jobs, seconds = self.model.rate
        self.jobs.config_set("slow-rate", f"{jobs}/{seconds}")
        self.last = self.slow_now = 0

    def teardown(self) -> None:
        if hasattr(self, "context"):
            self.context.__exit__(None, None, None)

    def both(self, model: Callable[[], Any], layer: Callable[[], Any]) -> None:
        """Does the same to both: they give the same answer, or refuse together."""
        try:
            expected = model()
        except Refused:
            expected = NOTHING
        try:
            found = layer()
        except (UnknownJob, WrongState, BadArgument):
            found = NOTHING
        if isinstance(found, list) and found and isinstance(found[0], Job):
            found = [job.id for job in found]
        assert (found is NOTHING) == (expected is NOTHING)
        if expected is not None:
            assert found == expected

    @rule(
        jid=JIDS,
        queue=QUEUES,
        now=TIMES,
        delay=st.sampled_from([0, 0, 5, 50]),
        priority=st.sampled_from([None, 0, 1, -2.5]),
        tags=st.sampled_from([None, [], ["x"], ["x", "y"]]),
        retries=st.sampled_from([None, 0, 1]),
        depends=st.none() | st.lists(JIDS, max_size=3),
        batch=st.sampled_from([None, "batch"]),
        klass=st.sampled_from(["", "Send"]),
        timeout=st.sampled_from([None, None, 0, 20]),
        starts_within=st.sampled_from([None, None, 30, 200]),
    )
    def put(
        self, jid: str, queue: str, now: int, starts_within: int | None = None, **options: Any
    ) -> None:
        self.last = now
        if starts_within is not None:
            options["expires"] = now + starts_within
        self.both(
            lambda: self.model.put(queue, jid, now, **options),
            lambda: self.jobs.put(queue, id=jid, now=now, **options),
        )

    @rule(queue=QUEUES, worker=WORKERS, count=st.integers(1, 4), now=TIMES)
    def pop(self, queue: str, worker: str, count: int, now: int) -> None:
        self.last = now
        self.both(
            lambda: self.model.pop(queue, worker, count, now),
            lambda: self.jobs.pop(queue, worker, count, now=now),
        )

    @rule(queue=QUEUES, worker=WORKERS, later=st.sampled_from([0, 10, 61, 75]))
    def pop_later(self, queue: str, worker: str, later: int) -> None:
        self.pop(queue, worker, 4, min(self.last + later, 80_000))

    @rule(queue=QUEUES, worker=WORKERS)
    def put_and_lose(self, queue: str, worker: str) -> None:
        """Straight to where random steps seldom come: locks that end again and again."""
        self.put("a", queue, self.last, delay=0, priority=9, tags=None, retries=1, depends=None)
        for _ in range(4):
            self.pop_later(queue, worker, 61)

    @rule(
        jids=st.lists(JIDS, min_size=1, max_size=3, unique=True),
        count=st.integers(1, 3),
        later=st.sampled_from([0, 8, 24, 64]),  # never just where the limiter's last bucket ends
    )
    def put_and_pop_with_a_rate(self, jids: list[str], count: int, later: int) -> None:
        self.slow_now += later
        for jid in jids:
            self.put(jid, "slow", self.slow_now, delay=0, priority=None, tags=None, retries=None,
                     depends=None)  # fmt: skip
        self.pop("slow", "w1", count, self.slow_now)

    @rule(queue=QUEUES, count=st.integers(1, 4), now=TIMES)
    def peek(self, queue: str, count: int, now: int) -> None:
        self.both(
            lambda: self.model.peek(queue, count, now),
            lambda: self.jobs.peek(queue, count, now=now),
        )

    @rule(jid=JIDS, worker=WORKERS, now=TIMES)
    def heartbeat(self, jid: str, worker: str, now: int) -> None:
        self.both(
            lambda: self.model.heartbeat(jid, worker, now),
            lambda: self.jobs.heartbeat(jid, worker, now=now),
        )

    @rule(data=st.data(), now=TIMES, next=st.none() | QUEUES, delay=st.sampled_from([0, 20]))
    @precondition(lambda self: self._running())
    def complete(self, data: st.DataObject, now: int, next: str | None, delay: int) -> None:
        job = data.draw(st.sampled_from(self._running()))
        worker, delay = job.worker, delay if next else 0
        self.both(
            lambda: self.model.complete(job.jid, worker, now, next=next, delay=delay),
            lambda: self.jobs.complete(job.jid, worker, now=now, next=next, delay=delay),
        )

    @rule(data=st.data(), queue=QUEUES, later=st.sampled_from([0, 10, 75]))
    @precondition(lambda self: self._running())
    def complete_and_pop(self, data: st.DataObject, queue: str, later: int) -> None:
        job = data.draw(st.sampled_from(self._running()))
        worker = job.worker
        self.last = now = min(self.last + later, 80_000)

        def model() -> list[str]:
            self.model.complete(job.jid, worker, now, next=None, delay=0)
            return self.model.pop(queue, worker, 2, now)

        self.both(
            model, lambda: self.jobs.complete_and_pop(job.jid, worker, 2, pop_from=queue, now=now)
        )

    @rule(data=st.data(), now=TIMES, group=st.sampled_from(["g", "h"]))
    @precondition(lambda self: self._running())
    def fail(self, data: st.DataObject, now: int, group: str) -> None:
        job = data.draw(st.sampled_from(self._running()))
        worker = job.worker
        self.both(
            lambda: self.model.fail(job.jid, worker, group, now),
            lambda: self.jobs.fail(job.jid, worker, group, "message", now=now),
        )

    @rule(data=st.data(), now=TIMES, delay=st.sampled_from([0, 20]))
    @precondition(lambda self: self._running())
    def retry(self, data: st.DataObject, now: int, delay: int) -> None:
        job = data.draw(st.sampled_from(self._running()))
        worker = job.worker
        self.both(
            lambda: self.model.retry(job.jid, worker, delay, now),
            lambda: self.jobs.retry(job.jid, worker, delay=delay, now=now),
        )

    @rule(jid=JIDS, worker=WORKERS, now=TIMES)
    def settle_what_may_not_be_held(self, jid: str, worker: str, now: int) -> None:
        self.both(
            lambda: self.model.complete(jid, worker, now, next=None, delay=0),
            lambda: self.jobs.complete(jid, worker, now=now),
        )

    @rule(jid=JIDS, now=TIMES)
    def timeout(self, jid: str, now: int) -> None:
        self.both(lambda: self.model.timeout(jid, now), lambda: self.jobs.timeout(jid, now=now))

    @rule(jids=st.lists(JIDS, max_size=3), now=TIMES)
    def cancel(self, jids: list[str], now: int) -> None:
        self.both(lambda: self.model.cancel(jids), lambda: self.jobs.cancel(*jids, now=now))

    @rule(queue=QUEUES, group=st.sampled_from(["g", "failed-retries-one"]), now=TIMES)
    def unfail(self, queue: str, group: str, now: int) -> None:
        self.both(
            lambda: self.model.unfail(queue, group, 2, now),
            lambda: self.jobs.unfail(queue, group, 2, now=now),
        )

    @rule(jid=JIDS, priority=st.sampled_from([0, 1, 5]))
    def priority(self, jid: str, priority: float) -> None:
        self.both(
            lambda: self.model.set_priority(jid, priority),
            lambda: self.jobs.priority(jid, priority),
        )

    @rule(jid=JIDS, others=st.none() | st.lists(JIDS, max_size=2), now=TIMES)
    def depends_off(self, jid: str, others: list[str] | None, now: int) -> None:
        self.both(
            lambda: self.model.depends_off(jid, others, now),
            lambda: self.jobs.depends_off(jid, *(others or ()), all=others is None, now=now),
        )

    @rule(jid=JIDS, tag=st.sampled_from(["x", "z"]), now=TIMES)
    def tag(self, jid: str, tag: str, now: int) -> None:
        self.both(lambda: self.model.tag(jid, tag, now), lambda: self.jobs.tag(jid, tag, now=now))

    @rule(queue=QUEUES, pause=st.booleans())
    def pause(self, queue: str, pause: bool) -> None:
        (self.model.paused.add if pause else self.model.paused.discard)(queue)
        (self.jobs.pause if pause else self.jobs.unpause)(queue)

    @rule(
        queue=QUEUES, interval=st.sampled_from([7, 60]), offset=st.sampled_from([0, 30]), now=TIMES
    )
    def recur(self, queue: str, interval: int, offset: int, now: int) -> None:
        self.model.recur(queue, "r", interval, offset, now)
        self.jobs.recur(queue, id="r", interval=interval, offset=offset, now=now)

    def _running(self) -> list[ModelJob]:
        return [job for job in self.model.jobs.values() if job.state == "running"]

    # --- comparing ------------------------------------------------------------------------------

    @invariant()
    def every_job_is_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        for jid in {*"abcde", *self.model.jobs}:
            found, expected = self.jobs.get(jid), self.model.jobs.get(jid)
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert _shown(found) == _expected(self.model, expected)

    @invariant()
    def every_list_is_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        model, now = self.model, self.last
        for name in ("one", "two", "letters", "slow"):
            model._move_due(name, now)
            counts = self.jobs.counts(name, now=now)
            locks = model.listed(name, "running")
            stalled = [job.jid for job in locks if job.entered[0] <= now]
            assert counts.waiting == len(model.work(name))
            assert (counts.stalled, counts.running) == (len(stalled), len(locks) - len(stalled))
            assert counts.paused == (name in model.paused)
            assert self.jobs.jobs("stalled", name, count=-1, now=now) == stalled
            assert self.jobs.jobs("running", name, count=-1, now=now) == [
                job.jid for job in locks if job.entered[0] >= now
            ]
            for state in ("scheduled", "depends"):
                listed = [job.jid for job in model.listed(name, state)]
                assert self.jobs.jobs(state, name, count=-1, now=now) == listed
                assert getattr(counts, state) == len(listed)
            assert counts.recurring == sum(r.queue == name for r in model.recurring.values())
            stats = self.jobs.stats(name, 0)
            tallies = (
                stats.wait.count,
                stats.run.count,
                stats.retries,
                stats.failures,
                stats.failed,
                stats.expired,
            )
            kinds = ("wait", "run", "retries", "failures", "failed", "expired")
            assert tallies == tuple(model.counters.get((name, kind), 0) for kind in kinds)
            for kind in get_args(Name):
                by_name = {
                    row.name: [row.completed, row.failures, row.retries]
                    for row in self.jobs.stats_by(name, kind, until=0).rows
                }
                assert by_name == {
                    each: found
                    for (queue, by, each), found in model.by_name.items()
                    if (queue, by) == (name, kind)
                }
        puts = {each.counts.name: each.puts for each in self.jobs.figures()}
        assert puts == {name: model.counters.get((name, "puts"), 0) for name in model.known}
        batch = self.jobs.batch("batch")
        assert batch is not None
        assert (batch.total, batch.complete, batch.failed, batch.canceled) == model.batch()
        assert [queue.name for queue in self.jobs.queues(now=now)] == [
            name for _, name in sorted((time, name) for name, time in model.known.items())
        ]

    @invariant()
    def groups_workers_and_tags_are_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        model = self.model
        groups = {job.failure["group"] for job in model.jobs.values()
                  if job.state == "failed" and job.failure}  # fmt: skip
        assert self.jobs.failed() == {group: len(model.group(group)) for group in groups}
        for group in groups:
            assert self.jobs.failed_in(group, count=-1).jobs == tuple(reversed(model.group(group)))
        complete = [
            (job.entered, job.jid) for job in model.jobs.values() if job.state == "complete"
        ]
        assert self.jobs.jobs("complete", count=-1) == [
            jid for _, jid in sorted(complete, reverse=True)
        ]
        for worker in ("w1", "w2"):
            held = {jid: (end, jid) for jid, end in model.held.get(worker, {}).items()}
            order = sorted(held, key=lambda jid: held[jid], reverse=True)
            found = self.jobs.worker(worker, now=0)
            assert found.jobs == tuple(order)
        assert {worker.name for worker in self.jobs.workers(now=0)} == set(model.workers)
        for tag in ("x", "y", "z"):
            tagged = sorted(
                (job.tagged[job.tags.index(tag)], job.jid)
                for job in model.jobs.values()
                if tag in job.tags
            )
            page = self.jobs.tagged(tag, count=-1)
            assert (page.total, page.jobs) == (len(tagged), tuple(jid for _, jid in tagged))


def _shown(job: Job) -> dict[str, Any]:
    failure = job.failure
    return {
        "state": job.state,
        "queue": job.queue,
        "worker": job.worker,
        "expires": job.expires,
        "priority": job.priority,
        "retries": job.retries,
        "remaining": job.remaining,
        "tags": list(job.tags),
        "history": [(entry.what, entry.when, entry.more) for entry in job.history],
        "failure": failure
        and {
            "group": failure.group,
            "message": failure.message,
            "when": failure.when,
            "worker": failure.worker,
        },
        "spawned_from": job.spawned_from,
        "dependents": list(job.dependents),
        "dependencies": list(job.dependencies),
        "origin": job.origin,
        "batch": job.batch,
        "klass": job.klass,
        "timeout": job.timeout,
        "start_by": job.start_by,
    }


def _expected(model: Model, job: ModelJob) -> dict[str, Any]:
    names = ("state", "queue", "worker", "expires", "priority", "retries", "remaining", "tags")
    return {name: getattr(job, name) for name in names} | {
        "history": _capped(job.history),
        "failure": job.failure,
        "spawned_from": job.spawned_from,
        "dependents": model.dependents(job.jid),
        "dependencies": sorted(job.depends),
        "origin": job.origin,
        "batch": "batch" if job.in_batch else None,
        "klass": job.klass,
        "timeout": job.timeout or None,
        "start_by": job.start_by or None,
    }


def _capped(history: list[Any]) -> list[Any]:
    return history if len(history) <= 100 else history[:1] + history[-99:]


def test_the_layer_and_the_model_agree(stores: Stores) -> None:
    run_state_machine_as_test(
        lambda: JobsAgainstModel(stores),  # type: ignore[arg-type]  # a function will do as well
        settings=settings(
            max_examples=25,
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.reuse, Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
