"""A connection to something that does not speak RESP is a lost one."""

import socket
import threading

import pytest

from holdfast.engine.valkey.address import parse
from holdfast.engine.valkey.connections import FAILURES, NotSent, ServerConnection


@pytest.mark.parametrize("said", [b"\x00nonsense\r\n", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 400\r\n"])
def test_nonsense_ends_a_connection_and_is_no_answer(said: bytes) -> None:
    """The driver's own error passed all who wait for a lost server to come back."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_answer, args=(listening, said))
        thread.start()
        host = listening.getsockname()
        address = parse(f"valkey://:word@127.0.0.1:{host[1]}")

        with pytest.raises((NotSent, *FAILURES)):
            ServerConnection(address, host).ask([("PING",)])
        thread.join()


def _answer(listening: socket.socket, said: bytes) -> None:
    client, _ = listening.accept()
    with client:
        client.recv(1000)
        client.sendall(said)
