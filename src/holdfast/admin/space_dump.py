"""A whole space as lines of text, as it is stored: all layers, with their histories and expiries.

The first line says what follows; each other line is one stored pair, its key without the space:

    {"holdfast":"space","format":1}
    {"key":"FgQdAmZpcnN0AA==","value":"..."}

Pairs are loaded into an empty space as they are: a dump of that space is the same again. Only job
records contain whole keys; these lose the prefix of their space, and get that of the new one.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast import expiry
from holdfast.admin.consistency import position_of
from holdfast.admin.records import SpaceDump
from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import BadDump, SpaceNotEmpty
from holdfast.jobs.relocation import within_space, without_space
from holdfast.keys import after as after_key
from holdfast.keys import prefix_range
from holdfast.limits import COPIED_BYTES_PER_STEP, COPIED_KEYS_PER_STEP

FORMAT: Final = 1  # of the lines; the records in them have their own versions


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    holdfast: str
    format: int


class _Pair(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str


_HEAD: Final = msgspec.json.encode(_Head(holdfast="space", format=FORMAT)) + b"\n"
_read_head: Final = msgspec.json.Decoder(_Head).decode
_read_pair: Final = msgspec.json.Decoder(_Pair).decode


def dump_step(reader: Reader, after: str | None) -> SpaceDump:
    """Returns the next lines after `after`; the first ones begin with the header."""
    begin, end = prefix_range(reader.space)
    lines = [] if after is not None else [_HEAD]
    if after is not None:
        begin = after_key(reader.space + position_of(after))
    dropped = expiry.dropped_key(reader.space)
    size, count, last = 0, 0, b""
    for key, value in reader.scan(begin, end):
        if count == COPIED_KEYS_PER_STEP or size > COPIED_BYTES_PER_STEP:
            place = last[len(reader.space) :].hex()
            return SpaceDump(lines=b"".join(lines), keys=count, next=place)
        last = key
        if key == dropped:
            continue
        key_in_space = key[len(reader.space) :]
        lines.append(_line(key_in_space, without_space(key_in_space, value, reader.space)))
        size += len(lines[-1])
        count += 1
    return SpaceDump(lines=b"".join(lines), keys=count)


def dump(reader: Reader) -> Iterator[SpaceDump]:
    """Yields all lines, on one snapshot."""
    after = None
    while True:
        step = dump_step(reader, after)
        yield step
        if step.next is None:
            return
        after = step.next


def load(tx: Transaction, lines: bytes) -> int:
    """Puts the pairs of whole lines. Those that begin a dump need an empty space."""
    count = 0
    for number, line in enumerate(lines.split(b"\n"), 1):
        if not line.strip():
            continue
        if line.startswith(b'{"holdfast"'):
            _check_head(tx, line, number)
            continue
        try:
            pair = _read_pair(line)
            key, value = b64decode(pair.key, validate=True), b64decode(pair.value, validate=True)
            tx.put(tx.space + key, within_space(key, value, tx.space))
        except (msgspec.DecodeError, UnicodeDecodeError, Base64Error, RecursionError) as error:
            raise BadDump(f"this is not a stored pair: {error}", number=number) from None
        count += 1
    return count


def _check_head(tx: Transaction, line: bytes, number: int) -> None:
    try:
        head = _read_head(line)
    except msgspec.DecodeError as error:
        raise BadDump(f"this is not the head of a dump: {error}", number=number) from None
    if (head.holdfast, head.format) != ("space", FORMAT):
        raise BadDump(
            f"this Holdfast can't read a dump of {head.holdfast!r} in format {head.format}",
            number=number,
            hint="Load it with the Holdfast that wrote it, or a newer one.",
        )
    for _ in tx.scan(*prefix_range(tx.space), limit=1):
        raise SpaceNotEmpty("the space is not empty")


def _line(key: bytes, value: bytes) -> bytes:
    pair = _Pair(key=b64encode(key).decode(), value=b64encode(value).decode())
    return msgspec.json.encode(pair) + b"\n"
