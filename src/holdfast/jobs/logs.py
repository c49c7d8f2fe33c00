"""The log of a job: the newest lines that its workers wrote.

It has its own key: a job without a log costs nothing extra, and a long log is not rewritten with
each change of its job.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.declarations import operation
from holdfast.jobs.arguments import check_jid, cut_message
from holdfast.jobs.records import JobRecord
from holdfast.limits import MAX_JOB_LOG_CHARS, MAX_JOB_LOG_LINES

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class LogLine(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of a job's log, written at `when`; `level` is a word such as "info"."""

    text: str
    level: str = "info"
    when: float = 0.0


_decode: Final = msgspec.msgpack.Decoder(tuple[LogLine, ...]).decode
_encode: Final = msgspec.msgpack.Encoder().encode
_LEVEL_CHARS: Final = 20  # a level is one word


class LogOperations:
    """Operations on the logs of jobs."""

    _ledger: "Ledger"

    @operation(reads=True)
    def read_log(self, id: str) -> tuple[LogLine, ...]:
        """Returns the lines that the workers of a job wrote, oldest first.

        Workers write with `report`. The newest lines are kept: at most `MAX_JOB_LOG_LINES`, with at
        most `MAX_JOB_LOG_CHARS` characters together. Reads 1 key.
        """
        return log_of(self._ledger, check_jid(id))


def log_of(ledger: "Ledger", jid: str) -> tuple[LogLine, ...]:
    value = ledger.tx.get(ledger.keys.log(jid))
    return () if value is None else _decode(value)


def add_lines(ledger: "Ledger", job: JobRecord, lines: Sequence[LogLine], now: float) -> None:
    """Adds lines to the log of a job, which its caller saves."""
    written = [
        LogLine(
            cut_message(line.text, MAX_JOB_LOG_CHARS),
            cut_message(line.level, _LEVEL_CHARS),
            line.when or now,
        )
        for line in lines[-MAX_JOB_LOG_LINES:]
    ]
    before = log_of(ledger, job.jid) if job.has_log else ()
    ledger.tx.put(ledger.keys.log(job.jid), _encode(_newest([*before, *written])))
    job.has_log = True


def _newest(lines: list[LogLine]) -> list[LogLine]:
    """Returns the last of `lines`, as many as fit."""
    left = MAX_JOB_LOG_CHARS
    first = len(lines)
    while first and len(lines) - first < MAX_JOB_LOG_LINES:
        left -= len(lines[first - 1].text)
        if left < 0:
            break
        first -= 1
    return lines[first:]
