"""Holdfast on a folder or another engine: durable steps per second, in one workflow and in eight.

`complete` is the completion of a plain job, one after the other, on the same store.
"""

from timing import THREADS, arguments, per_second, say

import holdfast
from holdfast.tasks import Run, Tasks, Worker

STEPS = 50  # of each workflow

tasks = Tasks("bench", queue="peer")


def double(number: int) -> int:
    return 2 * number


@tasks.workflow
def steps(run: Run) -> int:
    return sum(run.step(double, number) for number in range(STEPS))


def main() -> None:
    url, count = arguments()
    with holdfast.open(url) as store:

        def work_off(threads: int) -> None:
            steps.put_many(store, [()] * (count // STEPS))
            Worker(store, tasks, threads=threads).run_until_empty()

        steps.put(store)
        Worker(store, tasks).run_until_empty()  # a first one, that nobody measures
        figures = {
            "alone": per_second(lambda: work_off(1), count),
            "crowd": per_second(lambda: work_off(THREADS), count),
            "complete": completions(store, count),
        }
    say("holdfast", **figures)


def completions(store: holdfast.Store, count: int) -> float:
    for _ in range(count):
        store.jobs.put("plain", "nothing")
    jobs = store.jobs.pop("plain", "worker", count=count)

    def complete() -> None:
        for job in jobs:
            store.jobs.complete(job.id, "worker", lock=job.lock)

    return per_second(complete, len(jobs))


main()
