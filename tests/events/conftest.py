"""Fixtures of the tests of events."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.events import SendReply
from holdfast.store import Space, Store

Send = Callable[..., SendReply]


@pytest.fixture
def send(store: Store) -> Send:
    """Sends an event: its name, and its attributes as keyword arguments."""

    def send(name: str, /, **attributes: Any) -> SendReply:
        options = {part: attributes.pop(f"_{part}", None) for part in ("ip", "at", "id")}
        given = {part: value for part, value in options.items() if value is not None}
        return store.events.send({"name": name, "attributes": attributes, **given})

    return send


def values(store: Space, key: str) -> list[str]:
    """The values of a set, newest first."""
    return [member.value for member in store.events.members(key, limit=10_000).members]


def keys(store: Store) -> list[str]:
    return [info.key for info in store.events.keys(limit=1_000).keys]
