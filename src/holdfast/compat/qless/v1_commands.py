"""The calls of version 1 of Qless: `Name numkeys [keys] [arguments]`."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from holdfast.compat.qless.arguments import Arguments, array, json_text, number
from holdfast.compat.qless.error_texts import as_qless_error
from holdfast.compat.qless.read_commands import Reply
from holdfast.compat.qless.replies import text
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument, HoldfastError
from holdfast.jobs.arguments import JsonText
from holdfast.jobs.records import Tag
from holdfast.jobs.v1 import JobsV1
from holdfast.metrics import Metrics

Call = Callable[[JobsV1, Arguments], Reply]


def call_v1(tx: Transaction, arguments: Sequence[str]) -> Reply:
    """Runs a call of version 1 of Qless and returns its reply; the case of its name is ignored."""
    if not arguments:
        raise BadArgument("Must provide a command")
    found = _CALLS.get(arguments[0].lower())
    if found is None:
        raise BadArgument(f"Unknown command {arguments[0]}")
    keys, call = found
    if len(arguments) < 2 or arguments[1] != str(keys):
        given = arguments[1] if len(arguments) > 1 else "none"
        raise BadArgument(f"{arguments[0]}(): expected {keys} keys, got {given}")
    try:
        return call(JobsV1(tx, Metrics), Arguments(list(arguments[2:])))
    except HoldfastError as error:
        raise as_qless_error(error, arguments[0].lower()) from None


def _set_config(jobs: JobsV1, arguments: Arguments) -> Reply:
    jobs.set_config(arguments.name("SetConfig", "option"), arguments.optional())
    return None


def _get_config(jobs: JobsV1, arguments: Arguments) -> Reply:
    option = arguments.optional()
    return text(jobs.configuration()) if option is None else jobs.get_config(option)


def _put(jobs: JobsV1, arguments: Arguments) -> Reply:
    queue, jid = arguments.queue(), arguments.name("Put", "id")
    data = json_text(arguments.optional(), 'Put(): Arg "data" missing or not JSON: ')
    now = arguments.number('Put(): Arg "now" missing or not a number: ')
    word = arguments.optional()
    priority = None if word is None else number(word, 'Put(): Arg "priority" not a number: ')
    word = arguments.optional()
    tags = None if word is None else _tags(word)
    delay = arguments.number('Put(): Arg "delay" not a number: ', 0)
    return jobs.put(queue, jid, JsonText(data), now, priority, tags, delay)


def _tags(word: str) -> list[Tag]:
    return array(word or "[]", 'Put(): Arg "tags" not JSON: ', str, int, float)


def _get(jobs: JobsV1, arguments: Arguments) -> Reply:
    job = jobs.get(arguments.jid("Get"))
    return None if job is None else text(job)


def _pop(jobs: JobsV1, arguments: Arguments) -> Reply:
    queue, worker = arguments.queue(), arguments.name("Pop", "worker")
    count = arguments.whole('Pop(): Arg "count" missing or not a number: ')
    now = arguments.number('Pop(): Arg "now" missing or not a number: ')
    expiration = arguments.number('Pop(): Arg "expiration" missing or not a number: ')
    return [text(job) for job in jobs.pop(queue, worker, count, now, expiration)]


def _peek(jobs: JobsV1, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    count = arguments.whole('Peek(): Arg "count" missing or not a number: ')
    now = arguments.number('Peek(): Arg "now" missing or not a number: ')
    return [text(job) for job in jobs.peek(queue, count, now)]


def _heartbeat(jobs: JobsV1, arguments: Arguments) -> Reply:
    jid, worker = arguments.jid("Heartbeat"), arguments.name("Heartbeat", "worker")
    expiration = arguments.number('Heartbeat(): Arg "expiration" missing or not a number: ')
    data = arguments.optional()
    if data is None:
        found = jobs.heartbeat(jid, worker, expiration)
    else:
        found = jobs.heartbeat(jid, worker, expiration, JsonText(data))
    return None if found is None else int(found)


def _complete(jobs: JobsV1, arguments: Arguments) -> Reply:
    jid, data = arguments.jid("Complete"), arguments.optional()
    queue = arguments.optional()
    delay = arguments.number('Complete(): Arg "delay" not a number: ', 0)
    worker = arguments.optional()
    if data is None:
        return jobs.complete(jid)
    return jobs.complete(jid, JsonText(data), queue or None, delay, worker)


def _fail(jobs: JobsV1, arguments: Arguments) -> Reply:
    jid = arguments.jid("Fail")
    kind = arguments.name("Fail", "type")
    message = arguments.message()
    if not message:
        raise BadArgument('Fail(): Arg "message" missing')
    now = arguments.number('Fail(): Arg "now" missing or not a number: ')
    return jobs.fail(jid, kind, message, now)


def _stats(jobs: JobsV1, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    date = arguments.required('Stats(): Arg "date" missing or not a number: nil')
    return text(jobs.stats(queue, date))


# The number of keys of each call, and its function.
_CALLS: Final[Mapping[str, tuple[int, Call]]] = MappingProxyType(
    {
        "setconfig": (0, _set_config),
        "getconfig": (0, _get_config),
        "put": (1, _put),
        "get": (0, _get),
        "pop": (1, _pop),
        "peek": (1, _peek),
        "heartbeat": (0, _heartbeat),
        "complete": (0, _complete),
        "fail": (0, _fail),
        "stats": (0, _stats),
    }
)
