"""Puts jobs with the real RQ and Celery into a Redis, and prints the commands that make its keys.

The files beside this one were made with RQ 2.12.0 and Celery 5.7.0 (Kombu 5.7.0), as in:

    pip install rq celery redis packaging
    valkey-server --port 7001 &
    python record.py 7001 rq > rq.json
    python record.py 7001 celery > celery.json

They are not installed for the tests: Celery alone brings a dozen packages.
"""

import base64
import datetime
import json
import sys
from typing import Any

import redis

LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def put_rq(client: Any) -> None:
    from rq import Queue
    from rq.serializers import JSONSerializer

    emails = Queue("emails", connection=client)
    emails.enqueue("app.send", "ann", template="welcome", job_id="rq-1")
    emails.enqueue("app.send", "bob", job_id="rq-2", job_timeout=30)
    emails.enqueue("app.send", "urgent", job_id="rq-0", at_front=True)
    emails.enqueue("app.at", PAST, job_id="rq-date")
    emails.enqueue("app.old", job_id="rq-old")
    emails.enqueue_at(LATER, "app.send", "cat", job_id="rq-later")
    reports = Queue("reports", connection=client, serializer=JSONSerializer)
    reports.enqueue("app.build", kwargs={"year": 2026}, job_id="rq-json")


def put_celery(port: int) -> None:
    from celery import Celery  # type: ignore[import-not-found]  # see above

    app = Celery("app", broker=f"redis://localhost:{port}/0")

    @app.task(name="app.send")  # type: ignore[untyped-decorator]  # Celery's own
    def send(to: str, template: str = "") -> None: ...

    send.apply_async(("ann",), {"template": "welcome"}, task_id="celery-1")
    send.apply_async(("bob",), task_id="celery-2")
    send.apply_async(("low",), task_id="celery-low", priority=6)
    send.apply_async(("cat",), task_id="celery-later", eta=LATER)
    send.apply_async(("dee",), task_id="celery-reports", queue="reports")
    send.apply_async(("eve",), task_id="celery-pickle", serializer="pickle")
    send.apply_async(("fay",), task_id="celery-expired", expires=PAST)
    send.apply_async(("gus",), task_id="celery-expires", expires=LATER)


def commands(client: Any) -> list[list[bytes]]:
    """Returns the commands that make all keys."""
    made: list[list[bytes]] = []
    for key in sorted(client.keys("*")):
        kind = client.type(key)
        if kind == b"list":
            made.append([b"RPUSH", key, *client.lrange(key, 0, -1)])
        elif kind == b"set":
            made.append([b"SADD", key, *sorted(client.smembers(key))])
        elif kind == b"hash":
            pairs = client.hgetall(key).items()
            made.append([b"HSET", key, *(part for pair in pairs for part in pair)])
        elif kind == b"zset":
            scored = client.zrange(key, 0, -1, withscores=True)
            pairs = ((repr(float(score)).encode(), member) for member, score in scored)
            made.append([b"ZADD", key, *(part for pair in pairs for part in pair)])
    return made


def main() -> None:
    port, kind = int(sys.argv[1]), sys.argv[2]
    client = redis.Redis(port=port)
    client.flushall()
    put_rq(client) if kind == "rq" else put_celery(port)
    words = [[base64.b64encode(word).decode() for word in each] for each in commands(client)]
    print(json.dumps(words, indent=0))


if __name__ == "__main__":
    main()
