"""The parts that the ASGI and the WSGI middleware share: requests, headers and responses.

Nothing here imports a web framework.
"""

import ipaddress
import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from holdfast.error_text import shown
from holdfast.errors import BadInput
from holdfast.metrics.entity import EntityLike
from holdfast.metrics.records import BatchResult, LimitResult, Operation

HeaderStyle: TypeAlias = Literal["ietf", "legacy", "both", "none"]
OnError: TypeAlias = Literal["allow", "deny"]
Headers: TypeAlias = list[tuple[str, str]]
Key: TypeAlias = Callable[["Request"], Mapping[str, EntityLike | int]]
Cost: TypeAlias = int | Callable[["Request"], int]
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Exempt: TypeAlias = Callable[["Request"], bool]

PROBLEM: Final = "application/problem+json"

logger: Final = logging.getLogger("holdfast.metrics")


class TriesAll(Protocol):
    """A limiter, as a middleware uses it."""

    def try_all(self, operations: Iterable[Any]) -> Any: ...


class RequestHeaders(dict[str, str]):
    """Headers by name, without regard to case."""

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())


class Request(Mapping[str, Any]):
    """A request as `key`, `cost` and `exempt` see it; as a mapping, the raw scope or environ."""

    def __init__(
        self,
        raw: Mapping[str, Any],
        *,
        method: str,
        path: str,
        headers: RequestHeaders,
        client_address: str,
    ) -> None:
        self.raw: Final = raw
        self.method: Final = method
        self.path: Final = path
        self.headers: Final = headers
        self.client_address: Final = client_address

    def __getitem__(self, name: str) -> Any:
        return self.raw[name]

    def __iter__(self) -> Any:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


class LimitResponse(NamedTuple):
    """A response that the middleware gives in place of the application."""

    status: int
    headers: Headers
    body: bytes


class RequestLimits:
    """The decisions of a middleware, without its I/O."""

    def __init__(
        self,
        *,
        key: Key,
        cost: Cost = 1,
        exempt: Exempt | None = None,
        on_error: OnError = "allow",
        headers: HeaderStyle = "ietf",
        trusted_proxies: Iterable[str] = (),
    ) -> None:
        if on_error not in ("allow", "deny"):
            raise BadInput(f"on_error must be 'allow' or 'deny', not {shown(on_error)}")
        if headers not in ("ietf", "legacy", "both", "none"):
            raise BadInput(
                f"headers must be 'ietf', 'legacy', 'both' or 'none', not {shown(headers)}"
            )
        self._key = key
        self._cost = cost
        self._exempt = exempt
        self._on_error = on_error
        self._style: HeaderStyle = headers
        self.trusted_proxies: Final = networks(trusted_proxies)

    def operations(self, request: Request) -> list[Operation]:
        """Returns the operations of a request; none if it is exempt or no condition applies."""
        if self._exempt is not None and self._exempt(request):
            return []
        cost = self._cost(request) if callable(self._cost) else self._cost
        return [
            # A single address is a list of one, as in a batch: an error would let all pass.
            Operation(
                condition=condition,
                entity=[entity] if isinstance(entity, str | int) else entity,
                amount=cost,
            )
            for condition, entity in self._key(request).items()
            if entity is not None
        ]

    def headers(self, result: BatchResult | None) -> Headers:
        """Returns the headers of an allowed request; none if the limiter could not be asked."""
        return [] if result is None else limit_headers(result.results, self._style)

    def refusal(self, result: BatchResult) -> LimitResponse:
        return denied(result, self._style)

    def on_failure(self, error: Exception) -> LimitResponse | None:
        """Returns the response if the limiter can't be asked; None lets the request through."""
        logger.warning("the rate limiter failed: %s", error, exc_info=error)
        return unavailable() if self._on_error == "deny" else None


# --- answers ----------------------------------------------------------------------------------


def denied(result: BatchResult, style: HeaderStyle = "ietf") -> LimitResponse:
    """Returns a 429 with a problem+json body, and `Retry-After` unless no wait would help."""
    seconds = None if result.retry_after is None else max(1, math.ceil(result.retry_after))
    names = ", ".join([found.condition for found in result.results if not found.allowed])
    detail = f"Rate limit exceeded: {names}."
    headers = limit_headers(result.results, style)
    if seconds is not None:
        headers.append(("Retry-After", str(seconds)))
    return _problem(429, "Too Many Requests", detail, headers, retry_after=seconds)


def unavailable() -> LimitResponse:
    """Returns a 503, for requests that must not pass while limits can't be checked."""
    return _problem(503, "Service Unavailable", "Rate limits can't be checked.", [])


def limit_headers(results: list[LimitResult], style: HeaderStyle) -> Headers:
    """Returns the headers with the conditions and what remains of each, in their order."""
    if style == "none" or not results:
        return []
    found: Headers = []
    if style in ("ietf", "both"):
        policies = [f"{_quoted(r.condition)};q={r.limit};w={math.ceil(r.window)}" for r in results]
        states = [
            f"{_quoted(r.condition)};r={r.remaining};t={math.ceil(r.reset_after)}" for r in results
        ]
        found += [("RateLimit-Policy", ", ".join(policies)), ("RateLimit", ", ".join(states))]
    if style in ("legacy", "both"):
        least = min(results, key=lambda result: result.remaining)
        found += [
            ("X-RateLimit-Limit", str(least.limit)),
            ("X-RateLimit-Remaining", str(least.remaining)),
            ("X-RateLimit-Reset", str(math.ceil(least.reset_after))),
        ]
    return found


def _problem(status: int, title: str, detail: str, headers: Headers, **more: Any) -> LimitResponse:
    fields = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    body = json.dumps(fields).encode()
    length = ("Content-Length", str(len(body)))
    return LimitResponse(status, [*headers, ("Content-Type", PROBLEM), length], body)


def _quoted(name: str) -> str:
    """Returns a name as a structured-field string; characters that it can't hold become `?`."""
    plain = "".join([letter if " " <= letter <= "~" else "?" for letter in name])
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- addresses --------------------------------------------------------------------------------


def networks(given: Iterable[str]) -> list[Network]:
    """Returns networks from texts such as `10.0.0.0/8`, or single addresses."""
    try:
        return [ipaddress.ip_network(one, strict=False) for one in given]
    except ValueError as error:
        raise BadInput(
            f"this is not a network: {error}",
            hint="Write a network as 10.0.0.0/8, or one address as 10.0.0.1.",
        ) from None


def client_address(peer: str, forwarded_for: str, trusted: Iterable[Network]) -> str:
    """Returns the peer's address; behind trusted proxies, the client's address that they report."""
    proxies = list(trusted)
    found = peer
    for hop in reversed([part.strip() for part in forwarded_for.split(",") if part.strip()]):
        if not is_trusted(found, proxies) or _address(hop) is None:
            break
        found = hop
    return found


def subnet(address: str) -> str:
    """Returns the network that an address is in: /24 for IPv4, /64 for IPv6.

    >>> subnet("192.0.2.7"), subnet("2001:db8::7")
    ('192.0.2.0/24', '2001:db8::/64')
    """
    found = _address(address)
    if found is None:
        raise BadInput(f"{address!r} is not an IP address")
    return str(ipaddress.ip_network((found, 24 if found.version == 4 else 64), strict=False))


def _address(text: str) -> Any:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A socket for both kinds shows an IPv4 peer as ::ffff:192.0.2.7.
    return getattr(found, "ipv4_mapped", None) or found


def is_trusted(address: str, proxies: Iterable[Network]) -> bool:
    """Returns whether an address is one of these proxies."""
    found = _address(address)
    return found is not None and any(found in network for network in proxies)
