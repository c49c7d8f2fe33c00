"""The seed's calls as words: `Name numkeys [keys] [arguments]`."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from holdfast.compat.qless.error_texts import in_words_of_qless
from holdfast.compat.qless.read_commands import Reply
from holdfast.compat.qless.replies import text
from holdfast.compat.qless.words import Words, array, json_text, number
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument, HoldfastError
from holdfast.jobs.arguments import JsonText
from holdfast.jobs.records import Tag
from holdfast.jobs.v1 import JobsV1
from holdfast.metrics import Metrics

Call = Callable[[JobsV1, Words], Reply]


def call_first(tx: Transaction, words: Sequence[str]) -> Reply:
    """Runs one call of the seed and returns its reply; names in any letter case."""
    if not words:
        raise BadArgument("Must provide a command")
    found = _CALLS.get(words[0].lower())
    if found is None:
        raise BadArgument(f"Unknown command {words[0]}")
    keys, call = found
    if len(words) < 2 or words[1] != str(keys):
        given = words[1] if len(words) > 1 else "none"
        raise BadArgument(f"{words[0]}(): expected {keys} keys, got {given}")
    try:
        return call(JobsV1(tx, Metrics), Words(list(words[2:])))
    except HoldfastError as error:
        raise in_words_of_qless(error, words[0].lower()) from None


def _set_config(seed: JobsV1, words: Words) -> Reply:
    seed.set_config(words.name("SetConfig", "option"), words.maybe())
    return None


def _get_config(seed: JobsV1, words: Words) -> Reply:
    option = words.maybe()
    return text(seed.configuration()) if option is None else seed.get_config(option)


def _put(seed: JobsV1, words: Words) -> Reply:
    queue, jid = words.queue(), words.name("Put", "id")
    data = json_text(words.maybe(), 'Put(): Arg "data" missing or not JSON: ')
    now = words.number('Put(): Arg "now" missing or not a number: ')
    word = words.maybe()
    priority = None if word is None else number(word, 'Put(): Arg "priority" not a number: ')
    word = words.maybe()
    tags = None if word is None else _tags(word)
    delay = words.number('Put(): Arg "delay" not a number: ', 0)
    return seed.put(queue, jid, JsonText(data), now, priority, tags, delay)


def _tags(word: str) -> list[Tag]:
    return array(word or "[]", 'Put(): Arg "tags" not JSON: ', str, int, float)


def _get(seed: JobsV1, words: Words) -> Reply:
    job = seed.get(words.jid("Get"))
    return None if job is None else text(job)


def _pop(seed: JobsV1, words: Words) -> Reply:
    queue, worker = words.queue(), words.name("Pop", "worker")
    count = words.whole('Pop(): Arg "count" missing or not a number: ')
    now = words.number('Pop(): Arg "now" missing or not a number: ')
    expiration = words.number('Pop(): Arg "expiration" missing or not a number: ')
    return [text(job) for job in seed.pop(queue, worker, count, now, expiration)]


def _peek(seed: JobsV1, words: Words) -> Reply:
    queue = words.queue()
    count = words.whole('Peek(): Arg "count" missing or not a number: ')
    now = words.number('Peek(): Arg "now" missing or not a number: ')
    return [text(job) for job in seed.peek(queue, count, now)]


def _heartbeat(seed: JobsV1, words: Words) -> Reply:
    jid, worker = words.jid("Heartbeat"), words.name("Heartbeat", "worker")
    expiration = words.number('Heartbeat(): Arg "expiration" missing or not a number: ')
    data = words.maybe()
    if data is None:
        found = seed.heartbeat(jid, worker, expiration)
    else:
        found = seed.heartbeat(jid, worker, expiration, JsonText(data))
    return None if found is None else int(found)


def _complete(seed: JobsV1, words: Words) -> Reply:
    jid, data = words.jid("Complete"), words.maybe()
    queue = words.maybe()
    delay = words.number('Complete(): Arg "delay" not a number: ', 0)
    worker = words.maybe()
    if data is None:
        return seed.complete(jid)
    return seed.complete(jid, JsonText(data), queue or None, delay, worker)


def _fail(seed: JobsV1, words: Words) -> Reply:
    jid = words.jid("Fail")
    kind = words.name("Fail", "type")
    message = words.message()
    if not message:
        raise BadArgument('Fail(): Arg "message" missing')
    now = words.number('Fail(): Arg "now" missing or not a number: ')
    return seed.fail(jid, kind, message, now)


def _stats(seed: JobsV1, words: Words) -> Reply:
    queue = words.queue()
    date = words.need('Stats(): Arg "date" missing or not a number: nil')
    return text(seed.stats(queue, date))


# Each call's number of keys, and what it does.
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
