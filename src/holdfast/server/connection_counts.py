"""Counts the open connections of a server, in total and by address.

One address may have half of all connections, so that it can't keep everybody else out. Addresses of
this machine, and of proxies that the server trusts, may have all of them: many clients can be
behind these.
"""

import logging
import resource
from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast.limits import SPARE_FILES
from holdfast.metrics.middleware import Network, is_trusted
from holdfast.server.client_limits import ClientLimits
from holdfast.server.password_checks import network_of

_log = logging.getLogger(__name__)


class ConnectionCounts:
    """The connections that are open, and the TLS handshakes in progress."""

    def __init__(self, bounds: ClientLimits, trusted_proxies: Sequence[Network] = ()) -> None:
        self._most = bounds.connections
        self._most_of_one = bounds.of_one_address
        self._trusted = trusted_proxies
        self.total = 0
        self._by_address: Counter[str] = Counter()
        self._handshakes: Counter[str] = Counter()  # by address

    def enter(self, address: str) -> str | None:
        """Counts a connection; if it is one too many, returns why, and does not count it."""
        counted = _counted(address)
        refusal = self._refusal(address, self.total, self._by_address[counted] if counted else 0)
        if refusal is None:
            self.total += 1
            self._by_address[counted] += 1
        return refusal

    def leave(self, address: str) -> None:
        self.total -= 1
        _subtract(self._by_address, _counted(address))

    def enter_handshake(self, address: str) -> bool:
        """Counts a handshake, which takes as much memory as a connection; returns False if there
        are too many of both."""
        counted = _counted(address)
        total = self.total + self._handshakes.total()
        of_one = self._by_address[counted] + self._handshakes[counted] if counted else 0
        if self._refusal(address, total, of_one) is not None:
            return False
        self._handshakes[counted] += 1
        return True

    def leave_handshake(self, address: str) -> None:
        """The handshake has failed, or has become a connection."""
        _subtract(self._handshakes, _counted(address))

    def _refusal(self, address: str, total: int, of_one: int) -> str | None:
        if total >= self._most:
            return "the server has reached its maximum of connections"
        if of_one >= self._most_of_one and not is_trusted(address, self._trusted):
            return "this address has reached its maximum of connections"
        return None


def _subtract(counts: Counter[str], counted: str) -> None:
    counts[counted] -= 1
    if not counts[counted]:
        del counts[counted]


def _counted(address: str) -> str:
    """Returns what connections are counted by, like wrong passwords; "" for this machine."""
    if address.startswith(("127.", "::ffff:127.")) or address in ("", "::1"):
        return ""
    return network_of(address)


def fitted_to_open_files(bounds: ClientLimits) -> ClientLimits:
    """Raises the limit of open files as far as the connections need it and the system allows.

    Returns the bounds with as many connections as fit: beyond, connections would not be refused but
    wait unanswered, and the store could open no file.
    """
    wanted = bounds.connections + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return bounds
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    fitting = max(1, allowed - SPARE_FILES)
    if fitting >= bounds.connections:
        return bounds
    _log.warning(
        "%d connections are allowed, not %d: the system allows %d open files (ulimit -Hn)",
        *(fitting, bounds.connections, allowed),
    )
    return msgspec.structs.replace(bounds, connections=fitting)
