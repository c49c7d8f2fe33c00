"""Messages between a worker and the child processes of its slots: JSON, each after its length."""

import json
import struct
from typing import IO, Any, Final

import msgspec

__all__ = ["receive", "send"]

_LENGTH: Final = struct.Struct("<I")


def send(pipe: IO[bytes], message: Any) -> None:
    """Writes one message: plain data and structs, with integers of any size."""
    body = json.dumps(msgspec.to_builtins(message), separators=(",", ":")).encode()
    pipe.write(_LENGTH.pack(len(body)) + body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any | None:
    """Returns the next message as plain data; None when the other side is gone."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    [length] = _LENGTH.unpack(head)
    body = pipe.read(length)
    return json.loads(body) if len(body) == length else None
