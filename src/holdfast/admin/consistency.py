"""Checks whether the records of a space agree with each other, a bounded number of keys at a
time."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from holdfast.admin.records import CheckStep
from holdfast.engine.contract import Reader, read_counter
from holdfast.entities import consistency as entities
from holdfast.errors import BadInput, Conflict, StoreClosed, StoreUnreachable
from holdfast.events import consistency as events
from holdfast.jobs import consistency as jobs
from holdfast.keys import after as after_key
from holdfast.keys import describe, pack, prefix_range, unpack, unpack_first
from holdfast.limits import CHECKED_PER_STEP, MAX_REPORTED_PROBLEMS
from holdfast.tables import consistency as tables

KeyCheck: TypeAlias = Callable[[Reader, bytes, bytes], Iterator[str]]


def _no_problems(reader: Reader, key: bytes, value: bytes) -> Iterator[str]:
    """Checks nothing: expiry and metrics store nothing twice, so nothing of theirs can disagree."""
    return iter(())


# By the first part of a key below its space.
KEY_CHECKS: Final[Mapping[int, KeyCheck]] = {
    0: _no_problems,
    1: tables.problems_at,
    2: entities.problems_at,
    3: events.problems_at,
    4: jobs.problems_at,
    5: _no_problems,
}


def directory_problems(reader: Reader, key: bytes, value: bytes) -> Iterator[str]:
    """Yields what is wrong with an entry of the directory of spaces."""
    parts = unpack(key)
    if parts[1:2] == ("space",):
        last = read_counter(reader.get(pack(0, "last")))
        if not value.isdigit() or not 0 < int(value) <= last:
            yield f"the space {parts[2]!r} has the number {value!r}, and {last} was given last"


def check_step(reader: Reader, after: str | None, *, check: KeyCheck | None = None) -> CheckStep:
    """Checks the next keys of a space, after the one that `after` names.

    `check` replaces the checks of the layers, for the directory, which belongs to no layer.
    """
    begin, end = prefix_range(reader.space)
    if after is not None:
        begin = after_key(reader.space + position_of(after))
    pairs = list(reader.scan(begin, end, limit=CHECKED_PER_STEP))
    problems: list[str] = []
    for key, value in pairs:
        problems += _problems(reader, key, value, check)
    last = len(pairs) < CHECKED_PER_STEP
    place = b"" if last else pairs[-1][0][len(reader.space) :]
    return CheckStep(
        checked=len(pairs),
        problems=problems[:MAX_REPORTED_PROBLEMS],
        done=1.0 if last else _progress(place),
        next=None if last else place.hex(),
    )


def _problems(reader: Reader, key: bytes, value: bytes, check: KeyCheck | None) -> list[str]:
    try:
        check = check or KEY_CHECKS.get(unpack_first(key, len(reader.space))[0])
        if check is None:
            return [f"no layer knows the key {describe(key[len(reader.space) :])}"]
        return list(check(reader, key, value))
    except (Conflict, StoreClosed, StoreUnreachable):
        raise  # these are about the connection to the store, not about the key
    except Exception as error:  # a damaged record can make a decoder raise anything
        where = describe(key[len(reader.space) :])
        return [f"{where} can't be read: {type(error).__name__}: {error}"]


def position_of(after: str) -> bytes:
    """Returns the key, without its space, that a cursor of a page names."""
    try:
        return bytes.fromhex(after)
    except ValueError:
        raise BadInput(
            f"{after!r} is not a position to continue from",
            hint="Pass the `next` of the previous page.",
        ) from None


def _progress(place: bytes) -> float:
    """Returns roughly how much of a space is before a key, from 0 to 1.

    It assumes that the keys are spread evenly over layers and bytes; at least it never falls.
    """
    layer = min(max(place[0] - 0x20, 0), len(KEY_CHECKS) - 1)
    within = int.from_bytes(place[1:4].ljust(3, b"\0"), "big") / 2**24
    return (layer + within) / len(KEY_CHECKS)
