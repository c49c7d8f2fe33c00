"""RESP as bytes: commands in, replies out, no sockets.

A command is an array of bulk strings, or a line of words as people type it. Replies are written in
protocol 2 or 3; where the two differ, the function takes the protocol's number.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import hiredis

from holdfast.errors import BadFrame, HttpOnRespPort, RequestTooLarge
from holdfast.limits import MAX_COMMAND_ARGUMENTS, MAX_INLINE_BYTES, MAX_REQUEST_BYTES

Command = list[bytes]

NULL_2: Final = b"$-1\r\n"
NULL_3: Final = b"_\r\n"
OK: Final = b"+OK\r\n"
PONG: Final = b"+PONG\r\n"

_BREAKS: Final = re.compile(r"[\r\n]+")
_ARRAY: Final = re.compile(rb"\*(\d{1,20})\r\n")
_BULK: Final = re.compile(rb"\$(\d{1,20})\r\n")
_PARTIAL_HEADER: Final = re.compile(rb"[*$]\d{0,20}\r?\Z")  # a header whose rest is still to come
_HTTP: Final = re.compile(rb"[A-Z]+ \S+ HTTP/\d")
_TLS: Final = 0x16  # the first byte of a TLS handshake
_STAR: Final = 0x2A
_PAIR: Final = b"*2"  # begins a command of two words
SMALL_BYTES: Final = 4_096  # of a command that is read in one step
_PARSED_BYTES: Final = 128 * 1024  # of a packet that hiredis reads
_LARGE_ARRAY: Final = re.compile(rb"\*\d{4}")
_LARGE_OTHER: Final = re.compile(rb"[%~>|]\d{4}")  # maps, sets, pushes and attributes
_END: Final = b"*0\r\n"  # an empty array: read as one only if everything before it is complete
_COUNTS: Final = {b"*%d" % count: count for count in range(1, 33)}  # the headers of small commands
_MANY_WORDS: Final = 32  # that are still missing, before they are read as a run
_SHORT_RUN: Final = 16  # words; a shorter run is read word by word
_RUN_BYTES: Final = 65_536  # of a run
_WORD_BYTES: Final = 6  # that a word has at least: `$0`, and two line breaks
_LARGE_WORD: Final = 65_536  # bytes that are not copied twice
_RELEASED_WORDS: Final = 1_000  # in one step
_BLANKS: Final = b" \t\r\n"
_OTHER_TYPES: Final = b"$+-:%~>|=(,#_!."  # what replies begin with, and no command

# A word that someone types, as Redis reads it: plain, in quotes, or plain and then in quotes. What
# begins as JSON does keeps the quotes that it has inside.
_WORD: Final = re.compile(
    rb"""\s*+([{\[]\S*+|[^\s"']*+)(?:"((?:\\.|[^"\\])*+)"|'((?:\\'|[^'])*+)')?+(?!\S)""", re.DOTALL
)
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class CommandReader:
    """Parses commands from the bytes of one connection, however they are split into packets.

    One method says what a command is: `_read`. It checks every length before it relies on it, and
    allocates no memory for what has not arrived. Packets of whole commands, as most are, are read
    by faster methods: `read_single_command`, `_read_small_command`, and hiredis, in C. They accept
    only the exact bytes that client libraries write, so they never differ from `_read`.
    """

    def __init__(self, argument_bytes: Mapping[bytes, int] | None = None) -> None:
        """`argument_bytes` bounds each argument of some commands further."""
        self.max_bytes = MAX_REQUEST_BYTES  # of one command
        self.stops_early = False  # after a command, if more follows: `max_bytes` may change then
        self.has_stopped = False
        # Set when the last data is not a command, or too large to be one: nothing can follow.
        self.error: BadFrame | RequestTooLarge | None = None
        self._argument_bytes = argument_bytes or {}
        self._parser = hiredis.Reader()
        self._fast_path_bytes = min([_PARSED_BYTES, *self._argument_bytes.values()])
        self._held = bytearray()  # what is not complete yet
        self._wanted = 0  # bytes that must be held before parsing continues
        self._words: Command = []  # of a command that is not complete yet
        self._missing = 0  # words of it that are still to come
        self._size = 0  # bytes of it so far

    @property
    def held(self) -> int:
        """Bytes of a command that is not complete yet."""
        return len(self._held) + (self._size if self._missing else 0)

    @property
    def is_between_commands(self) -> bool:
        """Returns whether no byte of the next command has arrived, and more can follow."""
        return not self._held and not self._missing and self.error is None

    @property
    def awaited(self) -> int:
        """Bytes that are missing of a word: until they arrive, there is nothing to parse."""
        return max(0, self._wanted - len(self._held)) if self._held else 0

    def release(self) -> Iterator[None]:
        """Releases the received part of a command, in steps; nothing can follow."""
        self._held = bytearray()
        words, self._words, self._missing = self._words, [], 0
        while words:
            del words[-_RELEASED_WORDS:]
            yield

    def feed(self, data: bytes) -> list[Command]:
        """Returns the commands that `data` completes; afterwards `error` says whether more can
        follow."""
        commands: list[Command] = []
        self.has_stopped = False
        if self._held:
            self._held += data
            if len(self._held) < self._wanted:
                return commands
            if self._wanted > _LARGE_WORD:
                self._take_word(commands)
            data, self._held = bytes(self._held), bytearray()
        elif (whole := self.feed_whole(data)) is not None:
            return whole
        try:
            at = self._read(data, commands)
        except (BadFrame, RequestTooLarge) as error:
            self.error = error.with_traceback(None)  # whose frames hold the connection
            self._words, self._missing = [], 0
        else:
            if at < len(data):
                self._held += memoryview(data)[at:]
        return commands

    def _take_word(self, commands: list[Command]) -> None:
        """Takes the word that was awaited; it may have 80 MB, so it is copied only once."""
        begin, stop = self._held.index(b"\n") + 1, self._wanted - 2
        if self._held[stop : stop + 2] != b"\r\n":
            return  # `_read` says what is wrong
        with memoryview(self._held) as held:
            self._words.append(bytes(held[begin:stop]))
        self._size += stop - begin
        self._missing -= 1
        del self._held[: stop + 2]
        if not self._missing:
            commands.append(self._words)

    def feed_whole(self, data: bytes) -> list[Command] | None:
        """Returns the commands of `data` if the faster methods can read it; if None, use
        `feed`."""
        if self._held or self._missing or len(data) > min(self._fast_path_bytes, self.max_bytes):
            return None
        if len(data) <= SMALL_BYTES and (only := read_single_command(data)) is not None:
            return [only]
        return self._read_whole(data)

    def _read_whole(self, data: bytes) -> list[Command] | None:
        """Returns the commands, if `data` is made of whole ones and hiredis may see it.

        hiredis reads all of RESP: it allocates memory for as many elements as a header announces,
        and takes other types for words. So no header with a large number reaches it, and what it
        has read, written again, must be the same bytes.
        """
        if data[:1] != b"*" or data[-2:] != b"\r\n" or _may_be_large(data):
            return None
        reader = self._parser
        try:
            reader.feed(data)
            reader.feed(_END)
            commands = list(iter(reader.gets, False))
            if commands and commands.pop() == [] and all(commands) and _encoded(commands) == data:
                return commands
        except Exception:  # hiredis has several, and `_read` knows what to say
            pass
        self._parser = hiredis.Reader()
        return None

    def _read(self, data: bytes, commands: list[Command]) -> int:
        """Takes commands off the front of `data`, and returns how far it has come."""
        at, end = 0, len(data)
        self._wanted = 0
        while at < end:
            if commands and self.stops_early:
                self.has_stopped = True
                return at
            if not self._missing:
                if data[at] != _STAR:
                    after = self._read_line(data, at, commands)
                    if after == at:
                        return at
                    at = after
                    continue
                header = _ARRAY.match(data, at)
                if header is None:
                    return _unfinished(data, at, "*")
                at = header.end()
                self._begin(int(header[1]))
            at, complete = self._read_words(data, at)
            if not complete:
                return at
            if self._words:
                commands.append(self._words)
        return at

    def _begin(self, count: int) -> None:
        if count > MAX_COMMAND_ARGUMENTS:
            raise BadFrame(
                f"invalid multibulk length: a command may have {MAX_COMMAND_ARGUMENTS} arguments"
            )
        if count * _WORD_BYTES > self.max_bytes:
            raise RequestTooLarge(f"message too large: a command may have {self.max_bytes} bytes")
        self._words, self._missing, self._size = [], count, 0

    def _read_words(self, data: bytes, at: int) -> tuple[int, bool]:
        """Takes the words of a command; returns whether it is complete."""
        words = self._words
        is_run = self._missing > _MANY_WORDS
        while self._missing:
            if is_run and words:
                before = self._missing
                at = self._read_run(data, at)
                is_run = before - self._missing >= _SHORT_RUN  # trying again would only cost time
            header = _BULK.match(data, at)
            if header is None:
                return _unfinished(data, at, "$"), False
            begin = header.end()
            size = int(header[1])
            self._check_size(size)
            stop = begin + size
            if stop + 2 > len(data):
                self._wanted = stop + 2 - at
                return at, False
            if not data.startswith(b"\r\n", stop):
                raise BadFrame("a bulk string is longer than its stated length")
            words.append(data[begin:stop])
            self._size += size
            self._missing -= 1
            at = stop + 2
        return at, True

    def _read_run(self, data: bytes, at: int) -> int:
        """Takes words that are written in the usual way, all but the last of a command.

        A command of a million words must not hold up other clients, and this takes a fifth of the
        time of parsing each word.
        """
        parts = data[at : at + _RUN_BYTES].split(b"\r\n")
        most = self._argument_bytes.get(self._words[0].upper(), self.max_bytes)
        size, missing = self._size, self._missing
        append = self._words.append
        for header, word in zip(parts[:-1:2], parts[1:-1:2], strict=False):
            length = len(word)
            if header != b"$%d" % length or missing == 1:
                break
            if size + length > self.max_bytes or length > most:
                break
            append(word)
            size += length
            missing -= 1
            at += len(header) + length + 4
        self._size, self._missing = size, missing
        return at

    def _check_size(self, size: int) -> None:
        """Refuses a word of `size` bytes when it is announced, before any of it has arrived."""
        if self._size + size > self.max_bytes:
            raise RequestTooLarge(f"message too large: a command may have {self.max_bytes} bytes")
        most = self._argument_bytes.get(self._words[0].upper(), size) if self._words else size
        if size > most:
            raise RequestTooLarge(f"message too large: it may have {most} bytes")

    def _read_line(self, data: bytes, at: int, commands: list[Command]) -> int:
        """Takes one command as people type it, if its line is complete."""
        first = data[at]
        if first == _TLS:
            raise BadFrame("this looks like TLS, but this port speaks plain RESP")
        if first in _OTHER_TYPES:
            raise BadFrame(f"expected '*', got {chr(first)!r}: a command is an array of words")
        if not 32 <= first < 127 and first not in _BLANKS:
            raise BadFrame("a command begins with * or with a word")
        end = data.find(b"\n", at)
        if (len(data) if end < 0 else end) - at > MAX_INLINE_BYTES:
            raise BadFrame(f"a line may have {MAX_INLINE_BYTES} bytes; send an array instead")
        if end < 0:
            return at
        line = data[at:end]
        if _HTTP.match(line):
            raise HttpOnRespPort("this is HTTP, but this port speaks RESP")
        words = _split(line)
        if words:
            commands.append(words)
        return end + 1


def read_single_command(data: bytes) -> Command | None:
    """Returns the command in `data`, if there is exactly one, small and as libraries write it.

    A command of two words, the form of all operations, is compared with the bytes that it should
    have, which takes a third of a parser's time.

    >>> read_single_command(b"*1\\r\\n$4\\r\\nPING\\r\\n")
    [b'PING']
    >>> read_single_command(b"*2\\r\\n$4\\r\\nECHO\\r\\n$2\\r\\nhi\\r\\n")
    [b'ECHO', b'hi']
    """
    parts = data.split(b"\r\n", 4)
    if parts[0] != _PAIR:
        return _read_small_command(data)
    if len(parts) != 5:
        return None
    _, first_size, first, second_size, rest = parts
    if (
        first_size != b"$%d" % len(first)
        or second_size != b"$%d" % (len(rest) - 2)
        or rest[-2:] != b"\r\n"
    ):
        return None
    return [first, rest[:-2]]


def _read_small_command(data: bytes) -> Command | None:
    """Returns the command in `data`, if there is exactly one, and it is small and has no line break
    inside a word.

    >>> _read_small_command(b"*3\\r\\n$3\\r\\nSET\\r\\n$1\\r\\na\\r\\n$1\\r\\nb\\r\\n")
    [b'SET', b'a', b'b']
    """
    if b"\r\n*" in data:
        return None
    parts = data.split(b"\r\n")
    count = _COUNTS.get(parts[0])
    if count is None or len(parts) != 2 * count + 2 or parts.pop():
        return None
    words = parts[2::2]
    if parts[1::2] != [b"$%d" % len(word) for word in words]:
        return None
    return words


def _may_be_large(data: bytes) -> bool:
    """Returns whether `data` may contain the header of an aggregate of a thousand elements.

    The header may be anywhere: hiredis does not check the two bytes after a word, so a header can
    follow any byte. The characters are searched one by one, because that is much faster.
    """
    return _LARGE_ARRAY.search(data) is not None or (
        (b">" in data or b"%" in data or b"~" in data or b"|" in data)
        and _LARGE_OTHER.search(data) is not None
    )


def _encoded(commands: list[Command]) -> bytes:
    """Returns the commands as a client's library writes them."""
    pack = hiredis.pack_command
    return b"".join([pack(tuple(words)) for words in commands])  # type: ignore[arg-type]  # its hint is a tuple of one


def _unfinished(data: bytes, at: int, expected: str) -> int:
    """Raises, with the message of Redis, unless the data can still become a header."""
    if len(data) > at and not _PARTIAL_HEADER.match(data, at):
        first = data[at : at + 1].decode("latin-1")
        if first != expected:
            raise BadFrame(f"expected {expected!r}, got {first!r}: a word is a bulk string")
        raise BadFrame(f"invalid {'bulk' if expected == '$' else 'multibulk'} length")
    return at


def _split(line: bytes) -> Command:
    r"""Returns the words of a line, with quotes and escapes as Redis has them.

    >>> _split(rb'''ECHO "a b\n\x41" 'it\'s' a\b {"to":"ann"}''')
    [b'ECHO', b'a b\nA', b"it's", b'a\\b', b'{"to":"ann"}']
    """
    words: Command = []
    line = line.strip()
    at = 0
    while at < len(line):
        found = _WORD.match(line, at)
        if found is None:
            raise BadFrame("unbalanced quotes in request")
        plain, double, single = found.groups(b"")
        words.append(plain + _ESCAPE.sub(_unescaped, double) + single.replace(b"\\'", b"'"))
        at = found.end()
    return words


def _unescaped(found: re.Match[bytes]) -> bytes:
    code, letter = found.groups()
    return bytes.fromhex(code.decode()) if code else _ESCAPED.get(letter, letter)


# --- replies -------------------------------------------------------------------------------------


def closing_reply(failed: BadFrame | RequestTooLarge) -> bytes:
    """Returns the error that is sent last, before the connection is closed."""
    if isinstance(failed, HttpOnRespPort):
        return _http_refusal(failed)
    kind = "Protocol error: " if isinstance(failed, BadFrame) else ""
    return error(f"ERR {kind}{failed.message}")


def _http_refusal(failed: HttpOnRespPort) -> bytes:
    """Returns the answer in HTTP, so that curl and browsers show it."""
    body = f"{failed.message}. {failed.hint}\n".encode()
    return (
        b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)
    )


def bulk(value: bytes) -> bytes:
    """Returns a bulk string.

    >>> bulk(b"hello")
    b'$5\\r\\nhello\\r\\n'
    """
    return b"".join((b"$%d\r\n" % len(value), value, b"\r\n"))


def simple(text: str) -> bytes:
    return b"+%b\r\n" % text.encode()


def error(text: str) -> bytes:
    """Returns an error line: its first word is the code, and line breaks become blanks."""
    return b"-%b\r\n" % _BREAKS.sub(" ", text).encode(errors="replace")


def integer(number: int) -> bytes:
    return b":%d\r\n" % number


def double(number: float, protocol: int) -> bytes:
    whole = math.isfinite(number) and number == int(number)
    text = b"%d" % number if whole else repr(number).encode()
    return b",%b\r\n" % text if protocol == 3 else bulk(text)


def text_of(word: bytes) -> str:
    """Returns a word as text; bytes that are not UTF-8 survive the round trip."""
    return word.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def null(protocol: int) -> bytes:
    return NULL_3 if protocol == 3 else NULL_2


def array(items: Iterable[bytes]) -> bytes:
    """Returns an array of replies that are already encoded."""
    parts = list(items)
    return b"".join((b"*%d\r\n" % len(parts), *parts))


def push(items: Iterable[bytes], protocol: int) -> bytes:
    """Returns a message that no command asked for: an array in protocol 2, a push in protocol 3."""
    written = array(items)
    return b">" + written[1:] if protocol == 3 else written


def mapping(pairs: Iterable[tuple[bytes, bytes]], protocol: int) -> bytes:
    """Returns a map in protocol 3, an array of keys and values in protocol 2."""
    parts = [part for pair in pairs for part in pair]
    if protocol == 3:
        return b"%%%d\r\n%b" % (len(parts) // 2, b"".join(parts))
    return array(parts)
