"""Decides from the servers' settings what a commit must wait for.

A commit is on the disk of its server when it returns if `appendfsync` is `always`. With `everysec`
the server syncs up to a second later, and `durability="commit"` waits for that (WAITAOF). A
server without an append-only file keeps nothing reliably; it is refused unless the
URL says `persistence=none`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.engine.valkey.address import StoreAddress
from holdfast.engine.valkey.connections import Command, ResponseError
from holdfast.engine.valkey.servers import Servers
from holdfast.errors import StoreUnusable

_WAIT_MS: Final = 2_500  # for replicas or a disk; shorter than a link waits for an answer


class ValkeySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a server; None where it may not be asked."""

    append_only: bool
    fsync: str | None
    evicts: bool


class Waits(msgspec.Struct, frozen=True):
    """The commands that follow a commit, in the same round trip."""

    replicas: int
    disk: bool

    @property
    def commands(self) -> list[Command]:
        commands: list[Command] = []
        if self.replicas:
            commands.append(("WAIT", self.replicas, _WAIT_MS))
        if self.disk:
            commands.append(("WAITAOF", 1, 0, _WAIT_MS))
        return commands

    def are_met(self, replies: Sequence[Any]) -> bool:
        return not self.shortfall(replies)

    def shortfall(self, replies: Sequence[Any]) -> str:
        """Returns what a commit lacks, or ""."""
        left = list(replies)
        if self.replicas:
            confirmed = left.pop(0)
            if isinstance(confirmed, ResponseError):
                return f"its server answers {confirmed}"
            if confirmed < self.replicas:
                return f"{confirmed} of {self.replicas} replicas have confirmed it"
        if self.disk:
            synced = left.pop(0)
            if isinstance(synced, ResponseError):
                return f"its server answers {synced}"
            if synced[0] < 1:
                return "its server has not written it to its disk yet"
        return ""


def settle(servers: Servers, address: StoreAddress, durability: str) -> Waits:
    """Checks the settings of every primary, and refuses those that can't keep the promises of
    `durability`."""
    found = [_settings(servers, slot) for slot in servers.first_slots()]
    if any(settings.evicts for settings in found):
        raise StoreUnusable(
            f"{address.name} removes keys by itself when its memory is full",
            hint="Set maxmemory-policy to noeviction, or maxmemory to 0.",
        )
    if not address.persistent:
        return Waits(address.replicas, disk=False)
    if not all(settings.append_only for settings in found):
        raise StoreUnusable(
            f"{address.name} keeps no append-only file: a restart would lose what was acknowledged",
            hint="Set appendonly to yes, or write ?persistence=none into the URL if that is meant.",
        )
    if durability == "interval":
        if any(settings.fsync == "no" for settings in found):
            raise StoreUnusable(
                f"{address.name} lets its system decide when to write to the disk",
                hint="Set appendfsync to everysec or always, or write ?persistence=none.",
            )
        return Waits(address.replicas, disk=False)
    return Waits(address.replicas, disk=any(settings.fsync != "always" for settings in found))


def _settings(servers: Servers, slot: int) -> ValkeySettings:
    persistence, memory, config = servers.ask(
        slot, [("INFO", "persistence"), ("INFO", "memory"), ("CONFIG", "GET", "appendfsync")]
    )
    return ValkeySettings(
        append_only=b"aof_enabled:1" in _text(persistence),
        fsync=_text(config[1]).decode() if isinstance(config, list) and config else None,
        evicts=b"maxmemory:0\r" not in _text(memory)
        and b"maxmemory_policy:noeviction" not in _text(memory),
    )


def _text(reply: Any) -> bytes:
    return reply if isinstance(reply, bytes) else b""
