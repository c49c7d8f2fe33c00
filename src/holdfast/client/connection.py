"""One connection of a client: a socket, and a reader of replies."""

import select
import socket
import ssl
import struct
import time
from contextlib import suppress
from functools import partial
from typing import Any, Final

from holdfast.client import calls
from holdfast.client.addresses import look_up
from holdfast.client.calls import ConnectionBroken
from holdfast.client.replies import ProtocolError, ReplyReader
from holdfast.client.urls import RESP_SIDE, ServerTarget
from holdfast.defaults import DEFAULT_SPACE
from holdfast.errors import HoldfastError, NotAuthenticated, Unreachable
from holdfast.keepalive import keep_alive

_CHUNK: Final = 65_536
_FOREVER: Final = 1e9  # seconds
_LATE: Final = (TimeoutError, BlockingIOError)  # SO_RCVTIMEO raises the second
_NOT_READY: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_TIMEVAL: Final = struct.Struct("ll")


class Connection:
    """Talks to a server, one request at a time."""

    def __init__(
        self, target: ServerTarget, tls: ssl.SSLContext | None, seconds: float | None = None
    ) -> None:
        """Connects and logs in within `seconds`, or within the connection timeout."""
        end = time.monotonic() + (target.connect_timeout if seconds is None else seconds)
        self._target = target
        self._reader = ReplyReader()
        self._socket = open_socket(target, tls, end)
        self._set_timeout = self._socket.settimeout if tls else partial(_set_timeout, self._socket)
        self._timeout = 0.0
        self.space = DEFAULT_SPACE
        try:
            self._greet(end)
        except BaseException:
            self._socket.close()
            raise
        self._watch = select.poll()
        self._watch.register(self._socket, select.POLLIN)

    @property
    def is_stale(self) -> bool:
        """Returns whether data arrived unasked: the server has closed the connection, or is about
        to."""
        return bool(self._watch.poll(0))

    def ask(self, data: bytes, count: int, timeout: float) -> Any:
        """Sends commands and returns their replies: one as it is, several as a list.

        Raises `ConnectionBroken` if that happens or the time runs out before the last reply.
        """
        end = time.monotonic() + timeout
        if timeout != self._timeout:
            self._limit(timeout)
        self._send(data, end)
        if count == 1:
            return self._receive(end)
        return [self._receive(end, is_limited=number == 0) for number in range(count)]

    def ask_each(self, data: bytes, count: int, timeout: float, replies: list[Any]) -> None:
        """Like `ask`, but appends replies as they arrive: those before a break are kept."""
        end = time.monotonic() + timeout
        self._limit(timeout, was_sent=False)
        wanted = len(replies) + count
        is_limited = len(data) <= _CHUNK
        try:
            if is_limited:
                self._send(data, end)
            else:
                self._send_and_receive(data, end, replies)
        except ConnectionBroken as broken:
            broken.was_sent = True  # the first commands may have arrived, and be complete
            raise
        while len(replies) < wanted:
            replies.append(self._receive(end, is_limited=is_limited))
            is_limited = False

    def send_only(self, data: bytes, timeout: float) -> None:
        """Sends a command whose reply arrives among other messages."""
        self._limit(timeout)
        self._send(data, time.monotonic() + timeout)

    def receive(self, timeout: float | None) -> Any:
        """Returns the next reply or message."""
        reply = self._next()
        if reply is not False:
            return reply
        seconds = _FOREVER if timeout is None else timeout
        self._limit(seconds)
        return self._receive(time.monotonic() + seconds)

    def enter(self, space: str, seconds: float | None = None) -> None:
        """Runs all further commands in `space`."""
        timeout = self._target.connect_timeout if seconds is None else seconds
        reply = self.ask(calls.words("SPACE", space), 1, timeout)
        if reply != b"OK":
            raise calls.failure(reply)
        self.space = space

    def shut_down(self) -> None:
        """Shuts the socket down, which also wakes a thread that reads from it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    # --- bytes -----------------------------------------------------------------------------------

    def _send(self, data: bytes, end: float) -> None:
        """Passes all bytes to the operating system. While a byte is missing, the command that ends
        with it can't have run."""
        try:
            sent = self._socket.send(data)
            while sent < len(data):
                self._limit(end - time.monotonic(), was_sent=False)
                sent += self._socket.send(memoryview(data)[sent:])
        except _LATE:
            raise ConnectionBroken(self._timeout_reason(), was_sent=False, is_late=True) from None
        except (OSError, ValueError) as error:
            raise ConnectionBroken(self._broken_reason(error), was_sent=False) from None
        if len(data) > _CHUNK:  # which may have taken most of the time
            self._limit(end - time.monotonic())

    def _send_and_receive(self, data: bytes, end: float, replies: list[Any]) -> None:
        """Sends many commands, and appends the replies that arrive meanwhile.

        A server whose replies nobody reads stops reading commands.
        """
        unsent = memoryview(data)
        watch = select.poll()
        watch.register(self._socket, select.POLLIN | select.POLLOUT)
        self._socket.settimeout(0)
        try:
            while unsent:
                watch.poll(max(0.0, end - time.monotonic()) * 1000)
                if time.monotonic() >= end:
                    raise TimeoutError
                with suppress(*_NOT_READY):
                    unsent = unsent[self._socket.send(unsent) :]
                with suppress(*_NOT_READY):
                    self._take_replies(self._socket.recv(_CHUNK), replies)
        except TimeoutError:
            raise ConnectionBroken(self._timeout_reason(), was_sent=True, is_late=True) from None
        except (OSError, ValueError) as error:
            raise ConnectionBroken(self._broken_reason(error), was_sent=True) from None
        finally:
            self._socket.settimeout(None)
            self._timeout = 0.0

    def _take_replies(self, data: bytes, replies: list[Any]) -> None:
        """Appends all replies that these bytes complete."""
        if not data:
            raise ConnectionBroken(self._broken_reason(None), was_sent=True)
        self._reader.feed(data)
        while (reply := self._next()) is not False:
            replies.append(reply)

    def _receive(self, end: float, *, is_limited: bool = True) -> Any:
        """Returns the next reply. `is_limited` means that the socket's timeout is set."""
        reader = self._reader
        try:
            reply = reader.gets()
            if reply is False and not is_limited:
                self._limit(end - time.monotonic())
            while reply is False:
                data = self._socket.recv(_CHUNK)
                if not data:
                    raise ConnectionBroken(self._broken_reason(None), was_sent=True)
                reply = reader.take(data)
                if reply is False:  # a large reply arrives in pieces
                    self._limit(end - time.monotonic())
        except ProtocolError as error:
            raise ConnectionBroken(not_resp_reason(self._target, error), was_sent=True) from None
        except _LATE:
            raise ConnectionBroken(self._timeout_reason(), was_sent=True, is_late=True) from None
        except (OSError, ValueError) as error:
            raise ConnectionBroken(self._broken_reason(error), was_sent=True) from None
        return reply

    def _next(self) -> Any:
        try:
            return self._reader.gets()
        except ProtocolError as error:
            raise ConnectionBroken(not_resp_reason(self._target, error), was_sent=True) from None

    def _limit(self, timeout: float, *, was_sent: bool = True) -> None:
        """Sets the socket's timeout. Changing it costs a system call."""
        if timeout <= 0:
            raise ConnectionBroken(self._timeout_reason(), was_sent=was_sent, is_late=True)
        if timeout != self._timeout:
            self._set_timeout(timeout)
            self._timeout = timeout

    # --- greetings -------------------------------------------------------------------------------

    def _greet(self, end: float) -> None:
        """Logs in and asks for exact values; raises the error of a refusal."""
        commands = greeting(self._target)
        replies: list[Any] = []
        try:
            left = end - time.monotonic()
            self.ask_each(b"".join(commands), len(commands), left, replies)
        except ConnectionBroken as broken:
            if not any(map(calls.is_error, replies)):
                raise Unreachable(broken.reason) from None
        check_greeting(replies)

    def _timeout_reason(self) -> str:
        return timeout_reason(self._target)

    def _broken_reason(self, error: BaseException | None) -> str:
        return broken_reason(self._target, error)


def open_socket(target: ServerTarget, tls: ssl.SSLContext | None, end: float) -> socket.socket:
    """Returns a socket connected to the server; raises `Unreachable` at `end`."""
    opened: socket.socket | None = None
    try:
        opened = _connected(target, end)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(opened)
        if tls is not None:
            opened.settimeout(_left(end))
            return tls.wrap_socket(opened, server_hostname=target.host)
        opened.settimeout(None)
        return opened
    except (OSError, UnicodeError) as error:  # ssl.SSLError is one too
        if opened is not None:
            opened.close()
        raise unreachable(target, error) from None


def _connected(target: ServerTarget, end: float) -> socket.socket:
    """Tries every address of the name in turn. The look-up and all tries share the time."""
    failure: OSError | None = None
    addresses = look_up(target.host, target.port).result(_left(end))
    for position, (family, kind, protocol, _, address) in enumerate(addresses):
        opened = socket.socket(family, kind, protocol)
        try:
            # An address that never answers leaves time for the next ones.
            opened.settimeout(_left(end) / (len(addresses) - position))
            opened.connect(address)
            return opened
        except OSError as error:
            opened.close()
            failure = error
    raise failure or OSError("the name has no address")


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _set_timeout(opened: socket.socket, seconds: float) -> None:
    """Sets the kernel's timeout: Python's own would cost a second system call per call."""
    whole = int(min(seconds, _FOREVER))
    value = _TIMEVAL.pack(whole, max(1, int((seconds - whole) * 1e6)) if seconds < _FOREVER else 0)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)


# --- shared by sync and async connections ---------------------------------------------------------


def greeting(target: ServerTarget) -> list[bytes]:
    """Returns the commands that a client sends first."""
    if not target.user and not target.password:
        return [calls.EXACT]
    return [calls.words("AUTH", target.user or "default", target.password), calls.EXACT]


def check_greeting(replies: list[Any]) -> None:
    """Raises the error with which a server refuses the client."""
    for reply in replies:
        if reply != b"OK":
            raise _refusal(calls.failure(reply))


def _refusal(error: HoldfastError) -> HoldfastError:
    if isinstance(error, NotAuthenticated):
        error.hint = "The URL names user and password: holdfast://user:password@host."
    return error


def not_resp_reason(target: ServerTarget, error: Exception) -> str:
    """Returns why the received data is not a reply. HTTP servers are recognised by its
    beginning."""
    if "b'H'" in str(error):
        return (
            f"{target.place} speaks HTTP: it is the HTTP side of a server, and the client uses the "
            f"{RESP_SIDE}"
        )
    return f"{target.place} does not speak RESP: {error}"


def timeout_reason(target: ServerTarget) -> str:
    return f"{target.place} did not answer in time"


def broken_reason(target: ServerTarget, error: BaseException | None) -> str:
    reason = getattr(error, "strerror", None) or "the server closed it"
    return f"the connection to {target.place} broke: {str(reason).lower()}"


def unreachable(target: ServerTarget, error: Exception) -> Unreachable:
    """Returns the error for a server that can't be reached."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Unreachable(
            f"the certificate of {target.place} is not trusted: {error.verify_message}",
            hint="Name the certificate that it was signed with: ?ca=/path/ca.pem.",
        )
    too_long = "it took too long" if isinstance(error, TimeoutError) else str(error)
    reason = getattr(error, "strerror", None) or too_long
    return Unreachable(f"{target.place} can't be reached: {str(reason).lower()}")
