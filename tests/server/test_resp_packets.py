"""Bytes on the RESP port: lines, packets, and what is not a command."""

import http.client
import json
import re
import socket

import pytest

from holdfast.limits import (
    MAX_COMMAND_ARGUMENTS,
    MAX_INLINE_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_REQUEST_BYTES,
)
from tests.server.running import DEADLINE, RawClient, Server, command


def test_a_line_is_a_command_too(client: RawClient) -> None:
    client.says(b"PING\r\n", b"+PONG\r\n")
    client.says(b'\r\n  ECHO "two words"\n', b"$9\r\ntwo words\r\n")
    client.says(b'JOBS.PUT \'{"queue":"q","id":"typed"}\'\r\n', b'$7\r\n"typed"\r\n')
    client.says(b'JOBS.PUT {"queue":"q","id":"bare"}\r\n', b'$6\r\n"bare"\r\n')


def test_quotes_and_escapes_of_a_line_are_those_of_redis(client: RawClient) -> None:
    client.says(b'ECHO "\\x41\\r\\n\\"\\q"\r\n', b'$5\r\nA\r\n"q\r\n')
    client.says(b"ECHO 'it\\'s \\n'\r\n", b"$7\r\nit's \\n\r\n")
    client.says(b"ECHO a\\b\r\n", b"$3\r\na\\b\r\n")
    client.says(b'ECHO ""\r\n', b"$0\r\n\r\n")


def test_lines_and_arrays_may_follow_each_other_in_one_packet(client: RawClient) -> None:
    client.says(b"PING\r\n" + command("ECHO", "x") + b"PING\r\n", b"+PONG\r\n$1\r\nx\r\n+PONG\r\n")


def test_commands_may_come_byte_by_byte(client: RawClient) -> None:
    for byte in b"PING\r\n" + command("ECHO", "hello"):
        client.socket.sendall(bytes([byte]))

    assert (client.receive(), client.receive()) == (b"PONG", b"hello")


def test_empty_arrays_are_no_commands(client: RawClient) -> None:
    client.says(b"*0\r\n*0\r\n" + command("PING"), b"+PONG\r\n")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"*1\r\n:1\r\n", b"expected '$', got ':'"),
        (b"*2\r\n$4\r\nPING\r\n*1\r\n", b"expected '$', got '*'"),
        (b"*1\r\n+PING\r\n", b"expected '$', got '+'"),
        (b"*2\r\n$4\r\nPING\r\n=5\r\ntxt:x\r\n", b"expected '$', got '='"),
        (b"*2\r\n$4\r\nPING\r\n(5\r\n", b"expected '$', got '('"),
        (b"*1\r\n>1000000000\r\n", b"expected '$', got '>'"),
        (b"*1\r\n%1\r\n", b"expected '$', got '%'"),
        (b"*1\r\nfoo\r\n", b"expected '$', got 'f'"),
        (b"*1\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n$blabla\r\n", b"invalid bulk length"),
        (b"*-1\r\n", b"invalid multibulk length"),
        (b"*x\r\n", b"invalid multibulk length"),
        (b"*99999999999\r\n", b"invalid multibulk length"),
        (b"*1\r\n$1\r\nxyz", b"longer than its stated length"),
        (b"*%d\r\n" % (MAX_COMMAND_ARGUMENTS + 1), b"arguments"),
        (b"*4294967295\r\n", b"invalid multibulk length"),
        (b"x" * (MAX_INLINE_BYTES + 2), b"a line may have"),
        (b'ECHO "open\r\n', b"unbalanced quotes"),
        (b'ECHO """three"""\r\n', b"unbalanced quotes"),
        (b"\x16\x03\x01\x02\x00", b"TLS"),
        (b"\x00\x01\x02", b"begins with"),
    ],
)
def test_bytes_of_another_kind_get_one_error_line_and_the_connection_ends(
    server: Server, client: RawClient, sent: bytes, said: bytes
) -> None:
    with server.connect() as broken:
        broken.socket.sendall(sent)
        rest = broken.rest()

        assert rest.startswith(b"-ERR Protocol error: ")
        assert said in rest
        assert rest.index(b"\r\n") == len(rest) - 2
    assert client.ask("PING") == b"PONG"


def test_a_client_of_http_is_told_of_the_other_port_in_http(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.resp_port, timeout=DEADLINE)

    connection.request("GET", "/livez")
    answer = connection.getresponse()

    assert answer.status == 400
    assert b"Use the HTTP port of the server: 9966" in answer.read()
    connection.close()


@pytest.mark.parametrize(
    ("words", "size", "most"),
    [
        (b"*1\r\n", MAX_REQUEST_BYTES + 1, MAX_REQUEST_BYTES),
        (b"*1\r\n", 10**19, MAX_REQUEST_BYTES),
        (b"*2\r\n$3\r\nput\r\n", MAX_MESSAGE_BYTES + 1, MAX_MESSAGE_BYTES),
        (b"*2\r\n$10\r\nENTITY.GET\r\n", MAX_MESSAGE_BYTES + 1, MAX_MESSAGE_BYTES),
    ],
)
def test_a_message_too_large_is_refused_when_it_is_announced_and_the_connection_ends(
    server: Server, client: RawClient, words: bytes, size: int, most: int
) -> None:
    with server.connect() as greedy:
        greedy.socket.sendall(words + b"$%d\r\n" % size)
        rest = greedy.rest()

        assert rest.startswith(b"-ERR message too large: ")
        assert rest.endswith(b" may have %d bytes\r\n" % most)
    assert client.ask("PING") == b"PONG"


def test_commands_before_a_broken_frame_are_answered_first(client: RawClient) -> None:
    put = command("JOBS.PUT", '{"queue":"q","id":"a"}')
    client.socket.sendall(command("PING") + put + b"*1\r\n:5\r\n")

    assert client.rest().startswith(b'+PONG\r\n$3\r\n"a"\r\n-ERR Protocol error: ')


def test_a_value_that_is_nested_too_deeply_is_bad_input(client: RawClient) -> None:
    deep = "[" * 100_000
    for words in [("EVENTS.SEND", "e", deep), ("JOBS.PUT", '{"data":' + deep)]:
        refused = str(client.ask(*words))
        assert refused.startswith("BAD_INPUT ")
        assert "nested too deeply" in refused


def test_an_exact_connection_gets_errors_as_objects(client: RawClient) -> None:
    assert client.ask("EXACT") == b"OK"

    code, _, text = str(client.ask("JOBS.RETRY", '{"id": "nobody", "worker": "w"}')).partition(" ")

    assert code == "UNKNOWN_JOB"
    assert json.loads(text) == {
        "error": "UnknownJob",
        "message": "there is no job 'nobody'",
        "hint": "",
        "position": None,
        "facts": {"jid": "nobody"},
    }
    client.ask("RESET")
    assert "{" not in str(client.ask("JOBS.RETRY", '{"id": "nobody", "worker": "w"}'))


_TALK = [
    command("PING"),
    command("ECHO", "a\r\nb"),
    command("JOBS.PUT", '{"queue":"talk","id":"one"}'),
    command("JOBS.LENGTH", '{"queue":"talk"}'),
    command("MULTI"),
    command("JOBS.PUT", '{"queue":"talk","id":"one"}'),
    command("JOBS.LENGTH", '{"queue":"talk"}'),
    command("EXEC"),
    command("NONSENSE"),
    command("HELLO", "3"),
    command("JOBS.LENGTH", '{"queue":"talk"}'),
    command("RESET"),
    command("QUIT"),
]


def _heard(server: Server, packets: list[bytes], *, waits: bool) -> bytes:
    """Returns all that the server says to packets, sent at once or each after a reply."""
    heard = b""
    with server.connect() as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for packet in packets:
            client.socket.sendall(packet)
            if waits:
                heard += client.socket.recv(65536)
        return heard + client.rest()


def test_however_commands_are_cut_into_packets_the_replies_are_the_same(server: Server) -> None:
    whole = b"".join(_TALK)
    pieces = [whole[begin : begin + 7] for begin in range(0, len(whole), 7)]
    number = re.compile(rb"\$2\r\nid\r\n:\d+")  # of the connection

    one_by_one, at_once, in_pieces = (
        number.sub(b"", _heard(server, packets, waits=waits))
        for packets, waits in ((_TALK, True), ([whole], False), (pieces, False))
    )

    assert one_by_one.startswith(b"+PONG\r\n$4\r\na\r\nb\r\n$5\r\n")
    assert one_by_one.endswith(b"$1\r\n1\r\n+RESET\r\n+OK\r\n")
    assert one_by_one == at_once == in_pieces


def test_a_client_that_sends_no_more_still_gets_the_answer_to_its_last_command(
    client: RawClient,
) -> None:
    client.socket.sendall(command("PING"))
    client.socket.shutdown(socket.SHUT_WR)

    assert client.rest() == b"+PONG\r\n"
