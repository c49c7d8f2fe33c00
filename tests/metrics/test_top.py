"""The entities with the highest totals."""

from typing import Any

import pytest

from holdfast.errors import BadRange
from holdfast.store import Store


@pytest.fixture(autouse=True)
def _written(store: Store) -> None:
    store.metrics.define({"hits": {"sequences": [{"timeStep": 10, "expiry": 600}]}})
    writes: list[Any] = [
        (["user", 1], 5, 1000),
        (["user", 2], 7, 1011),
        (["user", 3], 5, 1020),
        (["user", 1], 3, 1020),
        (None, 2, 1000),
        ({"global": True, "components": ["all"]}, 50, 1001),
        (["old"], 99, 500),
    ]
    for entity, value, at in writes:
        store.metrics.incr("hits", entity, value, at=at)
    store.metrics.incr("hits", ["elsewhere"], 9, at=1000, namespace="other")


def _top(store: Store, **asked: Any) -> list[tuple[Any, Any]]:
    found = store.metrics.top("hits", **{"start": 1000, "end": 1030, "at": 1030, **asked})
    return [(entry.entity, entry.total) for entry in found]


def test_the_highest_come_first_and_equal_ones_by_their_readable_form(store: Store) -> None:
    assert _top(store) == [
        (["user", "1"], 8),
        (["user", "2"], 7),
        (["user", "3"], 5),
        ([], 2),
    ]
    assert _top(store, n=2) == [(["user", "1"], 8), (["user", "2"], 7)]


def test_scopes_and_namespaces_are_apart(store: Store) -> None:
    assert _top(store, scope="global") == [({"global": True, "components": ["all"]}, 50)]
    assert _top(store, namespace="other") == [(["elsewhere"], 9)]


def test_totals_are_those_of_rate_and_zeros_are_left_out(store: Store) -> None:
    found = _top(store, start=1005, end=1015)

    expected = [
        (entity, store.metrics.rate("hits", entity, start=1005, end=1015, at=1030).total)
        for entity in (["user", "1"], ["user", "2"], [])
    ]
    assert dict((str(entity), total) for entity, total in found) == {
        str(entity): total for entity, total in expected
    }
    assert _top(store, start=1022, end=1022.01) == []


def test_a_ranking_of_more_buckets_than_wanted_is_refused(store: Store) -> None:
    store.metrics.define({"visits": {}})
    for number in range(4):
        store.metrics.incr("visits", ["user", number])

    assert len(store.metrics.top("visits", latest=600, most_buckets=4)) == 4
    with pytest.raises(BadRange, match="more than 3 buckets"):
        store.metrics.top("visits", latest=600, most_buckets=3)
    assert list(store.metrics.defined(names=["visits", "nothing"])) == ["visits"]
