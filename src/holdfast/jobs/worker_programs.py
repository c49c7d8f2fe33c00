"""Worker programs: each running one announces every few seconds that it is alive and what it runs.

The record of a program that has been silent for a while disappears, so the list shows only programs
that are alive.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast import expiry
from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument
from holdfast.jobs.arguments import check_name
from holdfast.jobs.layout import below
from holdfast.jobs.space_keys import keys_of
from holdfast.limits import (
    MAX_WORKER_PROGRAM_BYTES,
    MAX_WORKER_PROGRAMS,
    WORKER_PROGRAM_SECONDS,
)

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

WORKER_PROGRAM_KIND: Final = "jobs.worker_program"


class WorkerSlot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place where a program runs jobs, and the job that it runs now, since when."""

    name: str
    kind: str = "thread"
    job: str = ""
    task: str = ""
    since: float = 0.0


class WorkerProgram(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program that runs jobs: where it is, what it serves, and what it runs now."""

    name: str
    host: str = ""
    pid: int = 0
    version: str = ""
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    slots: tuple[WorkerSlot, ...] = ()
    since: float = 0.0  # when it started
    seen: float = 0.0  # when it last announced itself
    memory_bytes: int = 0
    paused: bool = False


_decode: Final = msgspec.msgpack.Decoder(WorkerProgram).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class WorkerProgramOperations:
    """Operations on the records of worker programs."""

    _ledger: "Ledger"

    @operation()
    def announce_worker(self, program: WorkerProgram, *, now: float | None = None) -> None:
        """Announces that a worker program is alive, and what it is doing.

        >>> store.jobs.announce_worker(WorkerProgram(name="web-1", queues=("emails",)))
        >>> [each.name for each in store.jobs.worker_programs()]
        ['web-1']

        The record is gone `WORKER_PROGRAM_SECONDS` after the last call. Writes 2 keys.
        """
        ledger = self._ledger
        name = check_name(program.name, "name")
        seen = msgspec.structs.replace(program, seen=ledger.time(now))
        value = _encode(seen)
        if len(value) > MAX_WORKER_PROGRAM_BYTES:
            raise BadArgument(
                f"the record of worker {name} is {len(value)} bytes, at most "
                f"{MAX_WORKER_PROGRAM_BYTES} fit: name fewer tasks or queues"
            )
        expires = ledger.tx.now + WORKER_PROGRAM_SECONDS
        expiry.schedule(ledger.tx, expires, WORKER_PROGRAM_KIND, name.encode())
        ledger.tx.put(ledger.keys.worker_program(name), value)

    @operation()
    def withdraw_worker(self, name: str) -> None:
        """Removes the record of a worker program that has ended. Writes 1 key."""
        ledger = self._ledger
        ledger.tx.delete(ledger.keys.worker_program(check_name(name, "name")))

    @operation(reads=True)
    def worker_programs(self, *, now: float | None = None) -> list[WorkerProgram]:
        """Returns the worker programs that are alive, by name.

        Reads 1 key for each, at most `MAX_WORKER_PROGRAMS`.
        """
        ledger = self._ledger
        alive_since = ledger.time(now) - WORKER_PROGRAM_SECONDS
        pairs = ledger.tx.scan(*below(ledger.keys.worker_programs), limit=MAX_WORKER_PROGRAMS)
        programs = [_decode(value) for _, value in pairs]
        return [program for program in programs if program.seen > alive_since]


def remove_worker_program(tx: Transaction, subject: bytes) -> bool:
    """Removes the record of a program that has been silent; see expiry.py."""
    key = keys_of(tx.space).worker_program(subject.decode())
    value = tx.get(key)
    if value is not None and _decode(value).seen <= tx.now - WORKER_PROGRAM_SECONDS:
        tx.delete(key)
    return True
