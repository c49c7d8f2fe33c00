"""Dramatiq: messages sent and processed per second, eight worker threads."""

import logging

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from timing import THREADS, arguments, in_threads, per_second, say


def main() -> None:
    url, count = arguments()
    logging.disable()
    broker = RedisBroker(url=url)
    dramatiq.set_broker(broker)

    @dramatiq.actor
    def nothing() -> None:
        pass

    def drain() -> None:
        worker = dramatiq.Worker(broker, worker_threads=THREADS, worker_timeout=20)
        worker.start()
        broker.join(nothing.queue_name, interval=5)
        worker.join()
        worker.stop()

    enqueued = per_second(in_threads(nothing.send, count), count)
    say("dramatiq", enqueued=enqueued, completed=per_second(drain, count))


main()
