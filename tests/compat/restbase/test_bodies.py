"""RESTBase's bodies and answers."""

from typing import Any

import msgspec
import pytest

from holdfast.compat.restbase.bodies import (
    created_body,
    error_body,
    page_body,
    put_body,
    read_delete,
    read_put,
    read_query,
)  # fmt: skip
from holdfast.compat.restbase.http import type_of
from holdfast.errors import (
    AnswerTooLarge,
    BatchTooLong,
    HoldfastError,
    InvalidAttributeValue,
    InvalidTableQuery,
    InvalidTableRequest,
    RequestTooLarge,
    TableError,
    TableMismatch,
    UnknownAttribute,
    ValueTooLarge,
)  # fmt: skip
from holdfast.tables import CreateResult, Page, PutResult
from holdfast.tables.queries import Query
from tests.tables.schemas import version


def test_every_member_of_a_query_is_read() -> None:
    body = {
        "table": "t",
        "attributes": {"name": "Tom"},
        "proj": ["value"],
        "order": {"property": "desc"},
        "limit": 50,
        "next": "opaque",
        "index": "by_tid",
        "withTTL": True,
        "distinct": False,
        "count": "only",
        "consistency": "localQuorum",
    }

    assert read_query(body, "t") == Query(
        attributes={"name": "Tom"},
        proj=["value"],
        order={"property": "desc"},
        limit=50,
        next="opaque",
        index="by_tid",
        with_ttl=True,
        count_only=True,
    )
    assert read_query(None, "t") == read_query({"next": None, "limit": None}, "t") == Query()


@pytest.mark.parametrize("read", [read_query, read_put, read_delete])
def test_a_body_names_its_own_table_or_none(read: Any) -> None:
    read({"table": "t"}, "t")

    with pytest.raises(TableMismatch):
        read({"table": "other"}, "t")
    with pytest.raises(InvalidTableRequest):
        read([], "t")
    with pytest.raises(InvalidTableRequest, match="did you mean 'attributes'"):
        read({"Attributes": {}}, "t")


@pytest.mark.parametrize("read", [read_query, read_put, read_delete])
@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("limt", "'limt'"),
        ("filter", "'filter'"),
        ("latest", "'latest'"),
        ("attribute", "did you mean 'attributes'"),
        ("Table", "did you mean 'table'"),
        ("consistncy", "did you mean 'consistency'"),
        ("__proto__", "__proto__"),
    ],
)
def test_an_unknown_member_is_refused_and_the_nearest_one_is_named(
    read: Any, member: str, expected: str
) -> None:
    with pytest.raises(InvalidTableRequest, match=expected) as caught:
        read({"attributes": {}, member: 1}, "t")

    assert "attributes" in caught.value.hint


def test_a_member_of_another_kind_of_request_says_so() -> None:
    with pytest.raises(InvalidTableRequest, match="only a write has it"):
        read_query({"if": "exists"}, "t")
    with pytest.raises(InvalidTableRequest, match="only a query has it"):
        read_put({"limit": 1}, "t")
    with pytest.raises(InvalidTableRequest, match="did you mean 'limit'"):
        read_query({"limt": 1}, "t")


def test_what_only_the_originals_need_is_taken_and_has_no_effect() -> None:
    body = {"attributes": {"a": 1}, "timestamp": 1, "consistency": "localQuorum"}

    assert read_put(body, "t")["attributes"] == {"a": 1}
    assert read_delete(body, "t")["attributes"] == {"a": 1}


def test_flags_are_true_or_false() -> None:
    bodies: list[dict[str, Any]] = [{"withTTL": 1}, {"distinct": "true"}, {"count": True}]
    for body in bodies:
        with pytest.raises(InvalidTableQuery):
            read_query(body, "t")


def test_a_put_is_read() -> None:
    assert read_put({"attributes": {"a": 1}, "if": "not exists", "return": "old"}, "t") == {
        "attributes": {"a": 1},
        "if_": "not exists",
        "return_old": True,
    }
    bodies: list[Any] = [None, {"attributes": []}, {"return": "new"}]
    for body in bodies:
        with pytest.raises(InvalidTableRequest):
            read_put(body, "t")


def test_a_delete_takes_no_limit_proj_order_next_and_index() -> None:
    assert read_delete({"attributes": {"a": 1}}, "t") == {"attributes": {"a": 1}, "if_": None}
    for name in ("limit", "proj", "order", "next", "index"):
        with pytest.raises(InvalidTableRequest, match=name):
            read_delete({"attributes": {"a": 1}, name: 1}, "t")


def test_answers_have_the_members_that_clients_know() -> None:
    assert created_body("en", CreateResult(table="t", version=2, changed=True)) == {
        "type": "table_created",
        "title": "Table was created.",
        "domain": "en",
        "table": "t",
        "version": 2,
        "changed": True,
    }
    assert put_body(PutResult(applied=False)) == {"applied": False}
    assert put_body(PutResult(applied=True, tid=version(1))) == {
        "applied": True,
        "tid": str(version(1)),
    }
    old = {"a": 1}
    assert put_body(PutResult(applied=True, old=old), return_old=True)["old"] == old
    assert page_body(Page(items=[], count=0)) == {"items": [], "count": 0}
    assert page_body(Page(items=[{}], count=1, next="n"))["next"] == "n"


def test_an_error_names_its_type_and_attribute() -> None:
    error: TableError = InvalidAttributeValue("bad", attribute="length", hint="Try again.")

    assert error_body(error) == {
        "type": "invalid_value",
        "title": "bad",
        "detail": "Try again.",
        "attribute": "length",
    }
    assert error_body(TableMismatch("two tables")) == {
        "type": "table_mismatch",
        "title": "two tables",
    }


def test_an_error_about_a_name_that_is_no_text_can_be_sent() -> None:
    error = UnknownAttribute("Unknown attribute \ud800", attribute="\ud800")

    body = error_body(error)

    assert msgspec.json.decode(msgspec.json.encode(body)) == {
        "type": "unknown_attribute",
        "title": "Unknown attribute \\ud800",
        "attribute": "\\ud800",
    }


@pytest.mark.parametrize("name", ["Limit", "ORDER", "Index"])
def test_a_delete_refuses_the_same_members_in_other_letters(name: str) -> None:
    with pytest.raises(InvalidTableRequest, match="did you mean"):
        read_delete({"attributes": {"name": "Tom"}, name: 1}, "example")


@pytest.mark.parametrize("kind", [RequestTooLarge, BatchTooLong, AnswerTooLarge, ValueTooLarge])
def test_what_is_too_large_has_one_type_and_status(kind: type[HoldfastError]) -> None:
    assert (type_of(kind("much")), kind.status) == ("too_large", 413)
