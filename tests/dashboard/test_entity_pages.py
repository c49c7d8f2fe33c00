"""The pages about entities: what they show, and that each action has its effect in the store."""

import json
from collections.abc import Iterator
from html import escape
from urllib.parse import quote

import pytest

import holdfast
from holdfast.client.client import ClientSpace
from holdfast.entities.messages import Filter
from tests.dashboard.conftest import PASSWORD
from tests.dashboard.data_seeding import HOSTILE_TEXT, SHOP_YAML, seed_entities
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server

USERS = "/ui/crm/entities/shop.Users"


@pytest.fixture(scope="module")
def crm(server: Server) -> Iterator[ClientSpace]:
    """The space `crm`, which has 120 users."""
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        seed_entities(client.space("crm"))
        yield client.space("crm")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("entities", "shop.Users"),
        ("entities", "country, age"),
        ("entities/shop.Users", "120 in this table"),
        ("entities/shop.Users", "people who buy"),
        ("entities/shop.Users?c0=country&o0=%3D&v0=de", "30 match."),
        ("entities/shop.Users?c0=country&v0=de&c1=age&o1=%3E%3C&v1=18,25", "Customer 4<"),
        ("entities/shop.Users?c0=country&v0=de&order=age&down=1", "Customer 56<"),
        ("entities/shop.Users?c0=id&o0=IN&v0=user-001,user-002", "Customer 2<"),
        ("entities/shop.Users?c0=age&v0=many", "age is of type Int"),
        ("entities/shop.Users/ids/user-001", "Set of Text"),
        ("entities/shop.Users/ids/user-001", "2026-11-02T12:00:00+00:00"),
        ("entities/shop.Users/new", "random if empty"),
        ("entities/shop.Orders", "This table is empty."),
        ("schemas?schema=shop", "people who buy"),
        ("schemas", "A new schema"),
    ],
)
def test_a_page_shows_what_was_put(
    crm: ClientSpace, visitor: Visitor, page: str, said: str
) -> None:
    shown = visitor.get(f"/ui/crm/{page}")

    told = visitor.read(f"/ui/crm/{page}{'&' if '?' in page else '?'}format=json").json
    assert said in shown
    assert all(call["operation"].startswith("entities.") for call in told["calls"])


def test_a_table_is_read_page_by_page(crm: ClientSpace, visitor: Visitor) -> None:
    by_id = visitor.get(USERS)
    by_index = visitor.get(f"{USERS}?c0=country&o0=IN&v0=de,fr,jp,br")

    for page, number in ((by_id, 50), (by_index, 50)):
        assert page.count('name="id" value="user-') == number
    assert "cursor=user-049" in by_id
    assert "user-050" in visitor.get(f"{USERS}?cursor=user-049")
    assert "cursor=100" in visitor.get(f"{USERS}?c0=country&o0=IN&v0=de,fr,jp,br&cursor=50")


def test_a_filter_without_an_index_names_the_one_that_is_missing(
    crm: ClientSpace, visitor: Visitor
) -> None:
    page = visitor.get(f"{USERS}?c0=age&o0=%3E&v0=30&c1=name&v1=Ann")

    assert "- name\n" in page
    assert page.index("- name\n") < page.index("- age\n")  # the range is the last column
    prepared = visitor.get("/ui/crm/schemas?schema=shop&table=Users&index=name,age")
    assert prepared.count("- type: compound") == 2


def test_an_entity_is_put_changed_and_deleted(crm: ClientSpace, visitor: Visitor) -> None:
    visitor.get(f"{USERS}/new")
    visitor.do(f"{USERS}/put", id="zoe", properties='{"name": "Zoe", "age": 7}')
    changed = {"name": "Zoe", "seen": {"$date": "2026-01-02T00:00:00Z"}, "tags": {"$set": ["a"]}}
    page = visitor.do(f"{USERS}/put", id="zoe", version=1, properties=json.dumps(changed))

    [zoe] = crm.entities.get_raw("shop.Users", ["zoe"])
    assert "version 2" in page
    assert (zoe.properties["name"], zoe.properties["tags"]) == ("Zoe", {"a"})
    assert "age" not in zoe.properties
    late = visitor.post(f"{USERS}/put", id="zoe", version=1, properties="{}")
    assert late.status == 409
    assert "Deleted 1 entities" in visitor.do(f"{USERS}/delete", id="zoe")
    assert crm.entities.get_raw("shop.Users", ["zoe"]) == []


def test_what_an_entity_shows_for_editing_can_be_saved_unchanged(
    crm: ClientSpace, visitor: Visitor
) -> None:
    properties = {"name": "x", "n": 2**60, "f": 1.5, "b": b"\xff", "m": {"$date": 1}, "l": [None]}
    crm.entities.put_raw("shop.Users", [{"id": "odd", **properties}])
    page = visitor.get(f"{USERS}/ids/odd")
    text = page.split("<textarea")[1].split(">", 1)[1].split("</textarea>")[0]

    visitor.do(f"{USERS}/put", id="odd", properties=text.replace("&#34;", '"'))

    [odd] = crm.entities.get_raw("shop.Users", ["odd"])
    assert odd.properties == properties
    crm.entities.delete_raw("shop.Users", [Filter("id", "=", ("odd",))])


def test_a_schema_is_planned_and_then_deployed(crm: ClientSpace, visitor: Visitor) -> None:
    text = SHOP_YAML.replace(
        "total: {type: Float}", "total: {type: Float}\n      note: {type: Text}"
    )
    visitor.get("/ui/crm/schemas")

    planned = visitor.post("/ui/crm/schemas", yaml=text, do="plan").body.decode()
    refused = visitor.post("/ui/crm/schemas", yaml="schema: [", do="plan").body.decode()

    assert "+ column note: Text" in planned
    assert 'role="alert"' in refused
    assert "1 tables have changed" in visitor.do("/ui/crm/schemas", yaml=text, do="deploy")
    orders = crm.entities.schema("shop").table("Orders")  # type: ignore[union-attr]  # deployed
    assert orders is not None
    assert orders.column("note") is not None


def test_hostile_entities_stay_text(server: Server, visitor: Visitor) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        space = client.space("hostile-crm")
        space.entities.deploy(SHOP_YAML)
        entity = {"id": HOSTILE_TEXT, "name": HOSTILE_TEXT, HOSTILE_TEXT: HOSTILE_TEXT}
        space.entities.put_raw("shop.Users", [entity, {"id": "long", "name": "x" * 500_000}])

    listed = visitor.get("/ui/hostile-crm/entities/shop.Users")
    shown = visitor.get(f"/ui/hostile-crm/entities/shop.Users/ids/{quote(HOSTILE_TEXT, safe='')}")
    filtered = visitor.get(f"/ui/hostile-crm/entities/shop.Users?c0={quote(HOSTILE_TEXT)}")

    for page in (listed, shown, filtered):
        assert "<script>alert" not in page
        assert "<img" not in page
    assert escape("<script>alert(1)</script>") in shown
    assert len(listed) < 50_000


def test_a_reader_sees_entities_without_buttons_and_is_refused(guarded: Server) -> None:
    with holdfast.connect(f"holdfast://root:{quote(PASSWORD)}@127.0.0.1:{guarded.resp_port}") as c:
        seed_entities(c.space("default"), 3)
    visitor = Visitor(guarded)
    visitor.log_in("guest", PASSWORD)

    table = "/ui/default/entities/shop.Users"
    pages = [visitor.get(each) for each in ("/ui/default/entities", table, f"{table}/ids/user-001")]

    for page in pages:
        assert "Delete" not in page
        assert "New" not in page
        assert "Save" not in page
    for path, fields in (("put", {"properties": "{}"}), ("delete", {"id": "user-001"})):
        assert visitor.post(f"{table}/{path}", **fields).status == 403
    assert visitor.post("/ui/default/schemas", yaml=SHOP_YAML, do="deploy").status == 403
