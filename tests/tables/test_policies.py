"""Retention policies: how a schema names them, and the table that alone knows them by name."""

import ast
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidTableSchema
from holdfast.store import Store
from holdfast.tables import policies
from holdfast.tables.plan import Values
from holdfast.tables.policies import MEMBERS, POLICIES, Policy, PolicyKind, PolicyMember, policy_of
from holdfast.tables.row_writer import RowWriter
from holdfast.tables.schema import normalise
from tests.tables.schemas import example, hash_on, range_on, simple


@pytest.mark.parametrize(
    ("policy", "fragment"),
    [
        ("latest", "Invalid revision retention policy type"),
        ({}, "Invalid revision retention policy type"),
        ({"type": "newest"}, "Invalid revision retention policy type"),
        ({"type": "all", "counts": 1}, "Unknown revision policy attribute"),
        ({"type": "ttl"}, "ttl must be a number"),
        ({"type": "ttl", "ttl": 0}, "ttl must be a number"),
        ({"type": "ttl", "ttl": "5"}, "ttl must be a number"),
        ({"type": "ttl", "ttl": True}, "ttl must be a number"),
        ({"type": "latest", "count": 1}, "grace_ttl must be a number"),
        ({"type": "latest", "count": 1, "grace_ttl": -1}, "grace_ttl must be a number"),
        ({"type": "latest", "grace_ttl": 1}, "count must be a number"),
        ({"type": "latest", "count": -1, "grace_ttl": 1}, "count must be a number"),
        ({"type": "latest", "count": 1.5, "grace_ttl": 1}, "count must be a number"),
        ({"type": "interval", "count": 1, "grace_ttl": 1}, "interval must be a number"),
        ({"type": "interval", "count": 1, "interval": 0, "grace_ttl": 1}, "interval must be"),
        ({"type": "interval", "count": 0, "interval": 5, "grace_ttl": 1}, "count must be"),
        ({"type": "all", "count": "many"}, "count must be a number"),
    ],
)
def test_a_policy_is_refused_with_its_reason(policy: Any, fragment: str) -> None:
    with pytest.raises(InvalidTableSchema, match=fragment):
        normalise("example", example(revisionRetentionPolicy=policy))


def test_interval_needs_a_version() -> None:
    policy = {"type": "interval", "count": 1, "interval": 5, "grace_ttl": 1}

    with pytest.raises(InvalidTableSchema, match="version"):
        normalise("simple", simple(revisionRetentionPolicy=policy))


def test_latest_hash_does_not_go_with_secondary_indexes() -> None:
    with pytest.raises(InvalidTableSchema, match="not supported with secondary indexes"):
        normalise(
            "example",
            example(
                revisionRetentionPolicy={"type": "latest_hash"},
                secondaryIndexes={"i": [hash_on("value")]},
            ),
        )


def test_latest_hash_needs_a_range_beside_the_version() -> None:
    schema = {
        "attributes": {"key": "string", "tid": "timeuuid"},
        "index": [hash_on("key"), range_on("tid", "desc")],
        "revisionRetentionPolicy": {"type": "latest_hash"},
    }

    with pytest.raises(InvalidTableSchema, match="range"):
        normalise("t", schema)


def test_a_policy_does_not_go_with_a_default_ttl() -> None:
    with pytest.raises(InvalidTableSchema, match="default_time_to_live"):
        normalise(
            "simple",
            simple(
                revisionRetentionPolicy={"type": "ttl", "ttl": 5},
                options={"default_time_to_live": 5},
            ),
        )


@pytest.mark.parametrize(
    "policy",
    [
        {"type": "all"},
        {"type": "latest_hash", "count": 1, "grace_ttl": 1},
        {"type": "latest", "count": 3, "grace_ttl": 0},
        {"type": "latest", "count": 3, "grace_ttl": 0, "interval": 5},
        {"type": "interval", "count": 1, "interval": 86400, "grace_ttl": 1.5},
        {"type": "ttl", "ttl": 0.5},
    ],
)
def test_a_valid_policy_comes_back_as_it_was_sent(policy: dict[str, Any]) -> None:
    schema, _ = normalise("example", example(revisionRetentionPolicy=policy))

    assert schema["revisionRetentionPolicy"] == policy


def test_latest_with_count_zero_is_ttl() -> None:
    schema, _ = normalise(
        "example",
        example(revisionRetentionPolicy={"type": "latest", "count": 0, "grace_ttl": 1.5}),
    )

    assert policy_of(schema) == Policy(type="ttl", ttl_ms=1500)


@pytest.mark.parametrize("kind", [[], {}, 5, None, True])
def test_a_type_that_is_no_name_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidTableSchema, match="Invalid revision retention policy type"):
        normalise("example", example(revisionRetentionPolicy={"type": kind}))


@pytest.mark.parametrize(
    ("policy", "fragment"),
    [
        ({"wrong": 1}, "Unknown revision policy attribute"),
        ({"type": "latest", "count": "x"}, "^count must be a number"),
        ({"type": "latest", "grace_ttl": "x"}, "^grace_ttl must be a number"),
        ({"type": "interval", "interval": "x"}, "^interval must be a number"),
    ],
)
def test_what_is_wrong_is_named_before_what_is_missing(
    policy: dict[str, Any], fragment: str
) -> None:
    with pytest.raises(InvalidTableSchema, match=fragment):
        normalise("example", example(revisionRetentionPolicy=policy))


def keep_one_row(policy: Policy, writer: RowWriter, key: bytes, values: Values) -> None:
    begin = writer.hash_prefix(values)
    writer.remove([row for row in writer.rows_between(begin, begin + b"\xff") if row[0] != key])


def test_an_entry_in_the_table_is_all_that_a_new_policy_needs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POLICIES, "only", PolicyKind(prune=keep_one_row))
    store.tables.create(simple(revisionRetentionPolicy={"type": "only"}))

    for place in (1, 3, 2):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x"})

    assert [row["place"] for row in store.tables.get("simple", {"key": "a"}).items] == [2]


def test_an_entry_in_the_table_is_all_that_a_new_member_needs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEMBERS, "pause", PolicyMember("grace_ms", per_second=1000, above=0))
    monkeypatch.setitem(POLICIES, "paused", PolicyKind(needs=frozenset({"pause"})))
    policy = {"type": "paused", "pause": "2 min"}
    store.tables.create(simple(revisionRetentionPolicy=policy))

    stored = store.tables.schema("simple")["revisionRetentionPolicy"]
    assert stored == {"type": "paused", "pause": 120}
    assert policy_of({"revisionRetentionPolicy": stored}) == Policy(type="paused", grace_ms=120_000)
    with pytest.raises(InvalidTableSchema, match="pause must be a number of seconds, above 0"):
        store.tables.create(simple(revisionRetentionPolicy={"type": "paused"}))


def test_every_field_of_a_policy_is_filled_by_a_member() -> None:
    assert {member.field for member in MEMBERS.values()} == {*Policy.__struct_fields__} - {"type"}


def test_no_other_module_of_the_layer_names_a_policy() -> None:
    names = POLICIES.keys() - {"all", "interval", "ttl"}  # words that mean other things elsewhere
    folder = Path(policies.__file__).parent
    found = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Constant) and node.value in names)
        or (isinstance(node, ast.Attribute) and ast.unparse(node).endswith("policy.type"))
    }

    assert found == {"policies.py", "puts.py"}  # where a put's error text says which policy it is
