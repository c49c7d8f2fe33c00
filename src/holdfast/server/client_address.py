"""Adds the client's address to events that name none.

The address is the peer's. Behind a proxy that the server was told to trust, it is the one that the
proxy names in `X-Forwarded-For`; from anyone else that header proves nothing.
"""

from typing import Any

from holdfast.operations import Operation

__all__ = ["address_event", "address_events"]


def address_events(operation: Operation, arguments: Any, address: str) -> None:
    """Fills in the address of the events among the arguments of an operation."""
    argument = operation.declaration.addressed
    given = getattr(arguments, argument)
    if isinstance(given, list):
        addressed: Any = [address_event(event, address) for event in given]
    else:
        addressed = address_event(given, address)
    setattr(arguments, argument, addressed)


def address_event(event: Any, address: str) -> Any:
    """Returns the event with `address`, unless it has one of its own; anything else is returned as
    it is."""
    if address and isinstance(event, dict) and event.get("ip") is None:
        return {**event, "ip": address}
    return event
