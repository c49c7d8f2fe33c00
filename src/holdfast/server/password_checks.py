"""Password logins: checked in threads of their own, and delayed after wrong attempts.

A token is found by its digest at once. Hashing a password is slow on purpose, so a flood of wrong
ones could keep the server busy and everyone else out. Therefore:

- a few threads check passwords and do nothing else, and their queue is short;
- wrong passwords for one user from one address are followed by growing waits;
- refusing an unknown name takes as long as refusing a wrong password, but no work;
- the same name and password, sent by many connections at once, are checked once.

Wrong passwords are recorded in the memory of the server. A limiter in the store, as
`metrics` has it, would be exact across several servers, but each guess of a stranger would be a
durable write, which is worse than the guess.
"""

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from holdfast.errors import NotAuthenticated, ServerBusy, TooManyLogins
from holdfast.limits import (
    FREE_LOGIN_FAILURES,
    LOGIN_WAIT_SECONDS,
    MAX_LOGIN_RECORDS,
    MAX_LOGIN_WAIT_SECONDS,
    MAX_QUEUED_PASSWORDS,
    PASSWORD_THREADS,
)
from holdfast.server.auth import Authenticator, Identity, has_password
from holdfast.users import User

_IPV6_NETWORK_BITS = 64  # a provider's customer usually has all addresses with this prefix
_FIRST_SECONDS = 0.05  # assumed duration of a check, until one was measured


class PasswordChecks:
    """Checks names and passwords for all connections of a server."""

    def __init__(self, authenticator: Authenticator, loop: asyncio.AbstractEventLoop) -> None:
        self._authenticator = authenticator
        self._loop = loop
        self._pool = ThreadPoolExecutor(PASSWORD_THREADS, thread_name_prefix="holdfast-password")
        self._queued = 0
        self._under_way: dict[bytes, asyncio.Future[Identity]] = {}
        self._usual_seconds = _FIRST_SECONDS
        self.failures = Failures()
        # Separate from those of users: unknown names cost nothing, and an attacker who invents
        # many of them must not evict the records of real users.
        self.unknown = Failures()

    def check(self, address: str, name: str, secret: str) -> asyncio.Future[Identity]:
        """Returns a future of the identity that a token or password belongs to, which raises if
        there is none."""
        holder = self._authenticator.with_token(name, secret)
        if holder is not None:
            return self._done(holder)
        if not self._authenticator.may_have_password(name, secret):
            return self._done(self._authenticator.refusal("no user has this name and password"))
        known = self._authenticator.with_known_password(name, secret)
        if known is not None:
            return self._done(self._unless_it_waits(address, name) or known)
        # With the version, because the same password may be right once the users have changed.
        key = self._authenticator.login_key(f"{self._authenticator.version} {name}", secret)
        checked = self._under_way.get(key)
        if checked is None:
            checked = self._begin(network_of(address), name, secret)
            self._under_way[key] = checked
            checked.add_done_callback(partial(self._forget, key))
        # A closed connection cancels its own wait, not the check that others wait for.
        return asyncio.shield(checked)

    def _unless_it_waits(self, address: str, name: str) -> TooManyLogins | None:
        """Returns the refusal of a right password that need not be checked again, if its address
        has to wait: otherwise it would be found by trying all of them without a pause."""
        wait = self.failures.wait_before((network_of(address), name)) if self.failures else 0.0
        return _refused_for(wait) if wait > 0 else None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, network: str, name: str, password: str) -> asyncio.Future[Identity]:
        user = self._authenticator.user_with_password(name)
        if self._queued >= MAX_QUEUED_PASSWORDS:  # whether or not there is such a user
            return self._done(ServerBusy("many passwords are being checked already"))
        failures = self.unknown if user is None else self.failures
        wait = failures.wait_before((network, name))
        if wait > 0:
            return self._done(_refused_for(wait))
        # Counts as wrong until it is found to be right: many may be checked at the same time.
        failures.add((network, name))
        if user is None:
            return self._refuse_later()
        return asyncio.ensure_future(self._checked(network, user, password))

    async def _checked(self, network: str, user: User, password: str) -> Identity:
        begin = time.monotonic()
        self._queued += 1
        try:
            is_right = await self._loop.run_in_executor(self._pool, has_password, user, password)
        finally:
            self._queued -= 1
        self._usual_seconds = time.monotonic() - begin
        if not is_right:
            raise self._authenticator.refusal("no user has this name and password")
        identity = self._authenticator.admit(user, password)
        self.failures.forget((network, user.name))
        return identity

    def _refuse_later(self) -> asyncio.Future[Identity]:
        """Refuses an unknown name, after the time that a check took recently."""
        future: asyncio.Future[Identity] = self._loop.create_future()
        error = self._authenticator.refusal("no user has this name and password")
        self._loop.call_later(self._usual_seconds, _fail, future, error)
        return future

    def _done(self, outcome: Identity | Exception) -> asyncio.Future[Identity]:
        future: asyncio.Future[Identity] = self._loop.create_future()
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        return future

    def _forget(self, key: bytes, checked: asyncio.Future[Identity]) -> None:
        self._under_way.pop(key, None)
        if not checked.cancelled():
            checked.exception()  # retrieved here, in case the client is gone and nobody else does


class Failures:
    """Wrong passwords by the network and the name that they came with, bounded in number."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._records: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def wait_before(self, key: tuple[str, str]) -> float:
        """Returns the seconds until the next password of `key` is checked; 0.0 if it is checked
        now."""
        count, last = self._records.get(key, (0, -math.inf))
        if count < FREE_LOGIN_FAILURES:
            return 0.0
        wait = LOGIN_WAIT_SECONDS * 2.0 ** min(count - FREE_LOGIN_FAILURES, 32)
        return max(0.0, last + min(wait, MAX_LOGIN_WAIT_SECONDS) - self._clock())

    def add(self, key: tuple[str, str]) -> None:
        """Counts a wrong password; long after the last one, counting starts over."""
        count, last = self._records.pop(key, (0, -math.inf))
        now = self._clock()
        if now - last > 10 * MAX_LOGIN_WAIT_SECONDS:
            count = 0
        self._records[key] = (count + 1, now)
        if len(self._records) > MAX_LOGIN_RECORDS:
            self._records.popitem(last=False)

    def forget(self, key: tuple[str, str]) -> None:
        """Forgets the failures of a name after a correct password."""
        self._records.pop(key, None)


def network_of(address: str) -> str:
    """Returns what wrong passwords are counted by: an IPv4 address, or the first half of an IPv6.

    >>> network_of("192.0.2.7"), network_of("2001:db8::1"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_NETWORK_BITS), strict=False))


def _refused_for(wait: float) -> TooManyLogins:
    seconds = math.ceil(wait)
    error = TooManyLogins(
        f"too many wrong passwords for this user came from this address; wait {seconds} s"
    )
    error.retry_after = wait
    return error


def _fail(future: asyncio.Future[Identity], error: NotAuthenticated) -> None:
    if not future.done():
        future.set_exception(error)
