"""The pages about tables: what they show, and that each action has its effect in the store."""

import json
from collections.abc import Iterator
from html import escape
from urllib.parse import quote

import pytest

import holdfast
from holdfast.client.client import ClientSpace
from tests.dashboard.conftest import PASSWORD
from tests.dashboard.data_seeding import HOSTILE_TEXT, REVISIONS, seed_tables
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server

TABLE = "/ui/wiki/tables/revisions"


@pytest.fixture(scope="module")
def wiki(server: Server) -> Iterator[ClientSpace]:
    """The space `wiki`, which has 140 revisions of 70 pages."""
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        seed_tables(client.space("wiki"))
        yield client.space("wiki")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("tables", "revisions"),
        ("tables?cursor=empty", "revisions"),
        ("tables/revisions", "140 rows"),
        ("tables/revisions", "by_author"),
        ("tables/revisions", "complete"),
        ("tables/revisions?q=Page_003", "A short text about 3<"),
        ("tables/revisions?q=Page_003%3Frev.gt%3D1", "A long text about 3<"),
        ("tables/revisions?q=%3Fcount%3Donly", "<strong>140</strong> rows"),
        ("tables/revisions?q=ann%3Findex%3Dby_author", "Page_066"),
        ("tables/revisions?q=Page_003%2F9", "Nothing matches."),
        ("tables/revisions?q=%3Fcake%3D1", "Unknown parameter"),
        ("tables/revisions/rows/Page_003%2F2", "A <ins>long</ins> text about 3"),
        ("tables/revisions/rows/Page_003%2F2", "A <del>short</del> text about 3"),
        ("tables/empty", "This table is empty."),
    ],
)
def test_a_page_shows_what_was_put(
    wiki: ClientSpace, visitor: Visitor, page: str, said: str
) -> None:
    shown = visitor.get(f"/ui/wiki/{page}")

    told = visitor.read(f"/ui/wiki/{page}{'&' if '?' in page else '?'}format=json").json
    assert said in shown
    assert all(call["operation"].startswith("tables.") for call in told["calls"])


def test_rows_are_read_page_by_page_and_exported_whole(wiki: ClientSpace, visitor: Visitor) -> None:
    page = visitor.get(TABLE)
    cursor = page.split("cursor=")[1].split('"')[0]
    second = visitor.get(f"{TABLE}?cursor={cursor}")

    lines = visitor.read(f"{TABLE}/export?as=ndjson").body.splitlines()
    table = visitor.read(f"{TABLE}/export?as=csv&q=Page_003").body.decode().splitlines()

    assert page.count(">open</a>") == second.count(">open</a>") == 50
    assert len(lines) == len(set(lines)) == 140
    assert [line.split(",")[:2] for line in table[1:]] == [["Page_003", "2"], ["Page_003", "1"]]
    assert visitor.read(f"{TABLE}/export?as=xml").status == 400


def test_a_row_is_put_changed_and_deleted(wiki: ClientSpace, visitor: Visitor) -> None:
    visitor.get(TABLE)
    row = {"title": "a/b", "rev": 1, "body": "first"}
    page = visitor.do(f"{TABLE}/put", attributes=json.dumps(row))
    etag = page.split('name="etag" value="')[1].split('"')[0].replace("&#34;", '"')
    visitor.do(f"{TABLE}/put", attributes=json.dumps({**row, "body": "second"}), etag=etag)

    [found] = wiki.tables.get("revisions", {"title": "a/b"}).items
    late = visitor.post(f"{TABLE}/put", attributes=json.dumps(row), etag=etag)
    key = json.dumps({"title": "a/b", "rev": 1})

    assert "<h1><bdi>a/b / 1</bdi></h1>" in page
    assert found["body"] == "second"
    assert late.status == 412
    assert visitor.post(f"{TABLE}/delete", key='{"title": "a/b"}').status == 400
    assert "Deleted 1 rows" in visitor.do(f"{TABLE}/delete", key=key)
    assert wiki.tables.get("revisions", {"title": "a/b"}).items == []


def test_a_table_is_created_indexed_and_dropped(wiki: ClientSpace, visitor: Visitor) -> None:
    visitor.get("/ui/wiki/tables")
    visitor.do("/ui/wiki/tables/create", schema=json.dumps({**REVISIONS, "table": "new"}))
    page = visitor.do("/ui/wiki/tables/new/add-index", index="by_body", hash="body", proj="author")

    wiki.tables.build_index("new", "by_body")
    mistyped = visitor.post("/ui/wiki/tables/new/drop", typed="old")

    assert "by_body" in page
    assert mistyped.status == 400
    assert "Dropped new" in visitor.do("/ui/wiki/tables/new/drop", typed="new")
    assert wiki.tables.names() == ["empty", "revisions"]


def test_hostile_rows_stay_text(server: Server, visitor: Visitor) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        tables = client.space("hostile-wiki").tables
        tables.create(REVISIONS)
        for rev, body in ((1, HOSTILE_TEXT), (2, f"x {HOSTILE_TEXT}"), (3, "x" * 500_000)):
            tables.put("revisions", {"title": HOSTILE_TEXT, "rev": rev, "body": body})

    listed = visitor.get("/ui/hostile-wiki/tables/revisions")
    key = quote(f"{quote(HOSTILE_TEXT, safe='')}/2", safe="")
    shown = visitor.get(f"/ui/hostile-wiki/tables/revisions/rows/{key}")

    for page in (listed, shown):
        assert "<script>alert" not in page
        assert "<img" not in page
    assert escape("<script>alert(1)</script>") in listed
    assert len(listed) < 50_000


def test_a_reader_sees_rows_without_buttons_and_is_refused(guarded: Server) -> None:
    with holdfast.connect(f"holdfast://root:{quote(PASSWORD)}@127.0.0.1:{guarded.resp_port}") as c:
        seed_tables(c.space("default"), 2)
    visitor = Visitor(guarded)
    visitor.log_in("guest", PASSWORD)

    table = "/ui/default/tables/revisions"
    pages = [visitor.get(each) for each in (table, f"{table}/rows/Page_001%2F1")]

    for page in pages:
        for word in ("New row", "Add an index", "Drop", "Save", "Delete"):
            assert word not in page
    for path, fields in (
        ("put", {"attributes": "{}"}),
        ("delete", {"key": '{"title": "a", "rev": 1}'}),
        ("drop", {"typed": "revisions"}),
        ("add-index", {"index": "x", "hash": "body"}),
    ):
        assert visitor.post(f"{table}/{path}", **fields).status == 403, path
    assert visitor.post("/ui/default/tables/create", schema="{}").status == 403
