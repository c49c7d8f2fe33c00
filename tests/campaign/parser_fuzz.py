"""Differential parser fuzz

The same bytes, whole and in pieces, are the same commands and end with the same error. Valid
pipelines are mutated, and bytes of the protocol's own alphabet are put together at random. Each
input is read whole, byte by byte and in random cuts, by the server's reader of commands and by the
client's reader of replies.
"""

import random
import time
from collections.abc import Iterator
from typing import Any

from holdfast.client.replies import ProtocolError, ReplyReader
from holdfast.wire import CommandReader
from tests.campaign.frame import Result
from tests.server.running import command

ALPHABET = b"*$%~>|=(,#_!+-:.?\r\n\r\n0123456789 aZ\"'\\{}\x00\xff"
PIECES = [
    b"*1\r\n", b"*2\r\n", b"*0\r\n", b"*-1\r\n", b"*?\r\n", b"*01\r\n", b"*1000000\r\n",
    b"*1000001\r\n", b"*9999\r\n", b"$4\r\nPING\r\n", b"$-1\r\n", b"$0\r\n\r\n", b"$?\r\n",
    b"$1\r\naXX", b"$99999999999999999999\r\n", b"$80\r\n", b">1000000000\r\n", b">1\r\n",
    b"%1\r\n", b"%4294967296\r\n", b"~2\r\n", b"|1\r\n", b"=7\r\ntxt:abc\r\n", b"(123\r\n",
    b",1.5\r\n", b"#t\r\n", b"_\r\n", b"+OK\r\n", b"-ERR x\r\n", b":1\r\n", b"!3\r\nERR\r\n",
    b"PING\r\n", b"ECHO 'a b'\n", b"ECHO \"a\\x41\r\n", b"\r\n", b"GET / HTTP/1.1\r\n", b"\x16\x03",
    b"$2000\r\n", b"*2\r\n$3\r\nGET\r\n$3\r\nabc\r\n", b";4\r\nabcd\r\n", b".\r\n",
]  # fmt: skip
WORDS = [b"PING", b"GET", b"ECHO", b"", b"a", b"\r\n", b"*9\r\n", b"\n>1000\r\n", b"x" * 90]


def run(random: random.Random, seconds: float) -> Result:
    """Reads inputs in every way until the time is over."""
    tried = {"inputs of commands": 0, "inputs of replies": 0, "ways of cutting": 0}
    broken: list[str] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(broken) < 20:
        sent = _input(random)
        for name, read in (("commands", _commands), ("replies", _replies)):
            tried[f"inputs of {name}"] += 1
            whole = read([sent])
            for pieces in _cuts(sent, random):
                tried["ways of cutting"] += 1
                apart = read(pieces)
                if apart != whole:
                    broken.append(f"{name} of {pieces!r} are {apart!r}, and whole {whole!r}")
                    break
    return Result(tried=tried, broken=broken)


def _input(random: random.Random) -> bytes:
    kind = random.randrange(4)
    if kind == 0:
        return bytes(random.choices(ALPHABET, k=random.randrange(1, 60)))
    if kind == 1:
        return b"".join(random.choices(PIECES, k=random.randrange(1, 8)))
    sent = b"".join(
        command(*random.choices(WORDS, k=random.choice([1, 2, 3, 3, 40, 90])))
        for _ in range(random.randrange(1, 5))
    )
    return sent if kind == 2 else _mutated(sent, random)


def _mutated(sent: bytes, random: random.Random) -> bytes:
    """One to three small mistakes."""
    changed = bytearray(sent)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(changed) + 1)
        how = random.randrange(4)
        if how == 0:
            changed[at:at] = random.choice(PIECES)
        elif how == 1:
            changed[at : at + random.randrange(1, 4)] = b""
        else:
            changed[at : at + how - 1] = bytes([random.choice(ALPHABET)])
    return bytes(changed)


def _cuts(sent: bytes, random: random.Random) -> Iterator[list[bytes]]:
    """Byte by byte, in two, and in several pieces."""
    yield [bytes([byte]) for byte in sent]
    for count in (1, 1, 3, 6):
        places = sorted(random.randrange(len(sent) + 1) for _ in range(count))
        yield [
            sent[begin:stop]
            for begin, stop in zip([0, *places], [*places, len(sent)], strict=True)
            if begin < stop
        ]


def _commands(pieces: list[bytes]) -> Any:
    """Parses as a server does: returns the commands, the error, and the rest that it holds.

    The bounds are small, so that inputs reach them.
    """
    reader = CommandReader({b"GET": 60})
    reader.max_bytes = 200 if sum(map(len, pieces)) % 2 else 5_000
    commands: list[Any] = []
    for piece in pieces:
        commands += reader.feed(piece)
        if reader.error is not None:
            return commands, type(reader.error).__name__, reader.error.message
    return commands, None, reader.held


def _replies(pieces: list[bytes]) -> Any:
    """Parses as a client does."""
    reader = ReplyReader()
    replies: list[Any] = []
    for piece in pieces:
        reader.feed(piece)
        try:
            while (reply := reader.gets()) is not False:
                replies.append(_comparable(reply))
        except ProtocolError as error:
            return replies, str(error)
    return replies, None


def _comparable(reply: Any) -> Any:
    if isinstance(reply, list):
        return [_comparable(each) for each in reply]
    return ("error", str(reply)) if isinstance(reply, Exception) else reply
