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
from holdfast.errors import BadInput, StoreFull, UnsupportedFormat
from holdfast.limits import MIN_FREE_BYTES

FORMAT: Final = 1
_BATCH: Final = 1_000  # spaces in one round trip
_RESEND_SECONDS: Final = 5.0  # that a message is repeated automatically; then the engine decides


class ValkeyBackend:
    """One store, on a server or on a cluster."""

    long_keys: LongKeys | None = None  # members of a sorted set may be as long as any key

    def __init__(self, address: StoreAddress, *, durability: str) -> None:
        self.name = address.name
        self.names = StoreNames(address.store)
        self.patience = address.patience
        self._address = address
        self._states: dict[bytes, SpaceState] = {}
        self.servers = Servers(address, patience=min(address.patience, _RESEND_SECONDS))
        try:
            self.waits = durabilities.settle(self.servers, address, durability)
            self._check_format()
            self._listener = Listener(self, address)
        except BaseException:
            self.servers.close()
            raise

    def session(self, space: bytes) -> BackendSession:
        return SpaceSession(self, self.state_of(space)) if space else WholeSession(self)

    def turn_session(
        self, space: bytes, contended: Sequence[bytes], *, exclusive: bool = False
    ) -> BackendSession:
        if not space:
            return WholeSession(self)
        return SpaceSession(self, self.state_of(space), exclusive=exclusive, contended=contended)

    # --- spaces ----------------------------------------------------------------------------------

    def state_of(self, space: bytes) -> SpaceState:
        state = self._states.get(space)
        return state or self._states.setdefault(space, SpaceState(self._address.store, space))

    def spaces(self) -> list[bytes]:
        """Returns the prefixes of all spaces that were ever written to, in order."""
        [spaces] = self._ask(self.state_of(b"").slot, [("SMEMBERS", self.names.spaces)])
        return sorted(spaces)

    def register(self, state: SpaceState) -> None:
        """Adds a space to the list of all spaces before anything is written to it. A failover may
        lose the end of the list, so this is repeated after each one. Costs 1 round trip, or none if
        the space is known to be listed."""
        changes = self.servers.changes
        if state.registered_at != changes:
            command = ("SADD", self.names.spaces, state.space)
            self._ask(self.state_of(b"").slot, [command, *self.waits.commands])
            state.registered_at = changes

    def ask_spaces(
        self, states: Sequence[SpaceState], make: Callable[[SpaceState], Command]
    ) -> list[Any]:
        """Returns the reply to one command for each state, in one round trip for each server."""
        by_host: dict[Host, list[SpaceState]] = {}
        for state in states:
            by_host.setdefault(self.servers.host_of(state.slot), []).append(state)
        replies: dict[bytes, Any] = {}
        for group in by_host.values():
            for first in range(0, len(group), _BATCH):
                part = group[first : first + _BATCH]
                found = self._ask(part[0].slot, [make(state) for state in part])
                for state, reply in zip(part, found, strict=True):
                    if isinstance(reply, ResponseError):  # it has moved, or the like
                        [reply] = self._ask(state.slot, [make(state)])
                    replies[state.space] = reply
        return [replies[state.space] for state in states]

    def _ask(self, slot: int, commands: Sequence[Command]) -> list[Any]:
        try:
            return self.servers.ask(slot, commands)
        except NoReply as problem:
            raise ConnectionLost(str(problem)) from problem

    def _check_format(self) -> None:
        name = self.names.format
        _, found = self._ask(self.state_of(b"").slot, [("SET", name, FORMAT, "NX"), ("GET", name)])
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
            state, begin = self.state_of(space), b""
            while True:
                command = ("FCALL_RO", function("check"), 4, *state.names.read, begin)
                [[begin, sentences]] = self._ask(state.slot, [command])
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
            state = self.state_of(space)
            by_host.setdefault(self.servers.host_of(state.slot), state)
        for state in by_host.values():
            # A server waits for what came over the same link, and all before it: so a write first.
            mark = ("SET", state.names.mark, 1, "PX", 1)
            synced = 0
            while not synced:
                _, reply = self._ask(state.slot, [mark, ("WAITAOF", 1, 0, 2_000)])
                if isinstance(reply, ResponseError):
                    raise explain(reply, self.name)
                synced = reply[0]

    def backup(self, target: Path) -> NoReturn:
        raise BadInput(
            f"a store in Valkey can't be backed up into the folder {target}",
            hint="Let the servers make their own (BGSAVE), or use `holdfast copy`.",
        )

    def stats(self) -> dict[str, int]:
        """Returns figures of the store, over all servers."""
        states = [self.state_of(space) for space in self.spaces()]
        keys = self.ask_spaces(states, lambda state: ("ZCARD", state.names.keys))
        commits = self.ask_spaces(states, lambda state: ("HGET", state.names.state, "version"))
        slots = self.servers.first_slots()
        memory = [self._ask(slot, [("INFO", "memory")])[0] for slot in slots]
        return {
            "keys": sum(keys),
            "spaces": len(states),
            "commits": sum(int(number or 0) for number in commits),
            "servers": len(slots),
            "memory_bytes": sum(_figure(text, b"used_memory:") for text in memory),
        }

    def refuse_full(self, space: bytes) -> None:
        """Raises `StoreFull` if the server of a space is close to its `maxmemory`. Costs 1 round
        trip."""
        [memory] = self._ask(self.state_of(space).slot, [("INFO", "memory")])
        most = _figure(memory, b"maxmemory:")
        used = _figure(memory, b"used_memory:") - _figure(memory, b"mem_not_counted_for_evict:")
        if most and most - used < MIN_FREE_BYTES:
            raise StoreFull(f"{self.name} has no memory left: it uses {used} of {most} bytes")

    def close(self) -> None:
        self._listener.close()
        self.servers.close()

    def forked(self) -> None:
        self._listener.forget()
        self.servers.forget()


def _figure(text: bytes, name: bytes) -> int:
    return int(text.split(b"\n" + name, 1)[1].split(b"\r", 1)[0])
