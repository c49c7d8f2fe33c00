"""All types round-trip, and sort in keys as the specification says, ascending and descending."""

import ast
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidAttributeValue
from holdfast.keys.encoding import COMPLEMENT
from holdfast.store import Store
from holdfast.tables import types
from holdfast.tables.json_parser import parse_json
from holdfast.tables.migration import first_record
from holdfast.tables.plan import TablePlan, pack_value
from holdfast.tables.schema import normalise
from holdfast.tables.types import ATTRIBUTE_KINDS, AttributeKind, equal, type_of
from tests.tables.schemas import hash_on

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_MS = int((datetime(9999, 12, 31, tzinfo=UTC) - EPOCH).total_seconds()) * 1000
MIN_MS = int((datetime(1, 1, 1, tzinfo=UTC) - EPOCH).total_seconds()) * 1000

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SHORT = st.text("ab\0\x01\xff", max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
TIME_IDS = st.builds(
    lambda low, mid, high, rest: UUID(
        int=low << 96 | mid << 80 | (0x1000 | high) << 64 | rest | 1 << 63
    ),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 2**16 - 1]),
    st.sampled_from([0, 0x11E, 0xFFF]),
    st.integers(0, 2**63 - 1),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT | SHORT,
    "blob": st.binary(max_size=12) | SHORT.map(lambda text: text.encode("latin-1")),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "varint": st.integers(-(10**1000) + 1, 10**1000 - 1) | st.integers(-300, 300),
    "decimal": st.builds(
        lambda number, exponent: Decimal(number).scaleb(exponent),
        st.integers(-(10**20), 10**20) | st.integers(-11, 11),
        st.integers(-30, 30),
    ),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "timeuuid": TIME_IDS,
    "uuid": st.uuids(),
    "timestamp": st.integers(MIN_MS, MAX_MS).map(lambda ms: EPOCH + timedelta(milliseconds=ms)),
    "json": JSON.filter(lambda value: value is not None),
}


def as_ordered(kind: str, value: Any) -> Any:
    """Returns a value that Python compares as the specification orders the type."""
    if kind == "string":
        return value.encode()
    if kind == "timeuuid":
        return (value.time, value.bytes[8:])
    if kind == "uuid":
        return value.bytes
    return value


def table_of(kind: str) -> TablePlan:
    schema, _ = normalise(
        "t", {"attributes": {"key": "int", "value": kind}, "index": [hash_on("key")]}
    )
    return TablePlan(first_record(schema, 1))


def through_a_row(plan: TablePlan, value: Any) -> Any:
    return plan.values(plan.pack([1, value]))[1]


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_value_comes_back_from_a_row_as_it_went_in(kind: str, data: st.DataObject) -> None:
    column = table_of(kind).attributes["value"]
    value = column.type.accept(data.draw(VALUES[kind]))

    again = through_a_row(table_of(kind), value)

    assert repr(again) == repr(value)
    assert column.type.accept(again) == value


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_value_comes_back_from_json_as_it_went_in(kind: str, data: st.DataObject) -> None:
    found = type_of(kind)
    value = found.accept(data.draw(VALUES[kind]))

    text = msgspec.json.encode(value if found.to_json is None else found.to_json(value))

    again = found.accept(parse_json(text))
    assert equal(found, again, value)
    assert str(again) == str(value)


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_set_is_sorted_without_duplicates_and_comes_back(kind: str, data: st.DataObject) -> None:
    found = type_of(f"set<{kind}>")
    given_values = data.draw(st.lists(VALUES[kind], max_size=6))
    members = found.accept(given_values * 2)

    order = ATTRIBUTE_KINDS[kind].order
    assert [order(m) for m in members or []] == sorted({order(type_of(kind).accept(v))
                                                        for v in given_values})  # fmt: skip
    assert through_a_row(table_of(found.name), members) == members
    text = msgspec.json.encode(
        members if found.to_json is None or members is None else found.to_json(members)
    )
    again = parse_json(text)
    assert (None if again is None else found.accept(again)) == members


@pytest.mark.parametrize("kind", [kind for kind in VALUES if type_of(kind).component])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_components_sort_as_their_values_do(kind: str, data: st.DataObject) -> None:
    left, right = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    one, two = (ATTRIBUTE_KINDS[kind].order(each) for each in (left, right))
    a, b = as_ordered(kind, left), as_ordered(kind, right)

    assert (one < two, one == two) == (a < b, a == b)
    flipped_one, flipped_two = one.translate(COMPLEMENT), two.translate(COMPLEMENT)
    assert (flipped_one > flipped_two) == (a < b)
    if a != b:
        assert not one.startswith(two)
        assert not two.startswith(one)


def test_an_integer_beyond_64_bits_is_exact_in_a_row() -> None:
    plan = table_of("json")

    for value in (2**63 - 1, 2**63, -(2**63) - 1, {"a": [10**50]}):
        assert through_a_row(plan, pack_value(plan.attributes["value"], value)) == value


def test_a_float_is_its_nearest_single_in_rows_and_predicates() -> None:
    value = type_of("float").accept(-3.434)

    assert value == struct.unpack(">f", struct.pack(">f", -3.434))[0] == -3.434000015258789
    order = ATTRIBUTE_KINDS["float"].order
    assert order(-0.0) == order(0.0)


def test_json_has_one_kind_of_numbers() -> None:
    kind = type_of("set<json>")

    assert kind.accept([1, 1.0, {"a": [2.0]}, {"a": [2]}]) == [1, {"a": [2.0]}]
    assert equal(type_of("json"), {"a": 2}, {"a": 2.0})
    assert not equal(type_of("json"), 1, True)


def test_every_type_has_values_to_be_tested_with() -> None:
    assert VALUES.keys() == ATTRIBUTE_KINDS.keys()


def accept_percent(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 100:
        raise ValueError("a percentage is between 0 and 100")
    return value


@pytest.mark.every_engine
def test_an_entry_in_the_table_is_all_that_a_new_type_needs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    percent = AttributeKind(
        accept=accept_percent,
        from_text=lambda text: accept_percent(int(text.removesuffix("%"))),
        to_json=lambda value: f"{value}%",
        component=ATTRIBUTE_KINDS["int"].component,
        python=int,
        zero=0,
    )
    monkeypatch.setitem(ATTRIBUTE_KINDS, "percent", percent)
    attributes = {"key": "string", "done": "percent", "part": "percent", "seen": "set<percent>"}
    ranged = {"attribute": "done", "type": "range", "order": "desc"}
    index = [hash_on("key"), ranged]
    store.tables.create({"table": "t", "attributes": attributes, "index": index})

    for done in (5, 100, 40):
        store.tables.put("t", {"key": "a", "done": done, "part": 1, "seen": [7, 3, 7]})
    store.tables.put("t", {"key": "a", "done": 40, "part": {"incr": 2}})

    rows = store.tables.get("t", {"key": "a", "done": {"ge": 40}}).items
    assert [(row["done"], row["part"], row["seen"]) for row in rows] == [
        (100, 1, [3, 7]),
        (40, 3, [3, 7]),
    ]
    shown = store.tables.get("t", {"key": "a", "done": 40}, form="json").items
    assert (shown[0]["part"], shown[0]["seen"]) == ("3%", ["3%", "7%"])
    with pytest.raises(InvalidAttributeValue, match="between 0 and 100"):
        store.tables.put("t", {"key": "a", "done": 101})


def test_no_other_module_of_the_layer_decides_by_the_name_of_a_type() -> None:
    names = ATTRIBUTE_KINDS.keys() - {"json"}  # which is also a form of values
    found = {
        path.name
        for path in Path(types.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        and any(isinstance(each, ast.Constant) and each.value in names for each in ast.walk(node))
    }

    assert found == {"versions.py"}  # a version is a timeuuid
