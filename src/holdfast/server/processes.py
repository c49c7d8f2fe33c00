"""Several processes that serve one store on the same ports: `holdfast serve --processes N`.

The first process serves no clients. It reserves the ports, starts the other processes, passes
signals on to them, replaces one that ends unexpectedly, and exits after the last of them. Each of
the others is a complete server that listens on the same ports; the operating system spreads the
connections over them. They share only the store: commits, notices and waits reach across these
processes as they do between servers.
"""

import ctypes
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.errors import CannotServe, HoldfastError
from holdfast.limits import RESTARTED_PROCESS_SECONDS
from holdfast.server.addresses import Address
from holdfast.server.signals import StopSignals, accept_reloads, defer_reloads

_log = logging.getLogger(__name__)

_FORWARDED_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG: Final = 1  # PR_SET_PDEATHSIG
_READ_BYTES: Final = 65_536


class ReadinessReport(msgspec.Struct, frozen=True, kw_only=True):
    """Tells the first process that a server is ready, or why it can't serve."""

    addresses: list[Address] = []
    has_users: bool = False
    error: str = ""
    hint: str = ""


_read_reports: Final = msgspec.json.Decoder(ReadinessReport).decode_lines

Serve = Callable[
    [Callable[[ReadinessReport], None]], None
]  # runs one server, and reports when it is ready


class ReservedPorts:
    """Reserves ports for this program, also while none of its processes listens on them."""

    def __init__(self, *addresses: Address) -> None:
        self._sockets: list[socket.socket] = []
        self.addresses = []
        try:
            for address in addresses:
                # First without sharing: another program on the port would get some connections.
                address.bind(shared=False).close()
                bound = address.bind(shared=True)
                self._sockets.append(bound)
                self.addresses.append(Address(address.host, bound.getsockname()[1]))
        except HoldfastError:
            self.close()
            raise

    def close(self) -> None:
        for each in self._sockets:
            each.close()


class ProcessGroup:
    """The processes of one server, and the signals for them."""

    def __init__(self, count: int, serve: Serve) -> None:
        self._count = count
        self._serve = serve
        self._running: dict[int, int] = {}  # the pipe for the report of each process, by its id
        self._ready: dict[int, ReadinessReport] = {}
        self._restarts: list[float] = []  # when to replace processes that have ended
        self._has_served = False  # whether all of them were ready
        self._stopping = False
        self._stop_signals = StopSignals(time.monotonic)
        self._failure: ReadinessReport | None = None

    def run(self, ready: Callable[[ReadinessReport], None]) -> None:
        """Serves until a signal ends it; calls `ready` once all processes serve."""
        waking, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        before = {
            each: signal.signal(each, _do_nothing) for each in (*_FORWARDED_SIGNALS, signal.SIGCHLD)
        }
        wakeup = signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        try:
            accept_reloads()
            for _ in range(self._count):
                self._start()
            while self._running or self._restarts:
                self._wait(waking)
                if not self._has_served and len(self._ready) == self._count:
                    self._has_served = True
                    ready(next(iter(self._ready.values())))
        finally:
            signal.set_wakeup_fd(wakeup)
            for each, handler in before.items():
                signal.signal(each, handler)
            os.close(waking)
            os.close(woken)
        if self._failure is not None:
            raise CannotServe(self._failure.error, hint=self._failure.hint or None)

    def _start(self) -> None:
        reading, writing = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        # Until the child has its own handlers, it would lose a signal to those of its parent.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED_SIGNALS)
        try:
            process = os.fork()
            if process == 0:
                os.close(reading)
                _serve_in_child(self._serve, writing, parent)
        except OSError:
            os.close(reading)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(writing)
        self._running[process] = reading

    def _replace(self) -> None:
        """Starts a process in place of one that has ended, or tries again later."""
        try:
            self._start()
        except OSError as error:
            _log.error("can't start a process: %s", (error.strerror or str(error)).lower())
            self._restarts.append(time.monotonic() + RESTARTED_PROCESS_SECONDS)

    def _wait(self, waking: int) -> None:
        """Waits for a signal, a report, or the time to replace a process."""
        polling = select.poll()
        for number in (waking, *self._running.values()):
            polling.register(number, select.POLLIN)
        soonest = min(self._restarts, default=None)
        pause = None if soonest is None else max(0.0, soonest - time.monotonic()) * 1000
        ready = {number for number, _ in polling.poll(pause)}
        for process, number in list(self._running.items()):
            if number in ready:
                self._read_report(process, number)
        if waking in ready:
            self._forward_signals(os.read(waking, _READ_BYTES))
        for due in [each for each in self._restarts if each <= time.monotonic()]:
            self._restarts.remove(due)
            self._replace()

    def _read_report(self, process: int, reading: int) -> None:
        """Reads the report of a process; if the pipe is closed, the process has ended."""
        content = os.read(reading, _READ_BYTES)
        if not content:
            self._note_end(process)
            return
        for report in _read_reports(content):
            if not report.error:
                self._ready[process] = report
            elif self._others_serve(process):
                _log.error("process %d can't serve: %s", process, report.error)
            else:
                self._fail(report)

    def _note_end(self, process: int) -> None:
        os.close(self._running.pop(process))
        was_ready = self._ready.pop(process, None) is not None
        _, status = os.waitpid(process, 0)
        if self._stopping:
            return
        code = os.waitstatus_to_exitcode(status)
        if not was_ready and not self._others_serve(process):
            self._fail(
                ReadinessReport(error=f"process {process} exited with {code} while it started")
            )
            return
        _log.error("process %d exited with %d; another one replaces it", process, code)
        self._restarts.append(time.monotonic() + RESTARTED_PROCESS_SECONDS)

    def _others_serve(self, process: int) -> bool:
        """Returns whether a process can fail to start without ending the server: a later one will
        take its place, and the others serve meanwhile."""
        return self._has_served and not self._stopping and bool(self._ready.keys() - {process})

    def _fail(self, report: ReadinessReport) -> None:
        self._failure = self._failure or report
        self._stop()

    def _forward_signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGHUP:
                self._send(signal.SIGHUP)
            elif number in _FORWARDED_SIGNALS:
                if self._stop_signals.is_second():  # also if a process is frozen
                    self._send(signal.SIGKILL)
                    signal.raise_signal(signal.SIGKILL)
                if not self._stopping:
                    self._stop()

    def _stop(self) -> None:
        self._stopping = True
        self._restarts.clear()
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for process in self._running:
            os.kill(process, number)  # not reaped yet, so no other process has its id


def _serve_in_child(serve: Serve, writing: int, parent: int) -> None:
    """Serves in a forked child, and exits."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for each in (*_FORWARDED_SIGNALS, signal.SIGCHLD):
            signal.signal(each, signal.SIG_DFL)
        defer_reloads()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
        _die_with(parent)

        def report(message: ReadinessReport) -> None:
            os.write(writing, msgspec.json.encode(message) + b"\n")

        try:
            serve(report)
            code = 0
        except HoldfastError as error:
            report(ReadinessReport(error=error.message, hint=error.hint or ""))
        except OSError as error:
            report(ReadinessReport(error=(error.strerror or str(error)).lower()))
    except BaseException:
        _log.exception("a server process failed")
    finally:
        os._exit(code)


def _die_with(parent: int) -> None:
    """Asks the system to end this process when its parent dies."""
    library: Any = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent died before this call
            os._exit(1)


def _do_nothing(number: int, frame: object) -> None:
    """Handles a signal whose only effect is to wake the program."""
