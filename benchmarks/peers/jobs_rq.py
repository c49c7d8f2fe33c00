"""RQ: jobs enqueued and completed per second, by the worker that does not fork."""

import redis
from rq import Queue, SimpleWorker
from timing import arguments, in_threads, per_second, say


def main() -> None:
    url, count = arguments()
    connection = redis.Redis.from_url(url)
    queue = Queue(connection=connection)
    enqueued = per_second(in_threads(lambda: queue.enqueue("time.time"), count), count)
    worker = SimpleWorker([queue], connection=connection)
    completed = per_second(lambda: worker.work(burst=True, logging_level="ERROR"), count)
    say("rq", enqueued=enqueued, completed=completed)


main()
