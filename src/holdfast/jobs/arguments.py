"""Validates arguments: names, numbers and JSON."""

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final

import msgspec

from holdfast.bounded_cache import BoundedCache
from holdfast.errors import BadArgument, JobTooLarge
from holdfast.jobs.records import NewJob, Tag
from holdfast.json_data import json_problem_in
from holdfast.limits import (
    MAX_JOB_DATA_BYTES,
    MAX_JOB_DATA_DEPTH,
    MAX_JOB_DEPENDENCIES,
    MAX_JOB_MESSAGE_CHARS,
    MAX_JOB_NAME_BYTES,
    MAX_JOB_PARTS_PER_CALL,
    MAX_JOB_TAGS,
    MAX_JOB_TIME,
    MAX_JOBS_PER_CALL,
)

_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
from_json: Final = msgspec.json.Decoder().decode
_ENCODER: Final = msgspec.json.Encoder()
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_PIECE_BYTES: Final = 64 * 1024  # that are searched in one step
_TEXT_PIECE_CHARS: Final = 512 * 1024  # of a text that are encoded in one step
_LONG_BYTES: Final = 64 * 1024  # of JSON that is not decoded again; long data is stored as bytes
_CUT: Final = " [cut]"
_SHOWN_CHARS: Final = 200
_LISTS: Final = (list, tuple)
EMPTY_NAME: Final = "must not be empty"


class JsonText(str):
    """JSON text that is stored as it is; a plain str would be encoded as a JSON string."""


def number_from(text: str) -> float | None:
    """Returns the number in `text`, or None if it holds anything else.

    >>> number_from(" -1.5e3 "), number_from("0x10"), number_from("nan"), number_from("")
    (-1500.0, None, None, None)
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return None if number in (float("inf"), float("-inf")) else number


def check_time(now: float) -> float:
    if not 0 <= now <= MAX_JOB_TIME:
        raise BadArgument.named("now", f"must be a time from 0 to {MAX_JOB_TIME:g}, not {now}")
    return float(now)


def check_numbers(**numbers: float | None) -> None:
    """Raises `BadArgument` for the first argument that is not a finite number."""
    for name, number in numbers.items():
        if number is not None and not isfinite(number):
            raise BadArgument.named(name, f"must be a finite number, not {number}")


def _is_name(name: str) -> bool:
    try:
        check_name(name, "")
    except BadArgument:
        return False
    return True


# Returns whether `check_name` accepts a name, and remembers the answer for common names.
is_name: Final[Callable[[str], bool]] = BoundedCache(_is_name, entries=4096).__getitem__


def check_name(name: str, argument: str) -> str:
    """Returns `name` if it is valid: not empty, not too long, valid text without NUL."""
    if not name:
        raise BadArgument.named(argument, EMPTY_NAME)
    if len(name) > MAX_JOB_NAME_BYTES >> 2 or not name.isascii():
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            raise BadArgument.named(argument, "is not valid UTF-8") from None
        if size > MAX_JOB_NAME_BYTES:
            raise BadArgument.named(argument, f"has {size} bytes, at most {MAX_JOB_NAME_BYTES} fit")
    if "\0" in name:
        raise BadArgument.named(argument, "holds a NUL character")
    return name


def check_jid(jid: str) -> str:
    """Returns `jid` if it can be the id of a job."""
    return check_name(jid, "id")


def check_queue(queue: str) -> str:
    """Returns `queue` if it can be the name of a queue."""
    return check_name(queue, "queue")


def json_text(value: Any, argument: str = "data") -> str:
    """Returns the JSON text of `value`: a `JsonText` as it is, anything else encoded."""
    written = json_data(value, argument)
    return written if type(written) is str else written.decode()  # type: ignore[union-attr]  # bytes


def json_data(value: Any, argument: str = "data") -> str | bytes:
    """Like `json_text`; a long text is returned as the bytes that are stored.

    A text of megabytes is not decoded again: one wide character is enough to make that hold the
    interpreter for 50 ms.
    """
    if type(value) is JsonText:
        text = str(value)
        try:
            from_json(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            raise BadArgument.named(argument, f"is not JSON: {shortened(text)}") from None
        return text
    try:
        is_long = type(value) is str and len(value) > _TEXT_PIECE_CHARS
        encoded = _encoded_text(value) if is_long else _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        check_json(value, argument)
        raise BadArgument.named(
            argument,
            f"can't be written as JSON: {shortened(repr(value))}",
            hint=f"The encoder says: {error}.",
        ) from None
    if len(encoded) > _LONG_BYTES:
        check_json(value, argument, by_parts=True)
        return encoded
    if from_json(encoded) != value:
        check_json(value, argument)
    return encoded.decode()


def _encoded_text(text: str) -> bytes:
    """Returns a long text as JSON. It is encoded in pieces: one call would hold the interpreter for
    50 ms if a wide character makes all of 8 million as wide."""
    begins = range(0, len(text), _TEXT_PIECE_CHARS)
    pieces = [_ENCODER.encode(text[at : at + _TEXT_PIECE_CHARS])[1:-1] for at in begins]
    return b"".join([b'"', *pieces, b'"'])


def check_json(value: Any, argument: str = "data", *, by_parts: bool = False) -> None:
    """Refuses data that would not survive JSON: a datetime, for example, would return as text."""
    unfit = json_problem_in(value, argument, by_parts=by_parts)
    if unfit is not None:
        raise BadArgument(
            f"{unfit}, which JSON can't represent",
            hint=f"{unfit.advice[0].upper()}{unfit.advice[1:]}.",
        )


def check_size(text: str, what: str) -> bytes:
    """Returns the bytes of `text` if it is neither larger nor deeper than what a job may carry."""
    return check_bytes(text.encode(), what)


def check_bytes(data: bytes, what: str) -> bytes:
    """Returns JSON that is neither larger nor deeper than what a job may carry."""
    if (size := len(data)) > MAX_JOB_DATA_BYTES:
        raise JobTooLarge(f"{what} has {size} bytes, at most {MAX_JOB_DATA_BYTES} fit")
    # The depth is at most the number of opening brackets, and most texts have few.
    if (_has_many(data, b"[") or _has_many(data, b"{")) and (
        (depth := _depth(data)) > MAX_JOB_DATA_DEPTH
    ):
        raise JobTooLarge(
            f"{what} is nested {depth} levels deep, at most {MAX_JOB_DATA_DEPTH} fit",
            hint="Make it flatter, or carry it as a text.",
        )
    return data


def _has_many(data: bytes, bracket: bytes) -> bool:
    """Returns whether a bracket occurs so often that the depth has to be counted.

    Looking for a few of them takes a tenth of the time of counting all, which holds the interpreter
    for 6 ms if there are 8 MB.
    """
    at = -1
    for _ in range(MAX_JOB_DATA_DEPTH // 2 + 1):
        at = data.find(bracket, at + 1)
        if at < 0:
            return False
    return True


def _depth(data: bytes) -> int:
    """Returns how deeply lists and objects are nested in JSON, scanning it piece by piece.

    >>> _depth(rb'[{"a": "[[[", "\\\\\\"[": 1}, []]')
    2
    """
    deepest = depth = begin = 0
    is_in_text = False
    while begin < len(data):
        end = begin + _PIECE_BYTES
        while data[end - 1 : end] == b"\\":  # what it escapes is in the same piece
            end += 1
        parts = data[begin:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        for bracket in _BRACKET.findall(b"".join(parts[is_in_text::2])):
            depth += 1 if bracket in b"[{" else -1
            deepest = max(deepest, depth)
        is_in_text ^= len(parts) % 2 == 0
        begin = end
    return deepest


def shortened(text: str) -> str:
    """Returns an argument as an error shows it: whole, or cut after its beginning."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def is_unicode(text: str) -> bool:
    """Returns whether the text can be encoded; half of a surrogate pair can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_text(value: object) -> bool:
    return isinstance(value, str)


def check_tags(tags: Any) -> list[Tag]:
    """Returns `tags` as a list without duplicates; strings and numbers only."""
    if not isinstance(tags, list | tuple) or not all(
        isinstance(tag, str | int | float) and not isinstance(tag, bool) for tag in tags
    ):
        raise BadArgument.named("tags", f"must be strings or numbers: {shortened(ascii(tags))}")
    if len(tags) > MAX_JOB_TAGS:
        raise BadArgument(f"{len(tags)} tags, at most {MAX_JOB_TAGS} fit")
    distinct: dict[str, Tag] = {}
    for tag in tags:
        if isinstance(tag, int) and not -(2**63) <= tag < 2**63:
            raise BadArgument.named("tags", f"has a number of more than 64 bits: {tag}")
        distinct.setdefault(check_name(tag_text(tag), "tag"), tag)
    return list(distinct.values())


def check_jids(jids: Any) -> list[str]:
    """Returns the ids of a `depends` argument as a list without duplicates."""
    if not isinstance(jids, list | tuple) or not all(map(is_text, jids)):
        raise BadArgument.named("depends", f"must be ids of jobs: {shortened(ascii(jids))}")
    if len(jids) > MAX_JOB_DEPENDENCIES:
        raise BadArgument(f"{len(jids)} dependencies, at most {MAX_JOB_DEPENDENCIES} fit")
    return [check_name(jid, "depends") for jid in dict.fromkeys(jids)]


def check_jobs_count(count: int) -> None:
    """Refuses more jobs than fit one call."""
    if count > MAX_JOBS_PER_CALL:
        raise BadArgument(f"{count} jobs, at most {MAX_JOBS_PER_CALL} fit one call")


def check_parts_count(jobs: Sequence[NewJob]) -> None:
    """Refuses jobs that have too many tags and dependencies together."""
    # What is neither a list nor nothing is refused with its job.
    count = sum(
        len(parts) for job in jobs for parts in (job.tags, job.depends) if isinstance(parts, _LISTS)
    )
    if count > MAX_JOB_PARTS_PER_CALL:
        raise BadArgument(
            f"the jobs have {count} tags and dependencies, "
            f"at most {MAX_JOB_PARTS_PER_CALL} fit one call",
            hint="Put fewer jobs in one call.",
        )


def check_page_count(count: int) -> None:
    """Refuses a page of fewer than 0 entries, or of more than fit one call."""
    if count < 0:
        raise BadArgument.named("count", "must not be negative")
    check_jobs_count(count)


def tag_text(tag: Tag) -> str:
    """Returns the text under which a tag is indexed: 7 and 7.0 are both `7`."""
    return tag if isinstance(tag, str) else number_text(tag)


def number_text(number: float) -> str:
    """Returns a number as Qless writes it: whole numbers without a decimal point."""
    return str(int_if_whole(number))


def int_if_whole(number: float) -> float | int:
    """Returns `number` as an int if it is whole, so that JSON shows no decimal point."""
    return int(number) if number == int(number) else number


def cut_message(message: str, longest: int = MAX_JOB_MESSAGE_CHARS) -> str:
    """Returns a message of at most `longest` characters, with a mark where it was cut.

    Bytes that are not UTF-8 become question marks: a job must be able to fail with any message.
    """
    if not message.isascii():
        message = message.encode("utf-8", "replace").decode()
    if len(message) <= longest:
        return message
    return message[: longest - len(_CUT)] + _CUT
