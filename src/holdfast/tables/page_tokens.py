"""Page tokens: where a page ended, and a digest of the query that the token belongs to."""

import struct
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from binascii import b2a_base64
from typing import Any, Final, NamedTuple
from zlib import crc32

from holdfast.errors import InvalidPageToken
from holdfast.tables.plan import Index
from holdfast.tables.queries import Slice

_FORMAT: Final = b"\x02"
_checksum: Final = struct.Struct(">I").pack
_plain_head: Final = struct.Struct(">cI2s").pack
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


class Position(NamedTuple):
    """The end of a page: the last key, and the prefix of its hash key if the scan needs it."""

    key: bytes
    hash_prefix: bytes = b""


def forward_token(index: Index, at: int, begin: bytes, end: bytes, key: bytes) -> str:
    """Returns the token of the page after `key` in a forward scan.

    The keys of the index differ from byte `at` on.
    """
    digest = crc32(begin[at:] + b"\0\0" + end[at:], index.token_seed)
    return _with_checksum(_plain_head(_FORMAT, digest, b"\0\0") + key[at:])


def make_token(slice: Slice, distinct: bool, position: Position) -> str:
    """Returns the token of the page after `position`."""
    at = len(slice.base)
    key = position.key[at:]
    hash_bytes = position.hash_prefix[at:]
    length = len(hash_bytes).to_bytes(2) if hash_bytes else b"\0\0"
    raw = b"".join((_FORMAT, _digest(slice, distinct), length, key))
    return _with_checksum(raw)


def read_token(slice: Slice, distinct: bool, token: Any) -> Position:
    """Returns the position in a token that belongs to this query."""
    if not isinstance(token, str) or not token.isascii():
        raise InvalidPageToken("The token next must be a string from an earlier answer")
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-4]
    except (Base64Error, ValueError):
        raise InvalidPageToken("The token next is garbage") from None
    if _with_checksum(raw) != token:
        raise InvalidPageToken("The token next is damaged")
    head = _FORMAT + _digest(slice, distinct)
    if not raw.startswith(head):
        raise InvalidPageToken("The token next belongs to another query")
    at = len(head) + 2
    key = slice.base + raw[at:]
    if len(raw) < at or not slice.begin <= key < slice.end:
        raise InvalidPageToken("The token next is garbage")
    hash_bytes = int.from_bytes(raw[len(head) : at])
    return Position(key, slice.base + raw[at : at + hash_bytes] if hash_bytes else b"")


def _with_checksum(raw: bytes) -> str:
    """Returns the text of a token with a checksum.

    Without it, a truncated or changed token would be read as another position, and rows would be
    skipped or repeated.
    """
    text = b2a_base64(raw + _checksum(crc32(raw)), newline=False)
    return text.rstrip(b"=").translate(_URL_SAFE).decode()


def _digest(slice: Slice, distinct: bool) -> bytes:
    """Returns the digest of table, index, slice and order.

    It protects against mistakes, not against attacks: a forged token reads from another position in
    the same slice.
    """
    at = len(slice.base)
    seed = slice.index.token_seed + slice.reverse + 2 * distinct
    return crc32(slice.begin[at:] + b"\0\0" + slice.end[at:], seed).to_bytes(4)
