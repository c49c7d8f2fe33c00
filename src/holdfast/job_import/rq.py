"""Waiting and scheduled jobs of RQ.

RQ keeps a call as a pickle, which can run any code when it is read. Only pickles of plain values
are read here; a job with anything else is left out.
"""

import io
import json
import pickle
import time
import zlib
from collections.abc import Iterator
from typing import Any, Final

from holdfast.job_import.redis_reader import RedisReader
from holdfast.job_import.task_names import TaskNames, UnfitArguments, data_of
from holdfast.job_import.transfer import JobSource
from holdfast.jobs.imports import ImportedJob
from holdfast.limits import MAX_JOB_DATA_BYTES

_QUEUE: Final = "rq:queue:"


class RqSource(JobSource):
    """A Redis with the keys of RQ."""

    def __init__(self, redis: RedisReader, names: TaskNames) -> None:
        super().__init__()
        self._redis = redis
        self._names = names
        self._now = time.time()  # of all jobs: their order is that of the list, not of their times
        members = redis.call("SMEMBERS", "rq:queues")
        self.queues = sorted(member.decode().removeprefix(_QUEUE) for member in members)

    def total(self) -> int:
        """Returns how many jobs wait or are scheduled."""
        asked = [("LLEN", f"{_QUEUE}{queue}") for queue in self.queues]
        asked += [("ZCARD", f"rq:scheduled:{queue}") for queue in self.queues]
        return sum(self._redis.pipeline(asked))

    def pages(self) -> Iterator[list[ImportedJob]]:
        """Yields jobs in the order in which RQ would run them."""
        for queue in self.queues:
            for page in self._redis.list_pages(f"{_QUEUE}{queue}"):
                yield self._jobs(queue, {id.decode(): 0.0 for id in page})
            for scored in self._redis.scored_pages(f"rq:scheduled:{queue}"):
                yield self._jobs(queue, {id.decode(): start for id, start in scored})

    def _jobs(self, queue: str, starts: dict[str, float]) -> list[ImportedJob]:
        jobs = []
        for id, found in zip(
            starts, self._redis.hashes([f"rq:job:{id}" for id in starts]), strict=True
        ):
            try:
                job = self._job(queue, id, found, starts[id])
            except (UnfitArguments, ValueError) as why:
                self.leave_out(id, str(why))
            else:
                jobs += [] if job is None else [job]
        return jobs

    def _job(
        self, queue: str, id: str, found: dict[bytes, bytes], start: float
    ) -> ImportedJob | None:
        if not found:
            raise UnfitArguments("a queue lists it, but it does not exist")
        function, instance, args, kwargs = _call_of(found.get(b"data", b""))
        if instance is not None:
            raise UnfitArguments("it calls a method of an object")
        task = self._names.get(function)
        if task is None:
            self.leave_out(id, f"the mapping file leaves {function} out")
            return None
        return ImportedJob(
            id=id,
            queue=task.queue or queue,
            klass=task.name,
            data=data_of(task, args, kwargs),
            state="scheduled" if start else "waiting",
            time=self._now,
            start=start,
            timeout=max(0.0, float(found.get(b"timeout") or 0)),
        )


def _call_of(data: bytes) -> tuple[str, Any, Any, Any]:
    """Returns function, instance, arguments and named arguments of a stored call."""
    try:
        if data[:1] == b"\x78":  # zlib
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(data, MAX_JOB_DATA_BYTES)
        plain = (
            _PlainUnpickler(io.BytesIO(data)).load() if data[:1] == b"\x80" else json.loads(data)
        )
    except pickle.UnpicklingError as error:
        raise UnfitArguments(str(error)) from None
    except (zlib.error, ValueError, EOFError, IndexError, KeyError, TypeError) as error:
        raise UnfitArguments(f"its call can't be read: {error}") from None
    if not isinstance(plain, list | tuple) or len(plain) != 4 or not isinstance(plain[0], str):
        raise UnfitArguments("its call is not that of a function")
    function, instance, args, kwargs = plain
    return function, instance, args, kwargs


class _PlainUnpickler(pickle.Unpickler):
    """Reads texts, numbers, lists, tuples, dicts; refuses every class and function."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"its arguments hold a {module}.{name}, not plain data")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("its arguments hold a reference to something outside")
