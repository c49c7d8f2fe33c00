"""The commands of Qless as a pure function: `call(tx, command, now, words)`, words in, reply out.

This is what the originals' unified script does: the same names and arguments, the same replies and
error texts. A door that speaks their protocol needs to decode, call and encode.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from holdfast.compat.qless import changing, looking
from holdfast.compat.qless.first import call_first
from holdfast.compat.qless.looking import Reply
from holdfast.compat.qless.words import NIL, Words
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument
from holdfast.jobs.arguments import check_time, number_from
from holdfast.jobs.ledger import LOG, TRACKED, WORKER, Ledger

__all__ = [
    "COMMANDS",
    "NOTHING",
    "BlockingPop",
    "Dialect",
    "Reply",
    "awaited_result",
    "blocking_pop",
    "call",
    "call_first",
    "channel",
]

NOTHING: Final = "{}"  # what a pop says that has no job to give
Dialect = Literal["G2", "G3"]
Command = Callable[[Ledger, float, Words], Reply]

COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "cancel": changing.cancel,
        "complete": changing.complete,
        "config.get": looking.config_get,
        "config.set": changing.config_set,
        "config.unset": changing.config_unset,
        "depends": changing.depends,
        "fail": changing.fail,
        "failed": looking.failed,
        "get": looking.get,
        "heartbeat": changing.heartbeat,
        "jobs": looking.jobs,
        "length": looking.length,
        "log": changing.log,
        "mput": changing.mput,
        "multiget": looking.multiget,
        "pause": changing.pause,
        "peek": looking.peek,
        "pop": changing.pop,
        "priority": changing.priority,
        "put": changing.put,
        "queue.forget": changing.queue_forget,
        "queues": looking.queues_command,
        "recur": changing.recur,
        "recur.get": looking.recur_get,
        "recur.tag": changing.recur_tag,
        "recur.untag": changing.recur_untag,
        "recur.update": changing.recur_update,
        "requeue": changing.requeue,
        "result": looking.result,
        "retry": changing.retry,
        "stats": looking.stats,
        "tag": looking.tag,
        "throttle.delete": changing.throttle_delete,
        "throttle.get": looking.throttle_get,
        "throttle.locks": looking.throttle_locks,
        "throttle.pending": looking.throttle_pending,
        "throttle.set": changing.throttle_set,
        "timeout": changing.timeout,
        "track": looking.track,
        "unfail": changing.unfail,
        "unpause": changing.unpause,
        "unrecur": changing.unrecur,
        "worker.deregister": changing.worker_deregister,
        "workers": looking.workers_command,
    }
)


def call(tx: Transaction, words: Sequence[str], dialect: Dialect = "G3") -> Reply:
    """Runs `command now arguments...`; the reply is text, a number, ids, or None for nil.

    What is refused raises a `HoldfastError` whose `message` is the text that clients know. A time
    of "*" is the transaction's own. In the dialect of the first unified script, G2, `put` has no
    caller's name.
    """
    if not words:
        raise BadArgument("Must provide a command")
    name = words[0]
    command = COMMANDS.get(name)
    if command is None:
        raise BadArgument(f"Unknown command {name}")
    if name == "put" and dialect == "G2":
        command = changing.put_without_caller
    now = _time_of(words)
    return command(Ledger(tx), tx.now if now is None else now, Words(list(words[2:])))


def _time_of(words: Sequence[str]) -> float | None:
    """The time of a command, None for the store's own."""
    given = words[1] if len(words) > 1 else None
    if given == "*":
        return None
    now = None if given is None else number_from(given)
    if now is None:
        raise BadArgument(f'Arg "now" missing or not a number: {NIL if given is None else given}')
    return check_time(now)


# --- commands that wait; to do so is the door's part ----------------------------------------------


class BlockingPop(msgspec.Struct, frozen=True, kw_only=True):
    """What `bpop queue... worker count timeout` asks for; `now` is None for the store's time."""

    queues: list[str]
    worker: str
    count: int
    timeout: float
    now: float | None


def blocking_pop(words: Sequence[str]) -> BlockingPop:
    """Reads `bpop now queue... worker count timeout`."""
    now = _time_of(words)
    rest = Words(list(words[-3:] if len(words) > 5 else words[3:]))
    queues = [Words([word]).queue() for word in words[2:-3] or words[2:3] or [""]]
    return BlockingPop(
        queues=queues,
        worker=rest.name("Bpop", "worker"),
        count=rest.whole('Bpop(): Arg "count" missing or not a number: '),
        timeout=rest.number('Bpop(): Arg "timeout" missing or not a number: '),
        now=now,
    )


def awaited_result(words: Sequence[str]) -> tuple[str, float]:
    """Reads `result now jid seconds`: whose result, and how long to wait for it."""
    _time_of(words)
    rest = Words(list(words[2:]))
    return rest.jid(), rest.number('Result(): Arg "wait" not a number: ')


def channel(topic: str) -> str | None:
    """The pub/sub channel on which clients expect a notice, or None if it is none of theirs.

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
