"""The commands of Qless as a pure function: `call(tx, command, now, words)` returns the reply.

It has the names, arguments, replies and error texts of the originals' unified script. A server of
their protocol decodes the words, calls this, and encodes the reply.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from holdfast.compat.qless import (
    batch_commands,
    read_commands,
    search_commands,
    write_commands,
)
from holdfast.compat.qless.arguments import NIL, Arguments
from holdfast.compat.qless.dialects import Dialect
from holdfast.compat.qless.error_texts import as_qless_error
from holdfast.compat.qless.read_commands import Reply
from holdfast.compat.qless.v1_commands import call_v1
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument, HoldfastError
from holdfast.jobs.arguments import number_from
from holdfast.jobs.ledger import LOG, TRACKED, WORKER, Ledger
from holdfast.limits import MAX_JOB_TIME
from holdfast.metrics import Metrics

__all__ = [
    "COMMANDS",
    "NOTHING",
    "BlockingPop",
    "Dialect",
    "Reply",
    "awaited_result",
    "blocking_pop",
    "call",
    "call_v1",
    "channel",
]

NOTHING: Final = "{}"  # the reply of a pop without a job
Command = Callable[[Ledger, float, Arguments], Reply]

COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "batch.cancel": batch_commands.batch_cancel,
        "batch.close": batch_commands.batch_close,
        "batch.forget": batch_commands.batch_forget,
        "batch.get": batch_commands.batch_get,
        "batch.jobs": batch_commands.batch_jobs,
        "batch.open": batch_commands.batch_open,
        "bulk.get": search_commands.bulk_get,
        "bulk.list": search_commands.bulk_list,
        "bulk.start": search_commands.bulk_start,
        "bulk.step": search_commands.bulk_step,
        "bulk.stop": search_commands.bulk_stop,
        "cancel": write_commands.cancel,
        "complete": write_commands.complete,
        "config.get": read_commands.config_get,
        "config.set": write_commands.config_set,
        "config.unset": write_commands.config_unset,
        "depends": write_commands.depends,
        "fail": write_commands.fail,
        "failed": read_commands.failed,
        "get": read_commands.get,
        "heartbeat": write_commands.heartbeat,
        "jobs": read_commands.jobs,
        "length": read_commands.length,
        "log": write_commands.log,
        "mput": write_commands.mput,
        "multiget": read_commands.multiget,
        "pause": write_commands.pause,
        "peek": read_commands.peek,
        "pop": write_commands.pop,
        "priority": write_commands.priority,
        "put": write_commands.put,
        "queue.forget": write_commands.queue_forget,
        "queues": read_commands.queues_command,
        "recur": write_commands.recur,
        "recur.get": read_commands.recur_get,
        "recur.tag": write_commands.recur_tag,
        "recur.untag": write_commands.recur_untag,
        "recur.update": write_commands.recur_update,
        "requeue": write_commands.requeue,
        "result": read_commands.result,
        "retry": write_commands.retry,
        "search": search_commands.search,
        "stats": read_commands.stats,
        "tag": read_commands.tag,
        "throttle.delete": write_commands.throttle_delete,
        "throttle.get": read_commands.throttle_get,
        "throttle.locks": read_commands.throttle_locks,
        "throttle.pending": read_commands.throttle_pending,
        "throttle.set": write_commands.throttle_set,
        "timeout": write_commands.timeout,
        "track": read_commands.track,
        "unfail": write_commands.unfail,
        "unpause": write_commands.unpause,
        "unrecur": write_commands.unrecur,
        "worker.deregister": write_commands.worker_deregister,
        "workers": read_commands.workers_command,
    }
)


def call(tx: Transaction, words: Sequence[str], dialect: Dialect = "G3") -> Reply:
    """Runs `command now arguments...`; the reply is text, a number, ids, or None for nil.

    A refusal raises a `HoldfastError` whose `message` is the text that clients expect. A time of
    "*" is the transaction's own. In G2, the dialect of the first unified script, `put` has no name
    of the caller.
    """
    if not words:
        raise BadArgument("Must provide a command")
    name = words[0]
    command = COMMANDS.get(name)
    if command is None:
        raise BadArgument(f"Unknown command {name}")
    if name == "put" and dialect == "G2":
        command = write_commands.put_without_caller
    now = _time_of(words)
    try:
        return command(
            Ledger(tx, Metrics), tx.now if now is None else now, Arguments(list(words[2:]))
        )
    except HoldfastError as error:
        raise as_qless_error(error, name) from None


def _time_of(words: Sequence[str]) -> float | None:
    """Returns the time of a command; None for the store's own."""
    given = words[1] if len(words) > 1 else None
    if given == "*":
        return None
    now = None if given is None else number_from(given)
    if now is None or not 0 <= now <= MAX_JOB_TIME:
        raise BadArgument(f'Arg "now" missing or not a number: {NIL if given is None else given}')
    return now


# --- commands that wait, in the server ------------------------------------------------------------


class BlockingPop(msgspec.Struct, frozen=True, kw_only=True):
    """The request of `bpop queue... worker count timeout`; `now` is None for the store's time."""

    queues: list[str]
    worker: str
    count: int
    timeout: float
    now: float | None


def blocking_pop(words: Sequence[str]) -> BlockingPop:
    """Reads `bpop now queue... worker count timeout`."""
    now = _time_of(words)
    rest = Arguments(list(words[-3:] if len(words) > 5 else words[3:]))
    queues = [Arguments([word]).queue() for word in words[2:-3] or words[2:3] or [""]]
    return BlockingPop(
        queues=queues,
        worker=rest.name("Bpop", "worker"),
        count=rest.whole('Bpop(): Arg "count" missing or not a number: '),
        timeout=rest.number('Bpop(): Arg "timeout" missing or not a number: '),
        now=now,
    )


def awaited_result(words: Sequence[str]) -> tuple[str, float]:
    """Reads `result now jid seconds`: the id, and how long to wait for the result."""
    _time_of(words)
    rest = Arguments(list(words[2:]))
    return rest.jid(), rest.number('Result(): Arg "wait" not a number: ')


def channel(topic: str) -> str | None:
    """Returns the pub/sub channel on which clients expect a notice, or None if they expect none.

    >>> [channel(topic) for topic in ("jobs.log", "jobs.worker.w1", "jobs.tracked.put")]
    ['ql:log', 'ql:w:w1', 'ql:put']
    """
    if topic == LOG:
        return "ql:log"
    if topic.startswith(WORKER):
        return f"ql:w:{topic.removeprefix(WORKER)}"
    if topic.startswith(TRACKED):
        return f"ql:{topic.removeprefix(TRACKED)}"
    return None
