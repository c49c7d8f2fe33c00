"""Settings of a space: stored, checked, and the same for every sender."""

import math
from typing import Any

import pytest

import holdfast
from holdfast.errors import BadInput, ExpandsTooFar
from holdfast.events import Settings
from holdfast.store import Store
from holdfast.testing import Clock
from tests.stores import Stores


def keys(store: Store) -> list[str]:
    return [info.key for info in store.events.keys().keys]


def test_a_space_begins_with_the_settings_of_all(store: Store) -> None:
    assert store.events.settings() == Settings()


def test_what_is_given_changes_and_the_rest_stays(store: Store) -> None:
    store.events.configure(timezone="Asia/Tokyo")

    changed = store.events.configure(dedup_seconds=60)

    assert changed == store.events.settings()
    assert changed == Settings(timezone="Asia/Tokyo", dedup_seconds=60)


def test_time_labels_follow_the_time_zone_of_the_space(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["[@day]"], "add": "'v'"}]})
    store.events.configure(timezone="Asia/Tokyo")

    store.events.send({"name": "e", "at": "2012-08-08T18:00:00Z"})
    explained = store.events.explain({"name": "e", "at": "2012-08-09T18:00:00Z"})

    assert keys(store) == ["2012-08-09"]
    assert explained.handlers[0].keys == ["2012-08-10"]
    [point] = store.events.series("{day}", "gross", "2012-08-08T18:00Z", "2012-08-08T20:00Z")
    assert (point.label, point.value) == ("2012-08-09", 1)


def test_look_ups_fan_out_and_the_dedup_window_follow_the_settings(
    store: Store, clock: Clock
) -> None:
    store.events.deploy(
        {
            "add": [{"targets": ["['all'].members"], "add": "value"}],
            "read": [{"targets": ["['found']"], "add": "['all'].members"}],
            "fan": [{"targets": ["[value]"], "add": "'v'"}],
        }
    )
    store.events.configure(looked_up_members=2, fan_out_keys=3, dedup_seconds=60)
    store.events.send({"name": "add", "attributes": {"value": ["a", "b", "c"]}, "id": "one"})

    with pytest.raises(ExpandsTooFar, match="finds 3 members, the limit is 2"):
        store.events.send({"name": "read"})
    with pytest.raises(ExpandsTooFar, match="expands to 4 keys, the limit is 3"):
        store.events.send({"name": "fan", "attributes": {"value": ["a", "b", "c", "d"]}})
    within = store.events.send({"name": "add", "id": "one"})
    clock.advance(seconds=61)
    after = store.events.send({"name": "add", "id": "one"})

    assert (within.duplicate, after.duplicate) == (True, False)


def test_settings_outlive_deployments_and_the_process(stores: Stores) -> None:
    url = stores.url()
    with holdfast.open(url) as store:
        store.events.configure(timezone="Europe/Berlin")
        store.events.deploy({"e": [{"targets": ["['s']"], "add": "'v'"}]})
        store.events.withdraw("default")

    with holdfast.open(url) as store:
        assert store.events.settings().timezone == "Europe/Berlin"
        assert store.space("other").events.settings() == Settings()


@pytest.mark.parametrize(
    "changes",
    [
        {"timezone": "Nowhere/Town"},
        {"timezone": ""},
        {"timezone": 5},
        {"looked_up_members": 0},
        {"looked_up_members": 1.5},
        {"fan_out_keys": 100_001},
        {"fan_out_keys": True},
        {"dedup_seconds": 0},
        {"dedup_seconds": math.nan},
        {"dedup_seconds": math.inf},
        {"dedup_seconds": "60"},
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    store: Store, changes: dict[str, Any]
) -> None:
    with pytest.raises(BadInput):
        store.events.configure(**changes)

    assert store.events.settings() == Settings()
