"""Durations in a schema: seconds, or a text that names its unit."""

import time
from typing import Any

import msgspec
import pytest

from holdfast.errors import InvalidTableSchema
from holdfast.limits import MAX_UNITLESS_SECONDS
from holdfast.store import Store
from holdfast.tables import durations
from holdfast.tables.layout import keys_of
from holdfast.tables.migration import first_record
from holdfast.tables.plan import encode_record
from holdfast.tables.schema import normalise
from tests.tables.schemas import example, hash_on, simple, version

DAY = 86_400


def interval_of(interval: Any, count: int = 1) -> dict[str, Any]:
    return {"type": "interval", "count": count, "interval": interval, "grace_ttl": 0}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (86_400, DAY),
        (86_400.5, 86_400.5),
        ("1 day", DAY),
        ("1 Day", DAY),
        ("1day", DAY),
        (" 2 days ", 2 * DAY),
        ("1 d", DAY),
        ("86400000 ms", DAY),
        ("86400 s", DAY),
        ("86400 seconds", DAY),
        ("1440 min", DAY),
        ("1440 minutes", DAY),
        ("24 h", DAY),
        ("24 hours", DAY),
        ("1.5 hours", 5_400),
        ("1 week", 7 * DAY),
        ("2 w", 14 * DAY),
        ("500 milliseconds", 0.5),
        (MAX_UNITLESS_SECONDS, 365 * DAY),
    ],
)
def test_an_interval_is_seconds_or_names_its_unit(
    store: Store, written: Any, seconds: float
) -> None:
    store.tables.create(example(revisionRetentionPolicy=interval_of(written)))

    assert store.tables.schema("example")["revisionRetentionPolicy"]["interval"] == seconds


@pytest.mark.parametrize(
    "written",
    [
        "1", "day", "", " ", "one day", "1 fortnight", "1 day 2 h", "-1 day", "1e3 s", "1,5 h",
        "٣ s", "0 s", "1 y", "9" * 16 + " s", "1 s\n2", "999999999999999 weeks",
        "1." + "0" * 10 + " s",
    ],
)  # fmt: skip
def test_a_text_that_is_no_duration_is_refused(store: Store, written: str) -> None:
    for name in ("interval", "grace_ttl", "ttl"):
        policy = interval_of(DAY) | {"ttl": 1, name: written}
        if (name, written) == ("grace_ttl", "0 s"):
            continue
        with pytest.raises(InvalidTableSchema, match=f"{name} must be a number"):
            store.tables.create(example(revisionRetentionPolicy=policy))


@pytest.mark.parametrize("written", [86_400_000, MAX_UNITLESS_SECONDS + 1, 4e7])
def test_an_interval_above_a_year_asks_which_unit_is_meant(store: Store, written: Any) -> None:
    with pytest.raises(InvalidTableSchema, match="which unit is meant") as caught:
        store.tables.create(example(revisionRetentionPolicy=interval_of(written)))

    assert "interval must be a number" in caught.value.message
    assert f'"{written} ms"' in caught.value.hint
    assert f'"{written} s"' in caught.value.hint


def test_an_interval_above_a_year_that_names_its_unit_can_be_put_again(store: Store) -> None:
    store.tables.create(example(revisionRetentionPolicy=interval_of("400 days")))
    schema = store.tables.schema("example")

    again = store.tables.create(schema)
    elsewhere = store.space("other").tables.create(schema)

    assert schema["revisionRetentionPolicy"]["interval"] == f"{400 * DAY} s"
    assert (again.changed, elsewhere.changed) == (False, True)


def test_a_day_in_milliseconds_keeps_one_revision_of_each_day(store: Store) -> None:
    store.tables.create(example(revisionRetentionPolicy=interval_of("86400000 ms")))
    for second in (1, 2, DAY + 1, DAY + 2, 2 * DAY + 1):
        row = {"name": "a", "property": "p", "tid": version(second)}
        store.tables.put("example", row)

    assert store.tables.get("example", {"name": "a"}).count == 3


def test_a_duration_that_is_written_otherwise_is_no_change(store: Store) -> None:
    store.tables.create(example(revisionRetentionPolicy=interval_of(DAY)))

    assert not store.tables.create(example(revisionRetentionPolicy=interval_of("24 h"))).changed


def test_every_duration_of_a_schema_may_name_its_unit(store: Store) -> None:
    store.tables.create(
        example(revisionRetentionPolicy={"type": "latest", "count": 1, "grace_ttl": "1 h"})
    )
    store.tables.create(
        simple(table="a", revisionRetentionPolicy={"type": "ttl", "ttl": "2 weeks"})
    )
    store.tables.create(simple(table="b", options={"default_time_to_live": "1 day"}))

    assert store.tables.schema("example")["revisionRetentionPolicy"]["grace_ttl"] == 3_600
    assert store.tables.schema("a")["revisionRetentionPolicy"]["ttl"] == 14 * DAY
    assert store.tables.schema("b")["options"]["default_time_to_live"] == DAY
    store.tables.put("a", {"key": "k", "place": 1})
    store.tables.put("b", {"key": "k", "place": 1})
    assert store.tables.get("a", with_ttl=True).items[0]["_ttl"] == 14 * DAY
    assert store.tables.get("b", with_ttl=True).items[0]["_ttl"] == DAY


@pytest.mark.parametrize("written", ["half a day", "1.5 s", "0 s", "900 weeks of", "30 years"])
def test_a_bad_default_time_to_live_is_refused(store: Store, written: str) -> None:
    with pytest.raises(InvalidTableSchema, match="default_time_to_live"):
        store.tables.create(simple(options={"default_time_to_live": written}))


def test_a_stored_schema_with_a_large_interval_still_opens_and_changes(store: Store) -> None:
    """An older Holdfast took it; what is stored is not doubted."""
    old = normalise("example", example(revisionRetentionPolicy=interval_of(DAY)))[0]
    old["revisionRetentionPolicy"]["interval"] = 86_400_000
    old["index"][0]["comment"] = "an unknown member"
    old["options"]["compresion"] = []

    def store_as_before(tx: Any) -> None:
        keys = keys_of(tx.raw.space)
        tx.raw.put(keys.table("example"), encode_record(first_record(old, 1)))
        tx.raw.put(keys.number(1), b"example")
        tx.raw.add(keys.last_number, 1)

    store.transact(store_as_before)
    row = {"name": "a", "property": "p", "value": "v"}
    store.tables.put("example", row)
    store.tables.put("example", row)
    schema = store.tables.schema("example")

    assert store.tables.get("example", {"name": "a"}).count == 1
    assert not store.tables.create(schema).changed
    schema["attributes"]["added"] = "int"
    assert store.tables.create({**schema, "version": 2}).changed
    store.tables.add_index("example", "by_value", [hash_on("value")])
    assert store.tables.build_index("example", "by_value").complete
    changed = {**schema, "version": 9, "revisionRetentionPolicy": interval_of(90_000_000)}
    with pytest.raises(InvalidTableSchema, match="which unit"):
        store.tables.create(changed)


def test_reading_a_duration_takes_no_longer_than_its_text() -> None:
    begin = time.process_time()
    for text in ("1" * 100_000, "1." + "9" * 100_000, "1" + " " * 100_000 + "s", "s" * 100_000):
        with pytest.raises(ValueError, match="duration"):
            durations.normalised(text)

    assert time.process_time() - begin < 1


def test_the_ttl_of_a_put_names_its_unit_when_it_is_refused(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(Exception, match="seconds"):
        store.tables.put("simple", {"key": "a", "place": 1, "_ttl": "1 day"})


# --- what is misspelt ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "meant"),
    [
        ({"revisionRetentionPolcy": {"type": "all"}}, "revisionRetentionPolicy"),
        ({"secondaryIndex": {}}, "secondaryIndexes"),
        ({"secondary_indexes": {}}, "secondaryIndexes"),
        ({"Options": {}}, "options"),
        ({"options": {"compresion": []}}, "compression"),
        ({"options": {"default_ttl_to_live": 5}}, "default_time_to_live"),
        ({"options": {"updates": {"patern": "timeseries"}}}, "pattern"),
        ({"index": [{"type": "hash", "attribute": "name", "ordr": "desc"}]}, "order"),
        ({"secondaryIndexes": {"i": [{**hash_on("value"), "odrer": 1}]}}, "order"),
        ({"revisionRetentionPolicy": {"type": "ttl", "ttl": 5, "grace": 1}}, "grace_ttl"),
    ],
)  # fmt: skip
def test_a_misspelt_member_of_a_schema_is_refused(
    store: Store, members: dict[str, Any], meant: str
) -> None:
    with pytest.raises(InvalidTableSchema, match=f"did you mean '{meant}'"):
        store.tables.create(example(**members))


def test_members_that_look_like_no_known_one_are_kept_and_warned_of(store: Store) -> None:
    options = {"durability": "low", "shards": 3}

    result = store.tables.create(example(domain="en", note="mine", options=options))

    assert result.warnings == [
        "unknown member 'note' is kept and has no effect",
        "unknown option 'shards' is kept and has no effect",
    ]
    schema = store.tables.schema("example")
    assert (schema["note"], schema["options"]) == ("mine", options)
    assert msgspec.json.encode(schema)


def test_a_misspelt_member_of_a_batch_or_a_predicate_is_refused(store: Store) -> None:
    store.tables.create(simple())

    with pytest.raises(Exception, match="did you mean 'attributes'"):
        store.tables.batch([{"op": "put", "table": "simple", "atributes": {}}])
    with pytest.raises(Exception, match="did you mean 'between'"):
        store.tables.get("simple", {"key": "a", "place": {"betwen": [1, 2]}})
    with pytest.raises(Exception, match="did you mean 'value'"):
        store.tables.put("simple", {"key": "a", "place": 1, "valeu": "x"})
    with pytest.raises(Exception, match="python or json"):
        store.tables.get("simple", form="jsn")  # type: ignore[arg-type]  # on purpose
