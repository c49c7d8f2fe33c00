"""The pages about events: what they show, and that each action has its effect in the store."""

import json
from collections.abc import Iterator
from html import escape
from urllib.parse import quote

import pytest

import holdfast
from holdfast.client.client import ClientSpace
from tests.dashboard.conftest import PASSWORD
from tests.dashboard.data_seeding import EVENTS, HOSTILE_TEXT, seed_events
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server

VIEW = {"name": "shop:view", "attributes": {"visitor": "zoe", "artwork": "starry-night"}}


@pytest.fixture(scope="module")
def gallery(server: Server) -> Iterator[ClientSpace]:
    """The space `gallery`, where 60 events were sent."""
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        seed_events(client.space("gallery"))
        yield client.space("gallery")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("events", "shop:view"),
        ("events", "count_frequency"),
        ("events?prefix=pop", "popular"),
        ("events?prefix=nothing", "No key begins with that."),
        ("events/keys/popular", "a count is never too low"),
        ("events/keys/popular", "artwork-1"),
        ("events/keys/prices", "average"),
        ("events/playground", "Explain"),
        ("events/schemas/default", "max_stored_values"),
    ],
)
def test_a_page_shows_what_events_have_become(
    gallery: ClientSpace, visitor: Visitor, page: str, said: str
) -> None:
    shown = visitor.get(f"/ui/gallery/{page}")

    assert said in shown
    assert visitor.read(f"/ui/gallery/{page}{'&' if '?' in page else '?'}format=json").json


def test_the_keys_of_days_are_a_chart_and_a_list_of_members(
    gallery: ClientSpace, visitor: Visitor
) -> None:
    keys = [each.key for each in gallery.events.keys("visitors:").keys]
    page = visitor.get(f"/ui/gallery/events/keys/{quote(keys[-1])}")

    assert "visitors:{day}, one point for each day" in page
    assert "by=&#39;gross&#39;, to=" in page
    assert ", from_=" in page  # as Python spells it
    assert page.count("<bdi>visitor-") == gallery.events.size(keys[-1])


def test_the_playground_explains_without_writing_and_sends(
    gallery: ClientSpace, visitor: Visitor
) -> None:
    visitor.get("/ui/gallery/events/playground")
    before = gallery.events.gross("popular")

    explained = visitor.post("/ui/gallery/events/playground", event=json.dumps(VIEW), do="explain")
    assert gallery.events.gross("popular") == before
    sent = visitor.post("/ui/gallery/events/playground", event=json.dumps(VIEW), do="send")
    broken = visitor.post("/ui/gallery/events/playground", event="{", do="explain")

    assert b"starry-night" in explained.body
    assert b"the event has no price" in explained.body
    assert b"2 handlers ran" in sent.body
    assert gallery.events.gross("popular") == before + 1
    assert b"is not JSON" in broken.body


def test_a_schema_is_deployed_and_withdrawn_and_a_key_forgotten(
    gallery: ClientSpace, visitor: Visitor
) -> None:
    visitor.get("/ui/gallery/events")
    visitor.do("/ui/gallery/events/deploy", name="more", dialect="mql", schema=json.dumps(EVENTS))
    deployed = set(gallery.events.schemas())
    visitor.do("/ui/gallery/events/schemas/more/withdraw")
    visitor.do("/ui/gallery/events/keys/prices/forget")

    assert deployed == {"default", "more"}
    assert set(gallery.events.schemas()) == {"default"}
    assert visitor.read("/ui/gallery/events/keys/prices").status == 404


def test_hostile_events_stay_text(server: Server, visitor: Visitor) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        events = client.space("hostile-events").events
        handler = {"targets": ["['seen']"], "add": "who", "max_stored_values": 9}
        board = {"targets": ["[who]"], "count_frequency": "who", "max_stored_values": 9}
        events.deploy({"a": [handler, board]}, name="hostile")
        events.send({"name": "a", "attributes": {"who": HOSTILE_TEXT}})
        keys = [each.key for each in events.keys().keys]

    for path in ("events", *(f"events/keys/{quote(key, safe='')}" for key in keys)):
        page = visitor.get(f"/ui/hostile-events/{path}")
        assert "<script>alert" not in page
        assert "<img" not in page
        assert escape("<script>alert(1)</script>") in page


def test_a_reader_may_explain_and_not_send(guarded: Server) -> None:
    visitor = Visitor(guarded)
    visitor.log_in("guest", PASSWORD)
    page = visitor.get("/ui/default/events/playground")
    path = "/ui/default/events/playground"

    assert "Send it" not in page
    assert visitor.post(path, event=json.dumps(VIEW), do="explain").status == 200
    assert visitor.post(path, event=json.dumps(VIEW), do="send").status == 403
    assert visitor.post("/ui/default/events/deploy", schema="{}").status == 403
    assert visitor.post("/ui/default/events/keys/a/forget").status == 403
