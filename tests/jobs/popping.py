"""Puts jobs and pops their ids, for tests of the order in which they leave."""

from tests.jobs.conftest import Qless


def put(qless: Qless, jid: str, now: float = 0, *options: object, queue: str = "queue") -> None:
    qless("put", now, "worker", queue, jid, "klass", "{}", 0, *options)


def jids(jobs: object) -> list[str]:
    return [job["jid"] for job in jobs] if isinstance(jobs, list) else []
