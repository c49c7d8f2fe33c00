"""Results and progress of jobs."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast import expiry
from holdfast.declarations import operation
from holdfast.engine.contract import Notice, Transaction
from holdfast.errors import BadArgument
from holdfast.jobs.arguments import check_jid, check_size, from_json
from holdfast.jobs.ledger import TRACKED, Ledger
from holdfast.jobs.records import JobRecord, ResultRecord

if TYPE_CHECKING:
    from holdfast.engine.contract import Reader

RESULT_KIND: Final = "jobs.result"
_decode: Final = msgspec.msgpack.Decoder(ResultRecord).decode
_encode: Final = msgspec.msgpack.Encoder().encode
_encode_json: Final = msgspec.json.Encoder().encode


def keep(ledger: Ledger, job: JobRecord, text: str, ttl: float | None = None) -> None:
    """Keeps the job's result for `ttl` seconds, by default for `result-ttl`; 0 or less keeps it as
    long as the job. That of a workflow's child does not expire: the workflow may read it late."""
    check_size(text, f"the result of job {job.jid}")
    if job.parent:
        ttl = 0.0
    elif ttl is None:
        ttl = ledger.settings().result_ttl
    expires = ledger.tx.now + ttl if ttl > 0 else None
    if expires is not None:
        expiry.schedule(ledger.tx, expires, RESULT_KIND, job.jid.encode())
    ledger.tx.put(ledger.keys.result(job.jid), _encode(ResultRecord(text=text, expires=expires)))
    job.has_result = True


def result_text(ledger: Ledger, jid: str) -> str | None:
    """Returns the JSON text of what the job returned, or None if nothing is kept."""
    value = ledger.tx.get(ledger.keys.result(jid))
    record = None if value is None else _decode(value)
    if record is None or _has_expired(record, ledger.tx):
        return None
    return record.text


def _has_expired(record: ResultRecord, reader: "Reader") -> bool:
    return record.expires is not None and expiry.is_expired(
        expiry.to_ms(record.expires), reader.now
    )


def remove_result(tx: Transaction, subject: bytes) -> bool:
    """Removes a result that has expired; see expiry.py."""
    key = Ledger(tx).keys.result(subject.decode())
    value = tx.get(key)
    if value is not None and _has_expired(_decode(value), tx):
        tx.delete(key)
    return True


def check_progress(progress: float) -> None:
    if not 0 <= progress <= 1:
        raise BadArgument.named("progress", f"must be a number from 0 to 1, not {progress}")


def set_progress(ledger: Ledger, job: JobRecord, progress: float, text: str) -> None:
    """Notes how far a running job has come, and publishes it if the job is tracked."""
    job.progress = progress
    job.progress_text = text
    ledger.save(job)
    if job.tracked:
        event = {"jid": job.jid, "event": "progress", "progress": progress, "text": text}
        ledger.tx.after_commit(Notice(f"{TRACKED}progress", _encode_json(event)))


class ResultOperations:
    """Operations on results."""

    _ledger: Ledger

    @operation(reads=True)
    def result(self, id: str) -> Any:
        """Returns the result that the job completed with, or None. Reads 1 key."""
        text = result_text(self._ledger, check_jid(id))
        return None if text is None else from_json(text)
