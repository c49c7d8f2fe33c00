"""The calls of version 1 of Qless: `Name numkeys [keys] [arguments]`."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from holdfast.compat.qless.arguments import Arguments, array, json_text, number
from holdfast.compat.qless.error_texts import in_words_of_qless
from holdfast.compat.qless.read_commands import Reply
from holdfast.compat.qless.replies import text
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument, HoldfastError
from holdfast.jobs.arguments import JsonText
from holdfast.jobs.records import Tag
from holdfast.jobs.v1 import JobsV1
from holdfast.metrics import Metrics

Call = Callable[[JobsV1, Arguments], Reply]


def call_first(tx: Transaction, arguments: Sequence[str]) -> Reply:
    """Runs a call of version 1 of Qless and returns its reply; its name is in any letter case."""
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
        raise in_words_of_qless(error, arguments[0].lower()) from None


def _set_config(seed: JobsV1, arguments: Arguments) -> Reply:
    seed.set_config(arguments.name("SetConfig", "option"), arguments.optional())
    return None


def _get_config(seed: JobsV1, arguments: Arguments) -> Reply:
    option = arguments.optional()
    return text(seed.configuration()) if option is None else seed.get_config(option)


def _put(seed: JobsV1, arguments: Arguments) -> Reply:
    queue, jid = arguments.queue(), arguments.name("Put", "id")
    data = json_text(arguments.optional(), 'Put(): Arg "data" missing or not JSON: ')
    now = arguments.number('Put(): Arg "now" missing or not a number: ')
    word = arguments.optional()
    priority = None if word is None else number(word, 'Put(): Arg "priority" not a number: ')
    word = arguments.optional()
    tags = None if word is None else _tags(word)
    delay = arguments.number('Put(): Arg "delay" not a number: ', 0)
    return seed.put(queue, jid, JsonText(data), now, priority, tags, delay)


def _tags(word: str) -> list[Tag]:
    return array(word or "[]", 'Put(): Arg "tags" not JSON: ', str, int, float)


def _get(seed: JobsV1, arguments: Arguments) -> Reply:
    job = seed.get(arguments.jid("Get"))
    return None if job is None else text(job)


def _pop(seed: JobsV1, arguments: Arguments) -> Reply:
    queue, worker = arguments.queue(), arguments.name("Pop", "worker")
    count = arguments.whole('Pop(): Arg "count" missing or not a number: ')
    now = arguments.number('Pop(): Arg "now" missing or not a number: ')
    expiration = arguments.number('Pop(): Arg "expiration" missing or not a number: ')
    return [text(job) for job in seed.pop(queue, worker, count, now, expiration)]


def _peek(seed: JobsV1, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    count = arguments.whole('Peek(): Arg "count" missing or not a number: ')
    now = arguments.number('Peek(): Arg "now" missing or not a number: ')
    return [text(job) for job in seed.peek(queue, count, now)]


def _heartbeat(seed: JobsV1, arguments: Arguments) -> Reply:
    jid, worker = arguments.jid("Heartbeat"), arguments.name("Heartbeat", "worker")
    expiration = arguments.number('Heartbeat(): Arg "expiration" missing or not a number: ')
    data = arguments.optional()
    if data is None:
        found = seed.heartbeat(jid, worker, expiration)
    else:
        found = seed.heartbeat(jid, worker, expiration, JsonText(data))
    return None if found is None else int(found)


def _complete(seed: JobsV1, arguments: Arguments) -> Reply:
    jid, data = arguments.jid("Complete"), arguments.optional()
    queue = arguments.optional()
    delay = arguments.number('Complete(): Arg "delay" not a number: ', 0)
    worker = arguments.optional()
    if data is None:
        return seed.complete(jid)
    return seed.complete(jid, JsonText(data), queue or None, delay, worker)


def _fail(seed: JobsV1, arguments: Arguments) -> Reply:
    jid = arguments.jid("Fail")
    kind = arguments.name("Fail", "type")
    message = arguments.message()
    if not message:
        raise BadArgument('Fail(): Arg "message" missing')
    now = arguments.number('Fail(): Arg "now" missing or not a number: ')
    return seed.fail(jid, kind, message, now)


def _stats(seed: JobsV1, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    date = arguments.required('Stats(): Arg "date" missing or not a number: nil')
    return text(seed.stats(queue, date))


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
