"""A small server: enough RESP to let real clients send Meduza's messages to a store."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.compat.meduza import wire
from holdfast.errors import HoldfastError
from holdfast.store import Store


@contextmanager
def resp_server(store: Store, *, port: int = 0) -> Iterator[int]:
    """Listens on a port, or else a free one, which it gives, until the block ends."""
    listener = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=_accept, args=(listener, store), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _accept(listener: socket.socket, store: Store) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rwb") as stream:
            while header := stream.readline():
                assert header == b"*2\r\n"
                kind, body = (stream.read(int(stream.readline()[1:]) + 2)[:-2] for _ in range(2))
                for part in _answer(store, kind.decode(), body):
                    stream.write(b"$%d\r\n%b\r\n" % (len(part), part) if part else b"*2\r\n")
                stream.flush()


def _answer(store: Store, kind: str, body: bytes) -> list[bytes]:
    try:
        query = wire.read_query(kind, body)
        result = store.entities._runner.transact(lambda tx: wire.execute(tx, query))
        reply = wire.write_reply(query, result)
    except HoldfastError as error:
        reply = wire.write_error(kind, error)
    return [b"", wire.reply_type(kind).encode(), reply]
