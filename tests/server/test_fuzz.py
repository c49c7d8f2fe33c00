"""Bytes that no client would send: the server answers everyone else all along."""

import random
import time

from holdfast.operations import OPERATIONS
from tests.server.running import RawClient, Server, command

SECONDS = 3.0
ALLOWED_GROWTH = 150 * 1024 * 1024  # bytes: a few requests of the largest size may be on their way


def _random_bytes(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([1, 10, 100, 10_000]))


def _broken_frame(rng: random.Random) -> bytes:
    """A good command with something wrong: cut off, a byte changed, a length that lies."""
    name = rng.choice([*_HARMLESS, "eval", "hello", "multi", "subscribe", "get", "put", "script"])
    words: list[str | bytes] = [name, *(rng.choice(_ARGUMENTS) for _ in range(rng.randrange(4)))]
    frame = bytearray(command(*words))
    match rng.randrange(4):
        case 0:
            del frame[rng.randrange(len(frame)) :]
        case 1:
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        case 2:
            frame[1:2] = b"%d" % rng.choice([-5, 0, 9, 999_999, 2**31, 2**40])
        case _:
            pass
    return bytes(frame)


# A client without a name may add a user, and from then on only users are let in.
_HARMLESS = [name for name in OPERATIONS if not name.startswith("admin.")]
_ARGUMENTS = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\x80",
    b"\xdf\xff\xff\xff\xff",
    b'{"queue":"q","id":"x"}',
    b'{"id":1e999}',
    b'{"a":' * 2_000,
    b"9" * 400,
    b"\xff\xfe",
    b"\x05\x00\x00\x00\x00",
    b"\x10\x00\x00\x00\x02a\x00\xff\xff\xff\x7fx\x00\x00",
]


def _lines(rng: random.Random) -> bytes:
    words = [rng.choice(['"', "'", "\\", "PING", "x" * 50, "\0", "{"]) for _ in range(5)]
    return " ".join(words).encode() + rng.choice([b"\r\n", b"\n", b""])


def test_broken_bytes_disturb_no_one_and_take_no_memory(server: Server) -> None:
    rng = random.Random(8)
    kinds = [_random_bytes, _broken_frame, _broken_frame, _lines]
    before = server.resident_bytes
    end = time.monotonic() + SECONDS
    with server.connect() as healthy:
        strangers = [server.connect() for _ in range(8)]
        while time.monotonic() < end:
            # Several strangers are in the middle of their frames at the same time.
            place = rng.randrange(len(strangers))
            if not _send(strangers[place], rng.choice(kinds)(rng)) or rng.random() < 0.1:
                strangers[place].close()
                strangers[place] = server.connect()
            assert healthy.ask("ECHO", "well") == b"well"
        for stranger in strangers:
            stranger.close()
        assert healthy.ask("JOBS.PUT", '{"queue":"q","id":"end"}') == b'"end"'

    assert server.resident_bytes - before < ALLOWED_GROWTH
    assert '"level":"error"' not in server.log


def _send(client: RawClient, data: bytes) -> bool:
    """Sends without waiting, and reads what is there; says whether the connection is still open."""
    client.socket.setblocking(False)
    try:
        client.socket.send(data)
        return client.socket.recv(1 << 20) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_arguments_of_any_shape_are_answered_with_a_result_or_a_reason(client: RawClient) -> None:
    rng = random.Random(5)
    values = ["null", "-1", "0", "1e308", '""', '"x"', "[]", "{}", "[[]]", '{"a":[1]}', "true"]
    values += ['"\\u0000"', "[null]", '[{"name":1}]', "99999999999999999999", "0.1", '["a","a"]']
    failed = []
    for operation in OPERATIONS.values():
        if operation.kind == "wait":
            continue
        names = operation.arguments.__struct_encode_fields__
        for _ in range(12):
            chosen = [name for name in names if rng.random() < 0.7]
            pairs = ",".join(f'"{name}":{rng.choice(values)}' for name in chosen)
            reply = client.ask(operation.full_name, f"{{{pairs}}}")
            if str(reply).startswith("INTERNAL "):
                failed.append((operation.full_name, pairs))
    assert failed == []
