"""Holdfast over RESP, or in process and in interval mode if the address is a folder.

A worker completes its job and gets the next one in one step, as docs/howto/jobs.md shows.
"""

from timing import THREADS, arguments, in_threads, per_second, say

import holdfast


def main() -> None:
    url, count = arguments()
    if url.startswith("holdfast:"):
        store = holdfast.connect(url)
    else:
        store = holdfast.open(url, durability="interval")
    jobs = store.jobs

    def put() -> None:
        jobs.put("peer", "nothing")

    def work_off() -> None:
        waiting = jobs.pop("peer", "worker")
        while waiting:
            [job] = waiting
            waiting = jobs.complete_and_pop(job.id, "worker", lock=job.lock)

    enqueued = per_second(in_threads(put, count), count)
    completed = per_second(in_threads(work_off, THREADS), count)
    assert jobs.length("peer") == 0
    store.close()
    say("holdfast", enqueued=enqueued, completed=completed)


main()
