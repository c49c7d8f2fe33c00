"""Queries by URL: everything that a body can ask, with the same answers."""

from typing import Any

import pytest

from holdfast.compat.restbase.paths import TablePath, parse_path
from holdfast.errors import (
    InvalidAttributeValue,
    InvalidTablePath,
    InvalidTableQuery,
    InvalidTableRequest,
    TableError,
)  # fmt: skip
from holdfast.store import Store
from tests.tables.schemas import example, hash_on, range_on, simple, version


def target(**members: Any) -> TablePath:
    return TablePath(domain="en", table="t", is_rows=True, **members)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/en/sys/table", TablePath(domain="en")),
        ("/en/sys/table/", TablePath(domain="en")),
        ("/en/sys/table/t", TablePath(domain="en", table="t")),
        ("/%2A/sys/table/t", TablePath(domain="*", table="t")),
        ("/en/sys/table/a%2Fb", TablePath(domain="en", table="a/b")),
        ("/en/sys/table/t/", target()),
        ("/en/sys/table/t/Tom", target(values=["Tom"])),
        ("/en/sys/table/t/Tom/foo/", target(values=["Tom", "foo"])),
        ("/en/sys/table/t/a%2Fb/%25/a+b", target(values=["a/b", "%", "a+b"])),
        ("/en/sys/table/t/%2E/%2E%2E", target(values=[".", ".."])),
        ("/en/sys/table/t/%00", target(values=["\0"])),
        ("/en/sys/table/t/%C3%BC", target(values=["ü"])),
        (b"/en/sys/table/t/\xc3\xbc", target(values=["ü"])),
        ("/en/sys/table/t//by_tid", target(index="by_tid")),
        ("/en/sys/table/t//by_tid/", target(index="by_tid")),
        ("/en/sys/table/t//by_tid/x/y", target(index="by_tid", values=["x", "y"])),
    ],
)
def test_a_path_is_split_before_it_is_decoded(path: str | bytes, found: TablePath) -> None:
    assert parse_path(path) == found


@pytest.mark.parametrize(
    "path",
    [
        "/en", "/en/sys/tables/t", "en/sys/table/t", "//sys/table/t", "/a%2Fb/sys/table/t",
        "/%00/sys/table/t", "/" + "d" * 254 + "/sys/table/t",
        "/en/sys/table/t//", "/en/sys/table/t///x", "/en/sys/table/t/a//b", "/en/sys/table/t/a//",
        "/en/sys/table/t//by_tid//x", "/en/sys/table//x", "/en/sys/table/t/%", "/en/sys/table/t/%2",
        "/en/sys/table/t/%zz", "/en/sys/table/t/%ff", "/en/sys/table/t/%c3%28",
    ],
)  # fmt: skip
def test_a_path_that_can_not_be_read_is_refused(path: str) -> None:
    with pytest.raises(InvalidTablePath) as caught:
        parse_path(path)

    assert (caught.value.type, caught.value.status) == ("invalid_path", 400)


@pytest.fixture
def rows(store: Store) -> Store:
    store.tables.create(
        example(secondaryIndexes={"by_length": [hash_on("length"), range_on("value")]})
    )
    for name in ("Tom", "a/b"):
        for place, prop in enumerate("abc"):
            for second in (1, 2):
                store.tables.put(
                    "example",
                    {
                        "name": name,
                        "property": prop,
                        "tid": version(second),
                        "length": place,
                        "value": f"v{second}",
                    },
                )
    return store


T1 = str(version(1))


@pytest.mark.parametrize(
    ("values", "query_string", "body"),
    [
        (["Tom"], "", {"attributes": {"name": "Tom"}}),
        (["a/b", "c"], "", {"attributes": {"name": "a/b", "property": "c"}}),
        (["Tom"], "ge=a&lt=c", {"attributes": {"name": "Tom", "property": {"ge": "a", "lt": "c"}}}),
        (["Tom"], "property.ge=b", {"attributes": {"name": "Tom", "property": {"ge": "b"}}}),
        ([], "eq=Tom", {"attributes": {"name": "Tom"}}),
        ([], "name.eq=Tom&property.eq=b", {"attributes": {"name": "Tom", "property": "b"}}),
        ([], "name.eq=", {"attributes": {"name": ""}}),
        ([], "name.eq=a%2Fb", {"attributes": {"name": "a/b"}}),
        (
            ["Tom"],
            "between=a&between=b",
            {"attributes": {"name": "Tom", "property": {"between": ["a", "b"]}}},
        ),
        (["Tom", "a", T1], "", {"attributes": {"name": "Tom", "property": "a", "tid": T1}}),
        (
            ["Tom", "a"],
            "le=1970-01-01T00:00:01Z",
            {"attributes": {"name": "Tom", "property": "a",
                            "tid": {"le": "1970-01-01T00:00:01Z"}}},
        ),
        (
            ["Tom", "a"],
            "le=1970-01-01T02:00:01%2B02:00",
            {"attributes": {"name": "Tom", "property": "a",
                            "tid": {"le": "1970-01-01T02:00:01+02:00"}}},
        ),
        (["Tom"], "limit=2", {"attributes": {"name": "Tom"}, "limit": 2}),
        (["Tom"], "limit=" + "9" * 30, {"attributes": {"name": "Tom"}, "limit": 10_000}),
        (["Tom"], "proj=value,name", {"attributes": {"name": "Tom"}, "proj": ["value", "name"]}),
        (["Tom"], "proj=value&proj=name", {"attributes": {"name": "Tom"},
                                           "proj": ["value", "name"]}),
        (["Tom"], "order=desc", {"attributes": {"name": "Tom"}, "order": {"property": "desc"}}),
        (
            ["Tom", "a"],
            "order=asc",
            {"attributes": {"name": "Tom", "property": "a"}, "order": {"tid": "asc"}},
        ),
        (
            ["Tom"],
            "order=property:desc&order=tid:asc",
            {"attributes": {"name": "Tom"}, "order": {"property": "desc", "tid": "asc"}},
        ),
        (["Tom"], "withTTL=1", {"attributes": {"name": "Tom"}, "with_ttl": True}),
        ([], "proj=name&distinct=true", {"proj": ["name"], "distinct": True}),
        ([], "count=only", {"count_only": True}),
        (["1"], "index=by_length", {"attributes": {"length": 1}, "index": "by_length"}),
        (
            ["1", "v2"],
            "index=by_length&order=asc",
            {"attributes": {"length": 1, "value": "v2"}, "index": "by_length",
             "order": {"name": "asc"}},
        ),
        ([], "limit=3", {"limit": 3}),
    ],
)  # fmt: skip
def test_a_url_asks_what_a_body_asks(
    rows: Store, values: list[str], query_string: str, body: dict[str, Any]
) -> None:
    by_url = rows.tables.get_by_url("example", values, query_string)
    by_body = rows.tables.get("example", form="json", **body)

    assert by_url == by_body


def test_pages_follow_each_other_by_url(rows: Store) -> None:
    first = rows.tables.get_by_url("example", ["Tom"], "limit=4")
    rest = rows.tables.get_by_url("example", ["Tom"], f"limit=4&next={first.next}")

    assert (first.count, rest.count) == (4, 2)


def test_the_bare_table_shows_ten_rows_and_a_query_a_thousand(rows: Store) -> None:
    assert rows.tables.get_by_url("example", []).count == 10
    assert rows.tables.get_by_url("example", [], "withTTL=false").count == 12
    assert rows.tables.get_by_url("example", [], index="by_length").count == 6


def test_the_index_of_path_and_parameter_must_agree(rows: Store) -> None:
    rows.tables.get_by_url("example", ["1"], "index=by_length", index="by_length")

    with pytest.raises(InvalidTableQuery):
        rows.tables.get_by_url("example", ["1"], "index=other", index="by_length")


@pytest.mark.parametrize(
    ("values", "query_string", "error"),
    [
        (["Tom", "a", T1, "more"], "", InvalidTablePath),
        (["Tom", "a", T1], "ge=x", InvalidTablePath),
        (["Tom"], "limt=5", InvalidTableQuery),
        (["Tom"], "gte=5", InvalidTableQuery),
        (["Tom"], "GE=5", InvalidTableQuery),
        (["Tom"], "Limit=5", InvalidTableQuery),
        (["Tom"], "limit=0", InvalidTableQuery),
        (["Tom"], "limit=-1", InvalidTableQuery),
        (["Tom"], "limit=x", InvalidTableQuery),
        (["Tom"], "limit", InvalidTableQuery),
        (["Tom"], "limit=1&limit=2", InvalidTableQuery),
        (["Tom"], "ge=a&ge=b", InvalidTableQuery),
        (["Tom"], "ge=a&property.ge=b", InvalidTableQuery),
        (["Tom"], "between=a", InvalidTableQuery),
        (["Tom"], "between=a&between=b&between=c", InvalidTableQuery),
        (["Tom"], "name.eq=Tom", InvalidTableQuery),
        (["Tom"], "nothing.eq=1", InvalidTableQuery),
        (["Tom"], "property.like=1", InvalidTableQuery),
        (["Tom"], "withTTL=yes", InvalidTableQuery),
        (["Tom"], "count=all", InvalidTableQuery),
        (["Tom"], "proj=missing", InvalidTableQuery),
        (["Tom"], "proj=", InvalidTableQuery),
        (["Tom"], "order=up", InvalidTableQuery),
        (["Tom"], "order=desc&order=property:asc", InvalidTableQuery),
        (["Tom", "a", T1], "order=desc", InvalidTableQuery),
        (["Tom"], "tid.eq=" + T1, InvalidTableQuery),
        ([], "property.eq=a", InvalidTableQuery),
        (["Tom", "a", "nonsense"], "", InvalidAttributeValue),
        (["Tom"], "ge=%zz", InvalidTablePath),
        (["Tom"], "ge=%ff", InvalidTablePath),
        (["x"], "index=by_length", InvalidAttributeValue),
        (["1"], "index=missing", TableError),
        (["Tom"], "next=garbage", TableError),
        (["Tom"], "length.eq=1", InvalidTableQuery),
        (["Tom"], "length.eq=nonsense", InvalidTableQuery),
        (["Tom", "a", "nonsense"], "limt=5", InvalidTableQuery),
        (["Tom", "a"], "tid.eq=nonsense&between=x", InvalidTableQuery),
        (["x"], "index=by_length&order=up", InvalidTableQuery),
    ],
)
def test_a_url_that_asks_nothing_sensible_is_refused(
    rows: Store, values: list[str], query_string: str, error: type[TableError]
) -> None:
    with pytest.raises(error):
        rows.tables.get_by_url("example", values, query_string)


def test_a_comma_in_a_name_is_encoded(store: Store) -> None:
    store.tables.create(
        {"table": "t", "attributes": {"a,b": "string", "c": "int"}, "index": [hash_on("a,b")]}
    )
    store.tables.put("t", {"a,b": "x", "c": 1})

    assert store.tables.get_by_url("t", ["x"], "proj=a%2Cb,c").items == [{"a,b": "x", "c": 1}]
    assert store.tables.get_by_url("t", [], "a%2Cb.eq=x").count == 1


def test_a_plus_in_a_parameter_is_a_space(store: Store) -> None:
    store.tables.create({"table": "t", "attributes": {"k": "string"}, "index": [hash_on("k")]})
    store.tables.put("t", {"k": "a b"})

    assert store.tables.get_by_url("t", [], "eq=a+b").count == 1
    assert store.tables.get_by_url("t", [], "eq=a%2Bb").count == 0


# --- writing by URL ------------------------------------------------------------------------------


def test_a_put_takes_key_attributes_from_the_path(rows: Store) -> None:
    result = rows.tables.put_by_url("example", ["Ann", "x"], {"length": 7})

    assert result.tid is not None
    [item] = rows.tables.get("example", {"name": "Ann"}).items
    assert (item["property"], item["length"]) == ("x", 7)
    rows.tables.put_by_url("example", ["Ann", "x", T1], {"name": "Ann", "tid": T1.upper()})
    with pytest.raises(InvalidTableRequest):
        rows.tables.put_by_url("example", ["Ann", "x"], {"name": "Bob"})
    with pytest.raises(InvalidTablePath):
        rows.tables.put_by_url("example", ["Ann", "x", T1, "y"], {})


def test_a_delete_takes_its_slice_from_the_url(rows: Store) -> None:
    assert rows.tables.delete_by_url("example", ["Tom"], "lt=b").count == 2
    assert rows.tables.delete_by_url("example", ["Tom", "b", T1]).count == 1
    assert rows.tables.get("example", {"name": "Tom"}).count == 3
    for query_string in ("limit=1", "proj=name", "order=asc", "index=by_length"):
        with pytest.raises((InvalidTableRequest, InvalidAttributeValue)):
            rows.tables.delete_by_url("example", ["Tom"], query_string)
    with pytest.raises(InvalidTableQuery):
        rows.tables.delete_by_url("example", [])


@pytest.mark.parametrize(
    "parameter",
    [
        "limit=1",
        "proj=name",
        "order=asc",
        "next=x",
        "index=x",
        "withTTL=1",
        "distinct=0",
        "count=only",
    ],
)
def test_a_delete_takes_no_parameter_but_predicates(rows: Store, parameter: str) -> None:
    before = rows.tables.get("example").count

    with pytest.raises(InvalidTableRequest):
        rows.tables.delete_by_url("example", ["Tom"], parameter)
    assert rows.tables.get("example").count == before


@pytest.mark.parametrize(
    ("query_string", "expected"),
    [
        ("limt=5", "limit"),
        ("betwen=a", "between"),
        ("propery.ge=a", "property.ge"),
        ("Proj=a", "proj"),
    ],
)
def test_an_unknown_parameter_names_the_nearest_one(
    store: Store, query_string: str, expected: str
) -> None:
    store.tables.create(example())

    with pytest.raises(InvalidTableQuery, match=f"did you mean '{expected}'"):
        store.tables.get_by_url("example", ["Tom"], query_string)


@pytest.mark.parametrize(("values", "query_string"), [(5, ""), ("a", ""), ([5], ""), (["a"], 5)])
def test_a_path_that_is_no_list_of_texts_is_refused(
    store: Store, values: Any, query_string: Any
) -> None:
    store.tables.create(simple())

    with pytest.raises(TableError):
        store.tables.delete_by_url("simple", values, query_string)
