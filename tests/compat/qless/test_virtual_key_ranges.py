"""Ranges of the virtual keys: the members that Redis would show, at the cost of what is shown."""

import itertools
from typing import Any

import pytest

import holdfast
from holdfast.compat.qless.virtual_keys import VirtualKeys, is_ordered
from holdfast.jobs.ledger import Ledger

ORDERED = ["ql:q:q-work", "ql:q:later-scheduled", "ql:t:blue", "ql:f:broken", "ql:completed"]


@pytest.fixture
def filled(store: holdfast.Store) -> holdfast.Store:
    """Seven jobs in each list."""
    for number in range(7):
        store.jobs.put("q", id=f"work{number}", priority=number % 3, tags=["blue"])
        store.jobs.put("later", id=f"later{number}", delay=1_000 + number)
    for number in range(14):
        store.jobs.put("mill", id=f"mill{number}")
        [job] = store.jobs.pop("mill", "worker")
        if number % 2:
            store.jobs.fail(job.id, "worker", "broken", "it broke")
        else:
            store.jobs.complete(job.id, "worker")
    return store


def members(virtual: VirtualKeys, key: str) -> list[str]:
    """All of them, found without ranks."""
    if key == "ql:f:broken":
        return sorted((f"mill{number}" for number in range(1, 14, 2)), reverse=True)
    return [name for name, _ in virtual.scored(key) or ()]


@pytest.mark.every_engine
@pytest.mark.parametrize("key", [*ORDERED, "ql:queues", "ql:q:none-work"])
def test_ranks_name_members_as_in_redis(filled: holdfast.Store, key: str) -> None:
    with filled.view() as view:
        virtual = VirtualKeys(view.raw)
        whole = members(virtual, key)
        assert len(whole) in (0, 3, 7)
        for first, last in itertools.product([0, 1, 3, 6, 7, 99, -1, -3, -7, -99], repeat=2):
            begin = max(0, first + len(whole)) if first < 0 else first
            end = last + len(whole) if last < 0 else last
            shown = [name for name, _ in virtual.range(key, first, last)]
            assert shown == whole[begin : max(0, end + 1)], (first, last)


@pytest.mark.parametrize("key", ORDERED)
def test_a_range_reads_what_it_shows_from_either_end(
    filled: holdfast.Store, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    for number in range(500):
        filled.jobs.put("q", id=f"more{number}")
    decoded = 0
    original = Ledger.job_at

    def job_at(self: Ledger, place: bytes) -> Any:
        nonlocal decoded
        decoded += 1
        return original(self, place)

    monkeypatch.setattr(Ledger, "job_at", job_at)
    with filled.view() as view:
        virtual = VirtualKeys(view.raw)
        assert is_ordered(key)
        assert len(virtual.range(key, 0, 1)) == 2
        assert len(virtual.range(key, -2, -1)) == 2
        assert virtual.has(key)

    assert decoded <= 4
