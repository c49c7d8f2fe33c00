"""Values travel as they are: what a store holds, a client gives back in the same types."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from holdfast import exact_msgpack
from holdfast.entities.messages import Change, Filter, Get, Ping, Put, PutEntity
from holdfast.entities.values import Instant
from holdfast.errors import (
    BadArgument,
    BadInput,
    BadMetricKey,
    BadRange,
    BadValue,
    InvalidAttributeValue,
    InvalidEntitySchema,
    InvalidTableQuery,
)
from holdfast.metrics import GlobalEntityKey
from tests.server.running import Server

SCHEMA = (
    "schema: shop\ntables:\n  Users:\n    primary: {type: random}\n"
    "    columns: {name: {type: Text}}\n    indexes: [{type: compound, columns: [name]}]\n"
)
ROW = {
    "id": UUID(int=5),
    "amount": Decimal("1.50"),
    "big": 2**100,
    "seen": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "body": b"\0\xff",
    "tags": ["a", "b"],
    "any": {"n": [1, None, 2**80]},
}
TYPES = {
    "id": "uuid",
    "amount": "decimal",
    "big": "varint",
    "seen": "timestamp",
    "body": "blob",
    "tags": "set<string>",
    "any": "json",
}


def test_a_limit_may_be_written_with_a_fraction_of_zero(client: Any) -> None:
    index = [{"type": "hash", "attribute": "id"}]
    client.tables.create({"table": "rows", "attributes": {"id": "int"}, "index": index})
    for number in range(3):
        client.tables.put("rows", {"id": number})

    assert client.tables.get("rows", limit=2.0).count == 2
    with pytest.raises(InvalidTableQuery, match="an integer of at least 1"):
        client.tables.get("rows", limit=2.5)


def test_an_entity_may_have_an_integer_of_any_size(client: Any) -> None:
    client.metrics.define({"hits": {"lifetime": True}})
    for entity in ([2**70], {"user": -(2**70)}, GlobalEntityKey([2**70])):
        client.metrics.incr("hits", entity)
        client.metrics.write([{"metric": "hits", "entity": entity, "value": 2}])

        assert client.metrics.lifetime("hits", entity) == 3
    assert client.metrics.lifetime("hits", ["other"]) == 0


def test_a_value_that_only_an_extension_can_hold_is_refused_in_words(client: Any) -> None:
    client.metrics.define({"hits": {}})

    with pytest.raises(BadRange, match="`n` must be a whole number, not an integer beyond 64 bits"):
        client.metrics.top("hits", latest=60, n=2**70)


def test_rows_come_back_in_the_types_of_their_attributes(client: Any) -> None:
    client.tables.create(
        {
            "table": "rows",
            "attributes": TYPES,
            "index": [{"type": "hash", "attribute": "id"}],
        }
    )

    client.tables.put("rows", ROW)
    [row] = client.tables.get("rows", {"id": ROW["id"]}).items

    assert {name: row[name] for name in ROW} == ROW
    assert {name: type(row[name]) for name in ROW} == {n: type(v) for n, v in ROW.items()}


def test_properties_of_entities_come_back_as_they_were_put(client: Any) -> None:
    client.entities.deploy(SCHEMA)
    properties = {
        "set": {1, "two"},
        "moment": datetime(2026, 1, 2, tzinfo=UTC),
        "early": Instant(-(10**15)),
        "bytes": b"\0",
        "large": 2**64 - 1,
        "nested": {"list": [{"x"}, 1.5]},
    }

    client.entities.put_raw("shop.Users", [{**properties, "id": "ann"}])
    [entity] = client.entities.get_raw("shop.Users", ["ann"])

    assert entity.properties == properties


def test_a_dict_of_properties_is_never_taken_for_a_record(client: Any) -> None:
    client.entities.deploy(SCHEMA)

    client.entities.put_raw("shop.Users", [{"id": "ann", "properties": {"a": 1}}])
    client.entities.put_raw("shop.Users", [PutEntity({}, "ben"), PutEntity({"a": 1}, "cat")])

    found = client.entities.get_raw("shop.Users", ["ann", "ben", "cat"])
    assert [entity.properties for entity in found] == [{"properties": {"a": 1}}, {}, {"a": 1}]


def test_a_moment_without_a_zone_is_what_it_is_to_the_store(client: Any) -> None:
    client.entities.deploy(SCHEMA)

    client.entities.put_raw("shop.Users", [{"id": "ann", "at": datetime(2026, 1, 2)}])

    [entity] = client.entities.get_raw("shop.Users", ["ann"])
    assert entity.properties["at"] == datetime(2026, 1, 2, tzinfo=UTC)


def test_replies_of_several_queries_have_the_types_of_their_queries(client: Any) -> None:
    client.entities.deploy(SCHEMA)

    put, page, ping = client.entities.execute(
        [
            Put("shop.Users", [PutEntity({"name": "Ann"}, "ann")]),
            Get("shop.Users", [Filter("name", "=", ("Ann",))]),
            Ping(),
        ]
    )

    assert (put, ping) == (["ann"], None)
    assert [entity.id for entity in page] == ["ann"]


def test_sets_are_changed_as_sets(client: Any) -> None:
    client.entities.deploy(SCHEMA)
    client.entities.put_raw("shop.Users", [{"id": "ann", "tags": {"a"}}])

    who = [Filter("id", "=", ("ann",))]
    client.entities.update_raw("shop.Users", who, [Change("SADD", "tags", {"b"})])

    [entity] = client.entities.get_raw("shop.Users", ["ann"])
    assert entity.properties == {"tags": {"a", "b"}}


def test_the_data_of_a_job_may_hold_integers_of_any_size(client: Any) -> None:
    client.jobs.put("q", data={"n": 2**100, "list": (1, 2)}, id="a")

    assert client.jobs.get("a").data == {"n": 2**100, "list": [1, 2]}


def test_any_iterable_goes_where_one_is_taken(client: Any) -> None:
    client.entities.deploy(SCHEMA)

    ids = client.entities.put_raw("shop.Users", ({"id": each} for each in "ab"))

    assert ids == ["a", "b"]
    assert len(client.entities.get_raw("shop.Users", iter(ids))) == 2


def test_a_damaged_extension_is_refused(server: Server) -> None:
    with server.connect() as raw:
        raw.ask("EXACT")
        for code, data in [(1, b"\x91\x90"), (2, b"x"), (3, b"x"), (4, b"x"), (5, b"x"), (6, b"x")]:
            payload = msgspec.msgpack.encode({"queue": "q", "data": Ext(code, data)})

            assert str(raw.ask("JOBS.PUT", payload)).startswith("BAD_INPUT {"), code


@pytest.mark.parametrize("value", [object(), {"a": object()}, "\ud800", 1j])
def test_what_can_not_travel_is_refused_with_a_reason(client: Any, value: Any) -> None:
    with pytest.raises(BadInput, match=r"can't be sent|can't represent"):
        client.jobs.put("q", data=value)


@pytest.mark.parametrize("timeout", ["soon", float("nan"), [1]])
def test_a_wait_for_no_number_of_seconds_is_refused(client: Any, timeout: Any) -> None:
    with pytest.raises(BadArgument, match="timeout"):
        client.jobs.pop_wait("q", "w", timeout=timeout)
    with pytest.raises(BadArgument, match="timeout"):
        client.jobs.result_wait("a", timeout=timeout)


def test_a_space_and_a_topic_are_named_by_text(client: Any) -> None:
    with pytest.raises(BadInput, match="the name of a space must be text, not 5"):
        client.space(5)
    with pytest.raises(BadInput, match="a topic must be text, not 5"):
        client.subscribe(5)


def test_errors_keep_their_class_their_hint_and_all_they_say(client: Any) -> None:
    client.tables.create(
        {
            "table": "t",
            "attributes": {"k": "string", "n": "int"},
            "index": [{"type": "hash", "attribute": "k"}],
        }
    )
    with pytest.raises(InvalidAttributeValue) as of_tables:
        client.tables.put("t", {"k": "a", "n": "cake"})
    with pytest.raises(InvalidEntitySchema) as of_schemas:
        client.entities.deploy("schema: shop\ntables: {Users: {columns: {a: {type: Cake}}}}")
    with pytest.raises(BadMetricKey) as of_metrics:
        client.metrics.define({"edits": {}}, prefix=[1])
    with pytest.raises(BadValue):
        client.entities.deploy(SCHEMA)
        client.entities.put_raw("shop.Users", [{"a\0": 1}])

    assert of_tables.value.attribute == "n"
    assert of_schemas.value.problems
    assert "\n" not in of_schemas.value.problems[0]
    assert of_metrics.value.hint == BadMetricKey.hint


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(VALUES | st.sets(st.integers() | st.text(max_size=3) | st.uuids()))
def test_every_value_comes_back_exactly(value: Any) -> None:
    data = exact_msgpack.encode(exact_msgpack.replaced(value))

    back = msgspec.msgpack.Decoder(ext_hook=exact_msgpack.extension).decode(data)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("job", ["a", 5, None, ["a"]])
def test_what_is_no_job_is_refused_as_an_argument(client: Any, job: Any) -> None:
    with pytest.raises(BadInput, match=r"`jobs\[0\]` must be an object"):
        client.jobs.put_many([job])
    with pytest.raises(BadInput, match=r"`jobs\[0\]` must be an object"):
        client.jobs.import_jobs([job])
