"""Values of attributes: what an event can carry, and what is refused with a word on what to do."""

from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest

from holdfast.errors import InvalidEvent
from holdfast.events import Event
from holdfast.store import Store
from tests.client.both_clients import connected
from tests.client.conftest import mode, server, url

__all__ = ["mode", "server", "url"]

SCHEMA = {"seen": [{"targets": ["['values']"], "add": "value"}]}


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Size(StrEnum):
    LARGE = "large"


UNFIT: list[tuple[Any, str]] = [
    (datetime(2026, 1, 2), "isoformat"),
    (date(2026, 1, 2), "isoformat"),
    ({1, 2}, "sorted"),
    (b"raw", "b64encode"),
    (Decimal("1.5"), "Decimal"),
    (UUID(int=7), "UUID"),
    ([1, Decimal("1.10")], "Decimal"),
    (float("nan"), "None"),
    ([float("inf")], "None"),
]


def members(events: Any) -> set[str]:
    return {member.value for member in events.members("values").members}


@pytest.mark.parametrize(("value", "advice"), UNFIT, ids=[repr(each[0]) for each in UNFIT])
def test_a_value_that_no_event_can_carry_is_refused(store: Store, value: Any, advice: str) -> None:
    store.events.deploy(SCHEMA)

    for event in (
        {"name": "seen", "attributes": {"value": value}},
        Event(name="seen", attributes={"value": value}),
    ):
        with pytest.raises(InvalidEvent, match="value") as refused:
            store.events.send(event)
        assert advice in refused.value.hint

    assert members(store.events) == set()


@pytest.mark.parametrize(("value", "advice"), [each for each in UNFIT if type(each[0]) is not date])
def test_a_client_has_it_refused_too(mode: str, url: str, value: Any, advice: str) -> None:
    with connected(mode, url) as client:
        client.events.deploy(SCHEMA)
        event = {"name": "seen", "attributes": {"value": value}}

        with pytest.raises(InvalidEvent, match="value") as refused:
            client.events.send(event)
        many = client.events.send_many([event, {"name": "seen", "attributes": {"value": "ok"}}])

        assert advice in refused.value.hint
        assert (many.accepted, len(many.errors)) == (1, 1)
        assert members(client.events) == {"ok"}


def test_what_is_a_text_or_a_number_counts_as_that(store: Store) -> None:
    store.events.deploy(SCHEMA)

    for value in (Level.LOW, Size.LARGE, 2**70, 1.5, True, ("a", "b"), None):
        store.events.send({"name": "seen", "attributes": {"value": value}})
        store.events.send(Event(name="seen", attributes={"value": value}))  # type: ignore[dict-item]  # a tuple is as good as a list

    assert members(store.events) == {"1", "large", str(2**70), "1.5", "true", "a", "b"}
