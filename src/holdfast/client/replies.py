"""Reads the replies of a server, however they are split, without trusting announced sizes.

A server may be broken, or malicious. A header that announces a billion elements is 13
bytes long, and a parser that allocates memory for them would crash the client. So every number is
checked when it arrives, and a list grows with its elements.
"""

import re
from typing import Any, Final

import hiredis

from holdfast.limits import (
    MAX_REPLY_BYTES,
    MAX_REPLY_DEPTH,
    MAX_REPLY_ELEMENTS,
    MAX_REPLY_LINE_BYTES,
)

ProtocolError: Final = hiredis.ProtocolError
ReplyError: Final = hiredis.ReplyError

_SMALL_BYTES: Final = 4_096
_NUMBER: Final = re.compile(rb"-?\d{1,20}")


class _OpenAggregate:
    """An aggregate whose elements are still to come."""

    __slots__ = ("items", "missing")

    def __init__(self, missing: int) -> None:
        self.items: list[Any] = []
        self.missing = missing


class ReplyReader:
    """Parses the bytes of one connection into replies: words, numbers, errors, null and lists.

    A map or a set of protocol 3 becomes a list; our own clients do not ask for them.
    """

    def __init__(self) -> None:
        self._data = b""
        self._at = 0  # where the next header begins
        self._held: list[bytes] = []  # what has arrived since then
        self._held_bytes = 0
        self._wanted = 0  # bytes that must be held before parsing continues
        self._open: list[_OpenAggregate] = []
        self._size = 0  # bytes of the reply that is being read

    def feed(self, data: bytes) -> None:
        """Adds received data."""
        if not self._held and self._at >= len(self._data):
            self._data, self._at = data, 0
        else:
            self._held.append(data)
            self._held_bytes += len(data)

    def take(self, data: bytes) -> Any:
        """Adds received data, and returns the next reply as `gets` does."""
        if not (self._data or self._held or self._open) and len(data) <= _SMALL_BYTES:
            # Most replies are a single small word in a packet of its own.
            header, _, rest = data.partition(b"\r\n")
            if header == b"$%d" % (len(rest) - 2) and rest[-2:] == b"\r\n":
                return rest[:-2]
        self.feed(data)
        return self.gets()

    def gets(self) -> Any:
        """Returns the next reply; False if it is incomplete. Raises `ProtocolError`."""
        if not self._data and not self._held:
            return False
        if self._held and not self._join():
            return False
        return self._read()

    def _join(self) -> bool:
        """Appends received bytes to the rest; False if a long word is still incomplete."""
        if len(self._data) - self._at + self._held_bytes < self._wanted:
            return False
        self._data = b"".join([self._data[self._at :], *self._held])
        self._at = self._held_bytes = self._wanted = 0
        self._held = []
        return True

    def _read(self) -> Any:
        while self._at < len(self._data):
            if self._open:
                self._read_words(self._open[-1])
            found = self._read_item()
            if found is _INCOMPLETE:
                return False
            if isinstance(found, _OpenAggregate):
                if found.missing:
                    self._open.append(found)
                    continue
                found = found.items
            if not self._open:
                self._size = 0
                self._drop_read_data()
                return found
            if (whole := self._add(found)) is not None:
                self._size = 0
                self._drop_read_data()
                return whole
        return False

    def _drop_read_data(self) -> None:
        if self._at == len(self._data):
            self._data, self._at = b"", 0

    def _read_words(self, into: _OpenAggregate) -> None:
        """Reads the available words of a list, except its last: the answers of a batch."""
        data, at = self._data, self._at
        find, append = data.find, into.items.append
        missing = into.missing
        while missing > 1:
            end = find(b"\r\n", at, at + 12)
            number = data[at + 1 : end]
            if end < 0 or data[at : at + 1] != b"$" or not number.isdigit():
                break
            stop = end + 2 + int(number)
            size = self._size + int(number) + _ITEM_BYTES
            if size > MAX_REPLY_BYTES or data[stop : stop + 2] != b"\r\n":
                break  # incomplete, or invalid
            append(data[end + 2 : stop])
            at, missing, self._size = stop + 2, missing - 1, size
        self._at, into.missing = at, missing

    def _add(self, item: Any) -> list[Any] | None:
        """Adds to the innermost list; returns the outermost one if that completes it."""
        while True:
            innermost = self._open[-1]
            innermost.items.append(item)
            innermost.missing -= 1
            if innermost.missing:
                return None
            item = innermost.items
            self._open.pop()
            if not self._open:
                return innermost.items

    def _read_item(self) -> Any:
        """Returns the next word, number or header, or `_INCOMPLETE`."""
        data, at = self._data, self._at
        end = data.find(b"\r\n", at, at + MAX_REPLY_LINE_BYTES)
        if end < 0:
            if len(data) - at >= MAX_REPLY_LINE_BYTES:
                raise ProtocolError(f"a line has more than {MAX_REPLY_LINE_BYTES} bytes")
            return _INCOMPLETE
        kind, text = data[at : at + 1], data[at + 1 : end]
        if kind == b"$":
            return self._read_word(text, end + 2)
        self._at = end + 2
        self._count_bytes(len(text))
        if kind == b"+":
            return text
        if kind == b"-":
            return ReplyError(text.decode(errors="replace"))
        if kind == b":":
            return _number(text)
        if kind == b"_":
            return None
        if kind in (b"*", b">", b"~", b"%"):
            return self._opened(_number(text) * (2 if kind == b"%" else 1))
        raise ProtocolError(f"{kind!r} is not the type of a reply")

    def _read_word(self, text: bytes, begin: int) -> Any:
        size = _number(text)
        if size < 0:
            self._at = begin
            return None
        if self._size + size + _ITEM_BYTES > MAX_REPLY_BYTES:
            raise ProtocolError(f"a reply has more than {MAX_REPLY_BYTES} bytes")
        stop = begin + size
        if stop + 2 > len(self._data):
            self._wanted = stop + 2 - self._at
            return _INCOMPLETE
        if not self._data.startswith(b"\r\n", stop):
            raise ProtocolError("a bulk string is longer than its stated length")
        self._at = stop + 2
        self._count_bytes(size)
        return self._data[begin:stop]

    def _opened(self, count: int) -> _OpenAggregate | None:
        if count < 0:
            return None
        if count > MAX_REPLY_ELEMENTS:
            raise ProtocolError(f"a reply has more than {MAX_REPLY_ELEMENTS} elements")
        if len(self._open) >= MAX_REPLY_DEPTH:
            raise ProtocolError(f"a reply is nested more than {MAX_REPLY_DEPTH} levels deep")
        return _OpenAggregate(count)

    def _count_bytes(self, size: int) -> None:
        self._size += size + _ITEM_BYTES
        if self._size > MAX_REPLY_BYTES:
            raise ProtocolError(f"a reply has more than {MAX_REPLY_BYTES} bytes")


class _Incomplete:
    pass


_INCOMPLETE: Final = _Incomplete()
_ITEM_BYTES: Final = 64  # memory of an element besides its text: empty ones count, too


def _number(text: bytes) -> int:
    if not _NUMBER.fullmatch(text):
        raise ProtocolError(f"{text[:40]!r} is not a number")
    return int(text)
