"""Addresses that a server listens on, and whether only this machine can reach them."""

import ipaddress
import os
import socket

import msgspec

from holdfast.defaults import DEFAULT_SPACE
from holdfast.errors import BadInput, CannotServe


class Address(msgspec.Struct, frozen=True):
    """The host and port that a server listens on."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """
        >>> Address.parse("127.0.0.1:9977"), Address.parse("[::1]:80").host
        (Address(host='127.0.0.1', port=9977), '::1')
        """
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise BadInput(
                f"{text!r} is not an address", hint="Write HOST:PORT, such as 127.0.0.1:80."
            )
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Returns whether nobody but this machine can connect.

        >>> Address("localhost", 1).is_loopback, Address("0.0.0.0", 1).is_loopback
        (True, False)
        """
        return all(ipaddress.ip_address(found[4][0]).is_loopback for found in self._resolved())

    @property
    def from_here(self) -> "Address":
        """The address by which a program on this machine connects to it.

        >>> str(Address("0.0.0.0", 9977).from_here), str(Address("::", 1).from_here)
        ('127.0.0.1:9977', '[::1]:1')
        """
        everywhere = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}
        return Address(everywhere.get(self.host, self.host), self.port)

    def bind(self, *, shared: bool) -> socket.socket:
        """Returns a socket bound to the address, or raises `CannotServe`; with `shared`, several
        processes of this user may listen there."""
        family, _, _, _, place = self._resolved()[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(place)
        except OSError as error:
            bound.close()
            raise self.refusal(error) from None
        return bound

    def listen(self, *, shared: bool = False) -> socket.socket:
        """Returns a socket that listens on the address, or raises `CannotServe`."""
        listening = self.bind(shared=shared)
        try:
            listening.listen(1024)
        except OSError as error:
            listening.close()
            raise self.refusal(error) from None
        listening.setblocking(False)
        return listening

    def refusal(self, error: OSError) -> CannotServe:
        """Returns the error for an address that can't be listened on."""
        return CannotServe(
            f"can't listen on {self}: {os.strerror(error.errno or 0).lower()}",
            hint="Name another HOST:PORT with --resp or --http; port 0 takes a free one.",
        )

    def _resolved(self) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        try:
            found = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except (OSError, UnicodeError):
            raise CannotServe(f"{self.host!r} is not an address of this machine") from None
        return found  # type: ignore[return-value]  # of the kinds that SOCK_STREAM gives


class SpaceAddress(msgspec.Struct, frozen=True):
    """An address at which one space is served."""

    space: str
    address: Address

    @classmethod
    def parse(cls, text: str) -> "SpaceAddress":
        """
        >>> str(SpaceAddress.parse("shop@127.0.0.1:5000")), SpaceAddress.parse("[::1]:5000").space
        ('shop@127.0.0.1:5000', 'default')
        """
        space, at, address = text.rpartition("@")
        if at and not space:
            raise BadInput(f"{text!r} names no space", hint="Write SPACE@HOST:PORT or HOST:PORT.")
        return cls(space or DEFAULT_SPACE, Address.parse(address))

    def __str__(self) -> str:
        return f"{self.space}@{self.address}"
