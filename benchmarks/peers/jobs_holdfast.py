"""Holdfast over RESP, or in process and in interval mode if the address is a folder."""

from timing import arguments, in_threads, per_second, say

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
        [job] = jobs.pop("peer", "worker")
        jobs.complete(job.id, "worker", lock=job.lock)

    enqueued = per_second(in_threads(put, count), count)
    completed = per_second(in_threads(work_off, count), count)
    store.close()
    say("holdfast", enqueued=enqueued, completed=completed)


main()
