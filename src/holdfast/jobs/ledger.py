"""The ledger of one transaction: the records and counts that it changes, and its notices.

Topics of the notices, and the Qless channels of the same meaning:

    jobs.log               ql:log          JSON, everything that happens
    jobs.log.quiet         none            JSON, events that Qless does not publish
    jobs.worker.<worker>   ql:w:<worker>   JSON, what a worker must know
    jobs.tracked.<what>    ql:<what>       the jid, for tracked jobs
    jobs.ready             none            the name of a queue that may have something to pop;
                                           empty: all queues
"""

from itertools import islice
from sys import maxsize
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Notice, Transaction, read_counter
from holdfast.jobs import layout
from holdfast.jobs.arguments import check_bytes, check_time
from holdfast.jobs.history import shorten
from holdfast.jobs.layout import QueueKeys
from holdfast.jobs.rates import MakeLimiter
from holdfast.jobs.records import HistoryEntry, JobRecord, QueueRecord
from holdfast.jobs.settings import DEFAULTS, JobSettings, settings_from
from holdfast.jobs.space_keys import Keys, keys_of
from holdfast.jobs.statistics import uncounted_pops_and_ends
from holdfast.keys import pack_str
from holdfast.limits import (
    CLOCK_AHEAD_SECONDS,
    JOB_DATA_INLINE_CHARS,
    MAX_CACHED_JOB_RECORD_BYTES,
    MAX_CACHED_JOB_RECORDS,
)

LOG: Final = "jobs.log"
QUIET_LOG: Final = f"{LOG}.quiet"  # subscribers to topics that begin with `LOG` get these too
READY: Final = layout.READY
WORKER: Final = "jobs.worker."
TRACKED: Final = "jobs.tracked."

encode: Final = msgspec.msgpack.Encoder().encode
_encode_json: Final = msgspec.json.Encoder().encode
_decode_job: Final = msgspec.msgpack.Decoder(JobRecord).decode
_decode_queue: Final = msgspec.msgpack.Decoder(QueueRecord).decode


class Ledger:
    """The records, counters and notices that the operations of one transaction share."""

    __slots__ = (
        "_announced",
        "_settings",
        "arrivals",
        "keys",
        "limiter",
        "long_data_bytes",
        "released",
        "timer",
        "tx",
    )

    def __init__(self, tx: Transaction, limiter: MakeLimiter | None = None) -> None:
        self.tx = tx
        self.limiter = limiter  # makes the rate limiter of this transaction, for queues with a rate
        self.keys: Keys = keys_of(tx.space)
        self.timer: CallTimer | None = None  # limits what the jobs of one `put_many` take
        self.long_data_bytes = 0  # read so far, of data that has its own key
        self.released = 0  # jobs that waited for others which were completed
        self._settings: JobSettings | None = (
            None  # read once: most operations need them several times
        )
        # Made when something goes into them: most transactions are one operation.
        self._announced: set[str] | None = None
        self.arrivals: dict[bytes, int] | None = None  # the last arrival at each time, see lists.py

    def begin_next_transaction(self) -> None:
        """Begins the next transaction of a group. A group shares one buffer and its notices, so a
        queue is announced once for all. Settings are read again, because another ledger of the last
        transaction may have changed them."""
        self.long_data_bytes = 0
        self.released = 0
        self._settings = None

    def time(self, now: float | None) -> float:
        """Returns the time of the operation: the caller's, else the transaction's."""
        return self.tx.now if now is None else check_time(now)

    # --- jobs ---------------------------------------------------------------------------------

    def job(self, jid: str) -> JobRecord | None:
        value = self.tx.get(self.keys.jobs + pack_str(jid))
        return None if value is None else _decode_job(value)

    def job_at(self, key: bytes) -> JobRecord | None:
        """Returns the job whose record has this key."""
        value = self.tx.get(key)
        return None if value is None else _decode_job(value)

    def job_to_update(self, key: bytes) -> JobRecord | None:
        """Returns the job at a key, for a caller that will write it back."""
        value = self.tx.get(key)
        if value is None:
            return None
        given = _CACHED_RECORDS.pop(key, None)
        return given[1] if given is not None and given[0] == value else _decode_job(value)

    def jobs(self, jids: list[str]) -> list[JobRecord | None]:
        values = self.tx.get_many([self.keys.job(jid) for jid in jids])
        return [None if value is None else _decode_job(value) for value in values]

    def save(self, job: JobRecord) -> None:
        self.tx.put(self.keys.jobs + pack_str(job.jid), encode(job))

    def save_and_cache(self, key: bytes, job: JobRecord, pairs: dict[bytes, bytes]) -> None:
        """Saves a job that this transaction won't touch again, and caches its record for the next
        caller: in `pairs`, which the caller puts together, or at once if the record is long.

        Decoding a record costs as much as everything else that a completion does with it.
        """
        value = encode(job)
        if len(value) > MAX_CACHED_JOB_RECORD_BYTES:
            self.tx.put(key, value)
            return
        if len(_CACHED_RECORDS) >= MAX_CACHED_JOB_RECORDS:
            _CACHED_RECORDS.clear()
        _CACHED_RECORDS[key] = value, job
        pairs[key] = value

    def data_of(self, job: JobRecord) -> str:
        """Returns the job's data as the JSON text that it was given as."""
        if job.data:
            return job.data
        return self.data_bytes_of(job).decode()

    def data_bytes_of(self, job: JobRecord) -> bytes:
        """Returns long data as the JSON that is stored."""
        value = self.tx.get(self.keys.data(job.jid)) or b""
        self.long_data_bytes += len(value)
        return value

    def set_data(self, job: JobRecord, data: str | bytes) -> None:
        """Gives the job its data, as `json_data` returns it; long data gets its own key."""
        if isinstance(data, str):
            if len(data) <= JOB_DATA_INLINE_CHARS:  # too short to be too deep
                if not job.data:
                    self.tx.delete(self.keys.data(job.jid))
                job.data = data
                return
            data = data.encode()
        stored = check_bytes(data, f"the data of job {job.jid}")
        self.tx.put(self.keys.data(job.jid), stored)
        job.data = ""

    def add_to_history(
        self, job: JobRecord, what: str, now: float, more: dict[str, Any] | None = None
    ) -> None:
        """Adds to the job's history."""
        self.add_entry(job, encode(HistoryEntry(what, int(now), more or {})))

    def add_entry(self, job: JobRecord, entry: bytes) -> None:
        """Adds to the job's history; when it is too long, the second oldest entry goes."""
        job.history += entry
        job.entries = entries = job.entries + 1
        if entries > 1 and entries > (limit := self.settings().history_length):
            shorten(job, limit)

    # --- queues -------------------------------------------------------------------------------

    def queue(self, keys: QueueKeys) -> QueueRecord:
        return _queue_from(self.tx.get(keys.record))

    def save_queue(self, keys: QueueKeys, queue: QueueRecord) -> None:
        if queue == QueueRecord():
            self.tx.delete(keys.record)
        else:
            self.tx.put(keys.record, encode(queue))

    def read_queue(self, keys: QueueKeys) -> QueueRecord:
        """Returns the queue's record, which callers share and must not change."""
        value = self.tx.get(keys.record)
        last = keys.last_record
        if value != last[0]:
            last = keys.last_record = value, _queue_from(value)
        return last[1]

    def register_queue(self, keys: QueueKeys, now: float) -> QueueRecord:
        """Returns the queue's record, after registering the queue if it is new."""
        value = self.tx.get(keys.record)
        last = keys.last_record
        queue = last[1] if value == last[0] else self.read_queue(keys)
        if queue.known_since is None:
            queue = replace(queue, known_since=now)
            self.tx.put(keys.record, encode(queue))
        return queue

    def schedule_queue_check(self, keys: QueueKeys, wake: float) -> None:
        """Makes sure that the queue's timers are checked no later than at `wake`."""
        queue = self.queue(keys)
        # A clock that has jumped ahead is noted too: once it is set back, the queue needs repair.
        if wake < queue.wake or self.tx.now > queue.clock_at_wake + CLOCK_AHEAD_SECONDS:
            queue.wake = min(wake, queue.wake)
            queue.clock_at_wake = max(queue.clock_at_wake, self.tx.now)
            self.tx.put(keys.record, encode(queue))

    def pair(self, key: bytes) -> tuple[int, int]:
        """Returns the two counts of a counter that holds a pair."""
        return layout.read_pair(read_counter(self.tx.get(key)))

    def work_counts(self, keys: QueueKeys) -> tuple[int, int]:
        """Returns how many jobs of a queue wait and how many are locked. Reads 3 keys."""
        waiting, locks = self.pair(keys.work_counts)
        popped, ended = uncounted_pops_and_ends(self.tx, keys)
        return waiting - popped, locks + popped - ended

    # --- lists --------------------------------------------------------------------------------

    def page(
        self, bounds: tuple[bytes, bytes], offset: int, count: int, *, reverse: bool = False
    ) -> list[bytes]:
        """Returns the keys of one page of a list; a `count` below 0 is all from `offset` on."""
        offset = max(0, offset)
        end = None if count < 0 else min(offset + count, maxsize)
        keys = (key for key, _ in self.tx.scan(*bounds, limit=end, reverse=reverse))
        return list(islice(keys, min(offset, maxsize), None))

    def count_before(self, boundary: bytes, prefix: bytes, total: int) -> int:
        """Returns how many of the `total` keys of a list come before `boundary`.

        Counts on both sides at once, so it reads what the smaller side has.
        """
        begin, end = layout.below(prefix)
        before, after = self.tx.scan(begin, boundary), self.tx.scan(boundary, end)
        for number in range(total):
            if next(before, None) is None:
                return number
            if next(after, None) is None:
                return total - number
        return total

    # --- settings -----------------------------------------------------------------------------

    def settings(self) -> JobSettings:
        found = self._settings
        if found is None:
            value = self.tx.get(self.keys.settings)
            found = self._settings = DEFAULTS if value is None else settings_from(value)
        return found

    def save_settings(self, given: dict[str, str]) -> None:
        self._settings = None
        if given:
            self.tx.put(self.keys.settings, encode(given))
        else:
            self.tx.delete(self.keys.settings)

    # --- notices ------------------------------------------------------------------------------

    def log(self, event: dict[str, Any]) -> None:
        """Publishes `event`; Qless clients compare the text, so the order of its keys counts."""
        self.tx.after_commit(Notice(LOG, _encode_json(event)))

    def log_job_event(self, jid: str, rest: bytes) -> None:
        """Publishes an event whose text after the jid is `rest`."""
        self.tx.after_commit(Notice(LOG, b'{"jid":' + _encode_json(jid) + rest, self.tx.space))

    def log_quietly(self, event: dict[str, Any]) -> None:
        """Publishes `event` to callers that wait for a job, but on no channel of Qless."""
        self.tx.after_commit(Notice(QUIET_LOG, _encode_json(event)))

    def notify_worker(self, worker: str, event: dict[str, Any]) -> None:
        """Publishes `event` to a worker."""
        self.tx.after_commit(Notice(WORKER + worker, _encode_json(event)))

    def notify_worker_and_log(self, worker: str, event: dict[str, Any]) -> None:
        """Publishes `event` to a worker, then to all."""
        payload = _encode_json(event)
        self.tx.after_commit(Notice(WORKER + worker, payload))
        self.tx.after_commit(Notice(LOG, payload))

    def publish_tracked(self, job: JobRecord, what: str) -> None:
        """Publishes what happened to a job that is tracked."""
        if job.tracked:
            self.tx.after_commit(Notice(TRACKED + what, job.jid.encode()))

    def announce_ready(self, keys: QueueKeys) -> None:
        """Wakes callers that wait for a job of a queue, once for each operation."""
        announced = self._announced
        if announced is None:
            self._announced = {keys.name}
        elif keys.name in announced:
            return
        else:
            announced.add(keys.name)
        self.tx.after_commit(keys.ready)

    def announce_ready_everywhere(self) -> None:
        self.announce_ready(self.keys.queue(""))


def event_marker(jid: str) -> bytes:
    """Returns the bytes that every event of the log about the job contains."""
    return b'"jid":' + _encode_json(jid)


# Written records by key, with their bytes. A record is used only if the store has the same bytes;
# it has others after an aborted transaction, or if another process has written since.
_CACHED_RECORDS: Final[dict[bytes, tuple[bytes, JobRecord]]] = {}


def _queue_from(value: bytes | None) -> QueueRecord:
    return QueueRecord() if value is None else _decode_queue(value)
