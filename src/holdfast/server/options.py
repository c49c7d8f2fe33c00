"""Options of a server that are not about its ports, for RESP and HTTP alike."""

from pathlib import Path
from typing import Final

import msgspec

from holdfast.limits import DEFAULT_KEPT_SECONDS
from holdfast.server.call_tracing import CallTracer
from holdfast.server.client_limits import ClientLimits


class DispatcherOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a dispatcher; the defaults offer nothing beyond operations."""

    allow_flush: bool = False
    pixel: bool = False  # whether loading an image can send an event
    ui: bool = True  # whether `/ui/` is the dashboard, or a space of that name
    record: bool = False  # whether metrics are recorded in the space `system`; see recorder.py
    flux_read_only: bool = False  # whether Flux's API refuses events
    flux_ttl: float = DEFAULT_KEPT_SECONDS  # seconds for which its stored counts are kept
    bounds: ClientLimits = ClientLimits()
    backups: Path | None = None  # the folder that backups go to; None: none are made
    schemas: Path | None = None  # the folder whose files clients may name; None: none
    trusted_proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For is believed
    allowed_hosts: tuple[str, ...] | None = None  # names that HTTP answers to; None: all
    tracer: CallTracer | None = None  # follows all calls
    processes: int = 1  # that serve together, and share the server's limits


DEFAULT_OPTIONS: Final = DispatcherOptions()
