"""A store in Valkey, as the shared engine of remote/ sees it."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from holdfast.engine.contract import Notice
from holdfast.engine.long_keys import LongKeys
from holdfast.engine.remote import BackendSession, ConnectionLost
from holdfast.engine.valkey import durability as durabilities
from holdfast.engine.valkey.address import Host, StoreAddress
from holdfast.engine.valkey.connections import Command, ResponseError
from holdfast.engine.valkey.library import StoreNames, function
from holdfast.engine.valkey.notice_listener import Listener
from holdfast.engine.valkey.servers import NoReply, Servers, explain
from holdfast.engine.valkey.session import SpaceSession, SpaceState
from holdfast.engine.valkey.whole_store import WholeSession
from holdfast.errors import BadInput, UnsupportedFormat

FORMAT: Final = 1
_BATCH: Final = 1_000  # spaces that are asked about in one round trip
_RESEND_SECONDS: Final = 5.0  # that a message is sent again by itself; then the engine decides


class ValkeyBackend:
    """One store, on a server or on a cluster."""

    long_keys: LongKeys | None = None  # members of a sorted set may be as long as any key

    def __init__(self, address: StoreAddress, *, durability: str) -> None:
        self.name = address.name
        self.names = StoreNames(address.store)
        self.patience = address.patience
        self._address = address
        self._places: dict[bytes, SpaceState] = {}
        self.servers = Servers(address, patience=min(address.patience, _RESEND_SECONDS))
        try:
            self.waits = durabilities.settle(self.servers, address, durability)
            self._check_format()
            self._listener = Listener(self, address)
        except BaseException:
            self.servers.close()
            raise

    def session(self, space: bytes) -> BackendSession:
        return SpaceSession(self, self.place(space)) if space else WholeSession(self)

    def turn_session(
        self, space: bytes, contended: Sequence[bytes], *, exclusive: bool = False
    ) -> BackendSession:
        if not space:
            return WholeSession(self)
        return SpaceSession(self, self.place(space), exclusive=exclusive, contended=contended)

    # --- spaces ----------------------------------------------------------------------------------

    def place(self, space: bytes) -> SpaceState:
        place = self._places.get(space)
        return place or self._places.setdefault(space, SpaceState(self._address.store, space))

    def spaces(self) -> list[bytes]:
        """Returns the prefixes of all spaces that were ever written to, in order."""
        [spaces] = self._ask(self.place(b"").slot, [("SMEMBERS", self.names.spaces)])
        return sorted(spaces)

    def register(self, place: SpaceState) -> None:
        """Adds a space to the list of all spaces before anything is written to it. The list may
        lose its end in a failover, so this is repeated after each. Costs 1 round trip then, or
        none."""
        changes = self.servers.changes
        if place.registered_at != changes:
            command = ("SADD", self.names.spaces, place.space)
            self._ask(self.place(b"").slot, [command, *self.waits.commands])
            place.registered_at = changes

    def ask_places(
        self, places: Sequence[SpaceState], make: Callable[[SpaceState], Command]
    ) -> list[Any]:
        """Returns the reply to one command for each place: one round trip for those of a server."""
        by_host: dict[Host, list[SpaceState]] = {}
        for place in places:
            by_host.setdefault(self.servers.host_of(place.slot), []).append(place)
        replies: dict[bytes, Any] = {}
        for group in by_host.values():
            for first in range(0, len(group), _BATCH):
                part = group[first : first + _BATCH]
                found = self._ask(part[0].slot, [make(place) for place in part])
                for place, reply in zip(part, found, strict=True):
                    if isinstance(reply, ResponseError):  # it has moved, or the like
                        [reply] = self._ask(place.slot, [make(place)])
                    replies[place.space] = reply
        return [replies[place.space] for place in places]

    def _ask(self, slot: int, commands: Sequence[Command]) -> list[Any]:
        try:
            return self.servers.ask(slot, commands)
        except NoReply as problem:
            raise ConnectionLost(str(problem)) from problem

    def _check_format(self) -> None:
        name = self.names.format
        _, found = self._ask(self.place(b"").slot, [("SET", name, FORMAT, "NX"), ("GET", name)])
        if isinstance(found, ResponseError):
            raise explain(found, self.name)
        if found != b"%d" % FORMAT:
            raise UnsupportedFormat(
                f"the store in {self.name} has the format {found!r}, this Holdfast knows {FORMAT}",
                hint="Install a newer Holdfast, or name another store: ?store=NAME.",
            )

    # --- notices ---------------------------------------------------------------------------------

    def newest_notice(self) -> Any:
        return self._listener.newest()

    def notices_since(self, place: Any) -> tuple[Any, int, list[Notice]]:
        return self._listener.since(place)

    def listen(self, wake: Callable[[], None], stopped: threading.Event) -> None:
        self._listener.listen(wake, stopped)

    # --- maintenance -----------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Compares the keys in order with those that have values, a thousand at a time."""
        found: list[str] = []
        for space in self.spaces():
            place, begin = self.place(space), b""
            while True:
                command = ("FCALL_RO", function("check"), 4, *place.names.read, begin)
                [[begin, sentences]] = self._ask(place.slot, [command])
                found += [f"space {space!r}: {line.decode(errors='replace')}" for line in sentences]
                if not begin:
                    break
        return found

    def checkpoint(self) -> None:
        """Returns when every server has written everything to its disk."""
        if not self._address.persistent:
            return
        by_host: dict[Host, SpaceState] = {}
        for space in self.spaces():
            place = self.place(space)
            by_host.setdefault(self.servers.host_of(place.slot), place)
        for place in by_host.values():
            # A server waits for what came over the same link, and all before it: so a write first.
            mark = ("SET", place.names.mark, 1, "PX", 1)
            synced = 0
            while not synced:
                _, reply = self._ask(place.slot, [mark, ("WAITAOF", 1, 0, 2_000)])
                if isinstance(reply, ResponseError):
                    raise explain(reply, self.name)
                synced = reply[0]

    def backup(self, target: Path) -> NoReturn:
        raise BadInput(
            f"a store in Valkey can't be backed up into the folder {target}",
            hint="Let the servers make their own (BGSAVE), or use `holdfast copy`.",
        )

    def stats(self) -> dict[str, int]:
        """Figures of the store, over all servers."""
        places = [self.place(space) for space in self.spaces()]
        keys = self.ask_places(places, lambda place: ("ZCARD", place.names.keys))
        commits = self.ask_places(places, lambda place: ("HGET", place.names.state, "version"))
        slots = self.servers.first_slots()
        memory = [self._ask(slot, [("INFO", "memory")])[0] for slot in slots]
        return {
            "keys": sum(keys),
            "spaces": len(places),
            "commits": sum(int(number or 0) for number in commits),
            "servers": len(slots),
            "memory_bytes": sum(_figure(text, b"used_memory:") for text in memory),
        }

    def close(self) -> None:
        self._listener.close()
        self.servers.close()

    def forked(self) -> None:
        self._listener.forget()
        self.servers.forget()


def _figure(text: bytes, name: bytes) -> int:
    return int(text.split(b"\n" + name, 1)[1].split(b"\r", 1)[0])
