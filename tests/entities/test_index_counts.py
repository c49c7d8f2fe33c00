"""Milestones count the entries of an index, in whatever order these come and go."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.contract import Reader, Transaction
from holdfast.entities import StoreEntities, index_counts
from holdfast.entities.index_counts import (
    count_changes,
    count_stretch,
    is_milestone,
    recount_step,
    skip_backward,
    skip_forward,
)
from holdfast.entities.layout import END_OF_INDEX
from holdfast.entities.records import StoredIndex
from holdfast.entities.schema import Index
from holdfast.entities.table_access import IndexAccess, access_to
from holdfast.keys import pack, prefix_range
from holdfast.store import Store
from tests.stores import Stores

SPACE = pack(1)
INDEX = IndexAccess(SPACE, Index(columns=("a",)), StoredIndex(7), "an index")
ENTRIES = [pack(2, float(n), 0, f"{n}") for n in range(2000)]


def commit(store: Store, added: list[bytes], removed: list[bytes]) -> None:
    def change(tx: Transaction) -> None:
        for entry in added:
            tx.put(INDEX.entries + entry, b"\0\0")
        for entry in removed:
            tx.delete(INDEX.entries + entry)
        count_changes(tx, INDEX, {**dict.fromkeys(added, 1), **dict.fromkeys(removed, -1)})

    store.engine.transact(change, space=SPACE)


def check_skips(view: Reader, present: set[int]) -> None:
    """Skipping by milestones and walking the rest arrives where walking arrives."""
    begin, end = ENTRIES[5], ENTRIES[55]
    walked = [ENTRIES[n] for n in sorted(present) if 5 <= n < 55]
    for offset in range(0, 50, 6):
        at, left = skip_forward(view, INDEX, begin, end, offset)
        assert [entry for entry in walked if entry >= at][left:] == walked[offset:]
        at, left = skip_backward(view, INDEX, begin, end, offset)
        assert [entry for entry in walked if entry < at][::-1][left:] == walked[::-1][offset:]


@pytest.mark.parametrize("batch", [1, 7, 500])
def test_counts_are_right_after_any_batch(store: Store, batch: int) -> None:
    random = Random(batch)
    present: set[bytes] = set()
    for _ in range(3 if batch == 500 else 40):
        added = random.sample(ENTRIES, batch)
        removed = random.sample(sorted(present), min(len(present), batch // 2))
        new = [entry for entry in added if entry not in present and entry not in removed]
        present = present - set(removed) | set(new)
        commit(store, new, removed)

    with store.engine.view(space=SPACE) as view:
        for _ in range(20):
            begin, end = sorted(random.sample(ENTRIES, 2))
            expected = sum(begin <= entry < end for entry in present)
            assert count_stretch(view, INDEX, begin, end) == expected
        assert count_stretch(view, INDEX, b"", END_OF_INDEX) == len(present)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60))), max_size=8))
def test_a_milestone_may_be_any_entry(
    stores: Stores, changes: list[tuple[set[int], set[int]]]
) -> None:
    """With a milestone at every second entry on average, all neighbourhoods occur."""
    present: set[int] = set()
    with pytest.MonkeyPatch.context() as patch, stores.open() as store:
        patch.setattr(index_counts, "_MILESTONE_MASK", 1)
        for put, deleted in changes:
            new, gone = put - present, (deleted & present) - put
            present = (present | new) - gone
            commit(store, [ENTRIES[n] for n in new], [ENTRIES[n] for n in gone])
        with store.engine.view(space=SPACE) as view:
            for begin in range(0, 60, 7):
                for end in range(begin, 61, 9):
                    expected = sum(begin <= n < end for n in present)
                    assert count_stretch(view, INDEX, ENTRIES[begin], ENTRIES[end]) == expected
            check_skips(view, present)
            assert recount_step(view, INDEX, b"", dry_run=True)[0] == 0  # type: ignore[arg-type]  # it only looks


def test_damaged_counts_are_found_and_set_right(entities: StoreEntities, store: Store) -> None:
    entities.put_raw("test.Users", [{"id": str(n), "age": n} for n in range(1500)])

    def damage(tx: Transaction) -> None:
        index = access_to(tx, "test.Users").indexes[1]
        [first, *_] = [key for key, _ in tx.scan(*prefix_range(index.milestones), limit=1)]
        tx.add(index.counts + first[len(index.milestones) :], 5)
        tx.put(index.milestones + pack(2, 3.0, 0, "none"), b"")

    store.engine.transact(damage, space=SPACE)

    assert entities.check("test.Users").recounted == 2
    assert entities.repair("test.Users").recounted == 2
    assert entities.check("test.Users").recounted == 0


def test_about_one_entry_in_512_is_a_milestone() -> None:
    many = [pack(2, float(n), 0, f"{n}") for n in range(20_000)]

    assert 20 < sum(map(is_milestone, many)) < 65
