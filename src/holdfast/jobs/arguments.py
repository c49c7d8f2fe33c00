"""What callers give, checked: names, numbers and JSON."""

import re
from functools import lru_cache
from math import isfinite
from typing import Any, Final

import msgspec

from holdfast.errors import BadArgument, JobTooLarge
from holdfast.jobs.records import Tag
from holdfast.json_data import unfit_in
from holdfast.limits import (
    MAX_JOB_DATA_BYTES,
    MAX_JOB_DATA_DEPTH,
    MAX_JOB_DEPENDENCIES,
    MAX_JOB_MESSAGE_CHARS,
    MAX_JOB_NAME_BYTES,
    MAX_JOB_TAGS,
    MAX_JOB_TIME,
)

_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
from_json: Final = msgspec.json.Decoder().decode
_ENCODER: Final = msgspec.json.Encoder()
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)')
_BRACKET: Final = re.compile(r"[\[\]{}]")
_CUT: Final = " [cut]"
_SHOWN_CHARS: Final = 200


# What the originals' messages call an operation, where it is not its own name.
CALLS: Final = {
    "complete_and_pop": "Complete",
    "put_many": "Put",
    "recur": "RecurringJob On",
    "recur_update": "Recur",
}


class JsonText(str):
    """JSON that is kept as the very text it is; a plain str would become a JSON string."""


def number_from(text: str) -> float | None:
    """The number in `text`, or None if it holds anything else.

    >>> number_from(" -1.5e3 "), number_from("0x10"), number_from("nan"), number_from("")
    (-1500.0, None, None, None)
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return None if number in (float("inf"), float("-inf")) else number


def check_time(now: float) -> float:
    if not 0 <= now <= MAX_JOB_TIME:
        raise BadArgument(f'Arg "now" missing or not a number: {now}')
    return float(now)


def check_numbers(call: str, **numbers: float | None) -> None:
    """Refuses what is no finite number, by the name of its argument."""
    for name, number in numbers.items():
        if number is not None and not isfinite(number):
            raise BadArgument(f'{call}(): Arg "{name}" not a number: {number}')


@lru_cache(maxsize=4096)
def is_name(name: str) -> bool:
    """Whether `check_name` would let it through; for the few names that are given again and again,
    it costs a quarter of that."""
    try:
        check_name(name, "", "")
    except BadArgument:
        return False
    return True


def check_name(name: str, call: str, argument: str) -> str:
    """`name` if it is one: not empty, not too long, valid text without NUL."""
    if not name:
        raise BadArgument(f'{call}(): Arg "{argument}" missing')
    if len(name) > MAX_JOB_NAME_BYTES >> 2 or not name.isascii():
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            raise BadArgument(f'{call}(): Arg "{argument}" is not valid UTF-8') from None
        if size > MAX_JOB_NAME_BYTES:
            raise BadArgument(
                f'{call}(): Arg "{argument}" has {size} bytes, at most {MAX_JOB_NAME_BYTES} fit'
            )
    if "\0" in name:
        raise BadArgument(f'{call}(): Arg "{argument}" holds a NUL character')
    return name


def check_jid(jid: str, call: str = "Job") -> str:
    """`jid` if it is a name, for those who look for a job."""
    if not jid:
        raise BadArgument(f"{call}(): no jid provided")
    return check_name(jid, call, "jid")


def check_queue(queue: str) -> str:
    """`queue` if it is a name, for those who look into one."""
    if not queue:
        raise BadArgument("Queue(): no queue name provided")
    return check_name(queue, "Queue", "queue")


def json_text(value: Any, call: str, argument: str = "data") -> str:
    """The JSON text of `value`: a `JsonText` as it is, anything else encoded."""
    if type(value) is JsonText:
        text = str(value)
        try:
            from_json(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            raise BadArgument(
                f'{call}(): Arg "{argument}" missing or not JSON: {shortened(text)}'
            ) from None
    else:
        try:
            encoded = _ENCODER.encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            check_json(value, call, argument)
            raise BadArgument(
                f'{call}(): Arg "{argument}" missing or not JSON: {shortened(repr(value))}',
                hint=f"What JSON can hold goes: {error}.",
            ) from None
        if from_json(encoded) != value:
            check_json(value, call, argument)
        text = encoded.decode()
    return text


def check_json(value: Any, call: str, argument: str = "data") -> None:
    """Refuses data of which JSON would give something else back: a text for a datetime, say."""
    unfit = unfit_in(value, argument)
    if unfit is not None:
        refusal = (
            "Log(): Argument 'data' not a JSON object"  # the originals have words of its own for it
            if call == "Log"
            else f'{call}(): Arg "{argument}" missing or not JSON'
        )
        raise BadArgument(
            f"{refusal}: {unfit}, which JSON can't give back",
            hint=f"{unfit.advice[0].upper()}{unfit.advice[1:]}.",
        )


def check_size(text: str, what: str) -> str:
    """`text` if it is neither larger nor deeper than what a job may carry."""
    if len(text) > MAX_JOB_DATA_BYTES >> 2 and (size := len(text.encode())) > MAX_JOB_DATA_BYTES:
        raise JobTooLarge(f"{what} has {size} bytes, at most {MAX_JOB_DATA_BYTES} fit")
    # Deeper than there are brackets it can't be, and most have few.
    if text.count("[") + text.count("{") > MAX_JOB_DATA_DEPTH and (
        (depth := _depth(text)) > MAX_JOB_DATA_DEPTH
    ):
        raise JobTooLarge(
            f"{what} is nested {depth} levels deep, at most {MAX_JOB_DATA_DEPTH} fit",
            hint="Make it flatter, or carry it as a text.",
        )
    return text


def _depth(text: str) -> int:
    """How deep lists and objects of a JSON text lie within each other.

    >>> _depth('[{"a": "[[["}, []]')
    2
    """
    deepest = depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def shortened(text: str) -> str:
    """What an error shows of an argument: all of it, or how a long one begins."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def is_unicode(text: str) -> bool:
    """Whether the text has bytes; one with a half of a surrogate pair has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_text(value: object) -> bool:
    return isinstance(value, str)


def check_tags(tags: Any, call: str, shown: object) -> list[Tag]:
    """`tags` as a list without duplicates; strings and numbers only."""
    if not isinstance(tags, list | tuple) or not all(
        isinstance(tag, str | int | float) and not isinstance(tag, bool) for tag in tags
    ):
        raise BadArgument(f'{call}(): Arg "tags" not JSON {shown}')
    if len(tags) > MAX_JOB_TAGS:
        raise BadArgument(f"{call}(): {len(tags)} tags, at most {MAX_JOB_TAGS} fit")
    distinct: dict[str, Tag] = {}
    for tag in tags:
        if isinstance(tag, int) and not -(2**63) <= tag < 2**63:
            raise BadArgument(f'{call}(): Arg "tags" has a number of more than 64 bits: {tag}')
        distinct.setdefault(check_name(tag_text(tag), call, "tag"), tag)
    return list(distinct.values())


def check_jids(jids: Any, call: str, shown: object) -> list[str]:
    """`jids` of a `depends` argument as a list without duplicates."""
    if not isinstance(jids, list | tuple) or not all(map(is_text, jids)):
        raise BadArgument(f'{call}(): Arg "depends" not JSON: {shown}')
    if len(jids) > MAX_JOB_DEPENDENCIES:
        raise BadArgument(f"{call}(): {len(jids)} dependencies, at most {MAX_JOB_DEPENDENCIES} fit")
    return [check_name(jid, call, "depends") for jid in dict.fromkeys(jids)]


def tag_text(tag: Tag) -> str:
    """The text under which a tag is indexed: 7 and 7.0 are both `7`."""
    return tag if isinstance(tag, str) else number_text(tag)


def number_text(number: float) -> str:
    """A number as Qless writes it: whole numbers without a decimal point."""
    return str(plain(number))


def plain(number: float) -> float | int:
    """`number` as an int if it is whole, so that JSON shows no decimal point."""
    return int(number) if number == int(number) else number


def cut_message(message: str, longest: int = MAX_JOB_MESSAGE_CHARS) -> str:
    """Returns a message of at most `longest` characters, with a mark where it was cut.

    Bytes that were no UTF-8 become question marks: a job must be able to fail whatever it says.
    """
    if not message.isascii():
        message = message.encode("utf-8", "replace").decode()
    if len(message) <= longest:
        return message
    return message[: longest - len(_CUT)] + _CUT
