"""Waiting jobs of Celery with a Redis as its broker.

A queue is a list, and one more for each priority below the highest. Messages that a worker has
reserved, or holds until they are due, are not in these lists: stop all workers first, which returns
them.
"""

import base64
import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from holdfast.job_import.redis_reader import RedisReader
from holdfast.job_import.task_names import TaskNames, UnfitArguments, data_of
from holdfast.job_import.transfer import JobSource
from holdfast.jobs.imports import ImportedJob

_BINDING: Final = "_kombu.binding."
_SEPARATOR: Final = b"\x06\x16"  # between the parts of a binding, and before a priority


class CelerySource(JobSource):
    """A Redis that is the broker of Celery."""

    def __init__(self, redis: RedisReader, names: TaskNames) -> None:
        super().__init__()
        self._redis = redis
        self._names = names
        self._now = time.time()  # a message does not say when it was sent
        self._lists = sorted(self._found_lists())

    def _found_lists(self) -> Iterator[tuple[str, float, bytes]]:
        """Yields queue, priority and key of each list with messages."""
        queues = {b"celery"}
        for key in self._redis.keys(f"{_BINDING}*"):
            members = self._redis.call("SMEMBERS", key)
            queues |= {member.split(_SEPARATOR)[-1] for member in members}
        for queue in queues:
            for key in [queue, *self._redis.keys(_escaped(queue + _SEPARATOR) + b"*")]:
                step = key[len(queue) + len(_SEPARATOR) :]
                if self._redis.call("TYPE", key) == b"list" and (not step or step.isdigit()):
                    yield queue.decode(), -float(step or 0), key  # in Celery, 0 comes first

    def total(self) -> int:
        """Returns how many messages wait."""
        return sum(self._redis.pipeline([("LLEN", key) for _, _, key in self._lists]))

    def pages(self) -> Iterator[list[ImportedJob]]:
        """Yields jobs in the order in which Celery would run them, oldest first."""
        for queue, priority, key in self._lists:
            for page in self._redis.list_pages_from_end(key):
                yield self._jobs(queue, priority, page)

    def _jobs(self, queue: str, priority: float, messages: list[bytes]) -> list[ImportedJob]:
        jobs = []
        for number, message in enumerate(messages):
            try:
                job = self._job(queue, priority, message)
            except (UnfitArguments, ValueError, KeyError, TypeError) as why:
                self.leave_out(f"{number} of {queue}", str(why) or repr(why))
            else:
                jobs += [] if job is None else [job]
        return jobs

    def _job(self, queue: str, priority: float, text: bytes) -> ImportedJob | None:
        message = json.loads(text)
        headers, properties = message["headers"], message["properties"]
        function = headers["task"]
        task = self._names.get(function)
        if task is None:
            self.leave_out(str(headers["id"]), f"the mapping file leaves {function} out")
            return None
        start_by = _moment(headers.get("expires"))
        if 0 < start_by <= self._now:
            raise UnfitArguments("it has expired")
        args, kwargs = _arguments(message, properties)
        start = _moment(headers.get("eta"))
        return ImportedJob(
            id=str(headers["id"]),
            queue=task.queue or queue,
            klass=task.name,
            data=data_of(task, args, kwargs),
            state="scheduled" if start else "waiting",
            time=self._now,
            start=start,
            start_by=start_by,
            priority=priority,
        )


def _escaped(text: bytes) -> bytes:
    """Returns a glob pattern that matches only `text`."""
    return b"".join(b"\\" + bytes([each]) if each in b"*?[]\\" else bytes([each]) for each in text)


def _arguments(message: dict[str, Any], properties: dict[str, Any]) -> tuple[Any, Any]:
    if message.get("content-type") != "application/json":
        raise UnfitArguments(
            f"its arguments are {message.get('content-type')}, and not application/json"
        )
    body = message["body"]
    if properties.get("body_encoding") == "base64":
        body = base64.b64decode(body)
    decoded = json.loads(body)
    if not isinstance(decoded, list) or len(decoded) < 2:
        raise UnfitArguments("its body is not that of a task")
    return decoded[0], decoded[1]


def _moment(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
