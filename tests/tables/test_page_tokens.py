"""Pages: together they are the whole result, whatever happens in between."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidPageToken
from holdfast.store import Store
from holdfast.tables import reads
from holdfast.tables.types import type_names
from tests.stores import Stores
from tests.tables.schemas import example, hash_on, proj_of, range_on, simple, static_on, version

ROWS = st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 8)), min_size=1, max_size=14)
SCHEMA = simple(
    index=[hash_on("key"), range_on("place", "desc")],
    secondaryIndexes={"by_value": [hash_on("value"), range_on("key")]},
)


def pages(store: Store, limit: int, **query: Any) -> list[list[dict[str, Any]]]:
    found, token = [], None
    while True:
        page = store.tables.get("simple", limit=limit, next=token, **query)
        found.append(page.items)
        assert (page.next is not None) == (page.count == limit)
        if page.next is None:
            return found
        token = page.next


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS)
def test_pages_together_are_the_whole_result_for_every_limit(
    stores: Stores, rows: set[tuple[str, int]]
) -> None:
    queries: list[dict[str, Any]] = [
        {},
        {"order": {"place": "asc"}},
        {"attributes": {"key": "a"}},
        {"attributes": {"key": "a"}, "order": {"place": "asc"}},
        {"attributes": {"key": "b", "place": {"ge": 2, "lt": 7}}},
        {"distinct": True, "proj": "key"},
        {"index": "by_value"},
        {"index": "by_value", "attributes": {"value": "same"}, "proj": ["place", "key", "value"]},
        {"index": "by_value", "attributes": {"value": "same"}, "order": {"key": "desc"}},
    ]
    with stores.open() as store:
        store.tables.create(SCHEMA)
        for key, place in rows:
            row = {"key": key, "place": place, "value": "same" if place % 2 else "other"}
            store.tables.put("simple", row)

        for query in queries:
            whole = store.tables.get("simple", **query).items
            assert list(store.tables.scan("simple", **query)) == whole
            for limit in range(1, len(whole) + 2):
                found = [item for page in pages(store, limit, **query) for item in page]
                assert found == whole


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    before=ROWS,
    between=st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=8),
    limit=st.integers(1, 4),
    backwards=st.booleans(),
)
def test_the_next_page_begins_strictly_after_the_last_key(
    stores: Stores,
    before: set[tuple[str, int]],
    between: list[tuple[bool, int]],
    limit: int,
    backwards: bool,
) -> None:
    order = {"place": "asc"} if backwards else None
    with stores.open() as store:
        store.tables.create(SCHEMA)
        for _, place in before:
            store.tables.put("simple", {"key": "a", "place": place})
        first = store.tables.get("simple", {"key": "a"}, order=order, limit=limit)
        for added, place in between:
            row = {"key": "a", "place": place}
            store.tables.put("simple", row) if added else store.tables.delete("simple", row)

        if first.next is None:
            return
        rest = store.tables.get("simple", {"key": "a"}, order=order, next=first.next)
        last = first.items[-1]["place"]
        now = [i["place"] for i in store.tables.get("simple", {"key": "a"}, order=order).items]
        assert [item["place"] for item in rest.items] == [
            place for place in now if (place > last if backwards else place < last)
        ]


def test_the_page_after_the_last_full_page_is_empty(store: Store) -> None:
    store.tables.create(simple())
    for place in range(4):
        store.tables.put("simple", {"key": "a", "place": place})

    first = store.tables.get("simple", {"key": "a"}, limit=2)
    second = store.tables.get("simple", {"key": "a"}, limit=2, next=first.next)
    third = store.tables.get("simple", {"key": "a"}, limit=2, next=second.next)

    assert (first.count, second.count, third.count) == (2, 2, 0)
    assert third.next is None


def test_limit_projection_and_ttl_may_change_between_pages(store: Store) -> None:
    store.tables.create(simple())
    for place in range(4):
        store.tables.put("simple", {"key": "a", "place": place})
    first = store.tables.get("simple", {"key": "a"}, limit=1)

    rest = store.tables.get(
        "simple", {"key": "a"}, limit=9, proj="place", with_ttl=True, next=first.next
    )

    assert rest.items == [{"place": place, "_ttl": None} for place in (1, 2, 3)]


def test_a_token_belongs_to_its_query(store: Store) -> None:
    store.tables.create(SCHEMA)
    store.tables.create({**SCHEMA, "table": "other"})
    for place in range(4):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x"})
    token = store.tables.get("simple", {"key": "a"}, limit=1).next

    for table, query in [
        ("simple", {}),
        ("simple", {"attributes": {"key": "b"}}),
        ("simple", {"attributes": {"key": "a", "place": {"ge": 0}}}),
        ("simple", {"attributes": {"key": "a"}, "order": {"place": "asc"}}),
        ("simple", {"attributes": {"value": "x"}, "index": "by_value"}),
        ("simple", {"attributes": {"key": "a"}, "proj": "key", "distinct": True}),
        ("other", {"attributes": {"key": "a"}}),
    ]:
        with pytest.raises(InvalidPageToken) as caught:
            store.tables.get(table, next=token, **query)  # type: ignore[arg-type]
        assert (caught.value.type, caught.value.status) == ("invalid_token", 400)


@pytest.mark.parametrize("token", ["", "garbage", "ü", "AQ", "====", 5, "A" * 9000])
def test_a_garbage_token_is_refused(store: Store, token: Any) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidPageToken):
        store.tables.get("simple", next=token)


def test_a_token_is_url_safe_and_short(store: Store) -> None:
    store.tables.create(simple(attributes={"key": "blob", "place": "blob"}))
    for place in range(256):
        store.tables.put("simple", {"key": b"k" * 500, "place": bytes([place])})

    for place in range(256):
        predicate = {"key": b"k" * 500, "place": {"ge": bytes([place])}}
        token = store.tables.get("simple", predicate, limit=1).next
        assert token is not None
        assert len(token) < 200
        assert token.replace("-", "").replace("_", "").isalnum()


def test_the_default_limit_is_a_thousand_and_the_greatest_ten_thousand(store: Store) -> None:
    store.tables.create(simple())
    rows = [{"op": "put", "table": "simple", "attributes": {"key": "a", "place": place}}
            for place in range(10_100)]  # fmt: skip
    for begin in range(0, len(rows), 1_000):
        store.tables.batch(rows[begin : begin + 1_000])

    assert store.tables.get("simple").count == 1_000
    assert store.tables.get("simple", limit=20_000).count == 10_000


def test_a_page_ends_early_when_it_is_large_enough(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MAX_PAGE_BYTES", 10_000)
    store.tables.create(simple())
    for place in range(10):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x" * 3_000})

    page = store.tables.get("simple", {"key": "a"})

    assert page.count == 4
    rest = store.tables.get("simple", {"key": "a"}, next=page.next)
    assert [item["place"] for item in rest.items] == [4, 5, 6, 7]


def test_a_page_has_at_least_one_item(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_PAGE_BYTES", 10)
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1, "value": "x" * 100})

    assert store.tables.get("simple").count == 1


def test_pages_of_an_index_follow_rows_that_move(store: Store) -> None:
    store.tables.create(
        example(secondaryIndexes={"by_value": [hash_on("value"), proj_of("length")]})
    )
    for number in range(4):
        row = {"name": f"n{number}", "property": "p", "tid": version(1), "value": "x"}
        store.tables.put("example", row)
    first = store.tables.get("example", {"value": "x"}, index="by_value", limit=2)
    moved = {"name": "n1", "property": "p", "tid": version(2), "value": "y"}
    store.tables.put("example", moved)

    rest = store.tables.get("example", {"value": "x"}, index="by_value", next=first.next)

    assert [item["name"] for item in first.items] == ["n3", "n2"]
    assert [item["name"] for item in rest.items] == ["n0"]


def test_a_token_that_was_cut_or_changed_is_refused(store: Store) -> None:
    store.tables.create(SCHEMA)
    for place in range(3):
        store.tables.put("simple", {"key": "a", "place": place})
    token = store.tables.get("simple", {"key": "a"}, limit=1).next
    assert token is not None
    last = "B" if token[-1] == "A" else "A"

    for damaged in (token[:-1], token[:-4], token + "A", token + "=", token[:-1] + last, token[1:]):
        with pytest.raises(InvalidPageToken):
            store.tables.get("simple", {"key": "a"}, limit=1, next=damaged)


# --- pages above the limit on their size, of every type ------------------------------------------

MOMENT = datetime(2026, 11, 16, 12, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "string": "x" * 1_500,
    "blob": b"\xff" * 1_500,
    "boolean": True,
    "int": 2**31 - 1,
    "long": 2**63 - 1,
    "varint": 10**900,
    "decimal": Decimal("1." + "4" * 900),
    "float": 0.5,
    "double": 1e300,
    "timeuuid": version(1),
    "uuid": UUID(int=7),
    "timestamp": MOMENT,
    "json": {"deep": [10**30, 1.5, None]},
}
MEMBERS: dict[str, list[Any]] = {
    **{kind: [value] for kind, value in VALUES.items()},
    "int": list(range(300)),
    "long": [2**62 + number for number in range(100)],
    "varint": [10**90 + number for number in range(20)],
    "decimal": [Decimal(number) / 4 for number in range(300)],
    "double": [number / 8 for number in range(300)],
    "timeuuid": [version(second) for second in range(50)],
    "uuid": [UUID(int=number) for number in range(50)],
    "timestamp": [MOMENT.replace(second=second) for second in range(60)],
}
OF_EVERY_TYPE = {**VALUES, **{f"set<{kind}>": members for kind, members in MEMBERS.items()}}


@pytest.mark.parametrize("form", ["python", "json"])
@pytest.mark.parametrize("kind", sorted(type_names()))
def test_a_large_page_is_cut_and_goes_on_whatever_its_values_are(
    store: Store, monkeypatch: pytest.MonkeyPatch, kind: str, form: Any
) -> None:
    attributes = {"key": "string", "place": "int", "value": kind, "filler": "blob"}
    store.tables.create(simple(attributes=attributes))
    row = {"key": "a", "value": OF_EVERY_TYPE[kind], "filler": b"f" * 1_500}
    for place in range(6):
        store.tables.put("simple", {**row, "place": place})
    whole = store.tables.get("simple", {"key": "a"}, form=form).items
    monkeypatch.setattr(reads, "MAX_PAGE_BYTES", 6_000)

    found: list[dict[str, Any]] = []
    page = store.tables.get("simple", {"key": "a"}, form=form)
    sizes = [page.count]
    while page.next is not None:
        found += page.items
        page = store.tables.get("simple", {"key": "a"}, form=form, next=page.next)
        sizes.append(page.count)

    assert found + page.items == whole
    assert 0 < max(sizes) < 6


def test_a_row_larger_than_a_page_is_returned_alone_and_the_pages_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MAX_PAGE_BYTES", 1_000)
    store.tables.create(simple(attributes={"key": "string", "place": "int", "value": "blob"}))
    for place in range(3):
        store.tables.put("simple", {"key": "a", "place": place, "value": b"v" * 5_000})

    pages, token = [], None
    for _ in range(4):
        page = store.tables.get("simple", {"key": "a"}, form="json", next=token)
        pages.append([item["place"] for item in page.items])
        token = page.next

    assert pages == [[0], [1], [2], []]
    assert token is None


def test_the_size_of_a_page_counts_rows_as_they_are_read_and_not_as_they_are_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of an index, a static value and a compressed row are small where they are stored."""
    monkeypatch.setattr(reads, "MAX_PAGE_BYTES", 10_000)
    attributes = {"key": "string", "place": "int", "tag": "string", "value": "string"}
    shared = {"attributes": attributes, "secondaryIndexes": {"by_tag": [hash_on("tag")]}}
    compressed = {"compression": [{"algorithm": "deflate"}]}
    store.tables.create(simple(**shared, options=compressed))
    static = {**attributes, "note": "string"}
    index = [hash_on("key"), range_on("place"), static_on("note")]
    store.tables.create({"table": "statics", "attributes": static, "index": index})
    for place in range(10):
        row = {"key": "a", "place": place, "tag": "t", "value": "x" * 3_000}
        store.tables.put("simple", row)
        store.tables.put("statics", {"key": "a", "place": place, "note": "x" * 3_000})

    by_index = store.tables.get("simple", {"tag": "t"}, index="by_tag", proj="value", limit=20)

    assert store.tables.get("simple", {"key": "a"}, limit=20).count == 4
    assert by_index.count == 4
    assert store.tables.get("statics", {"key": "a"}, limit=20).count == 4
