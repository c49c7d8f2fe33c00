"""The pages about metrics and limits: what they show, and that each action has its effect."""

from collections.abc import Iterator
from typing import get_args

import pytest

import holdfast
from holdfast.client.client import ClientSpace
from holdfast.metrics.conditions import Algorithm
from tests.dashboard.conftest import PASSWORD
from tests.dashboard.data_seeding import HOSTILE_TEXT, seed_metrics
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server


@pytest.fixture(scope="module")
def stats(server: Server) -> Iterator[ClientSpace]:
    """The space `stats`, which has a metric of each kind."""
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        seed_metrics(client.space("stats"))
        yield client.space("stats")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("metrics", "pages that were read"),
        ("metrics?cursor=seconds", "visits"),
        ("metrics?prefix=other", "No metric is defined here yet."),
        ("metrics/visits", "user, user-8"),
        ("metrics/visits?entity=user,user-3&with=load", "load last"),
        ("metrics/load?value=max", "load, max"),
        ("metrics/seconds?value=p99", "seconds, p99"),
        ("limits", "Checking counts nothing"),
        ("limits?condition=logins&limit=3&window=60&entity=user,ann", "would be allowed"),
        ("limits?condition=logins&limit=many", "must be numbers"),
    ],
)
def test_a_page_shows_what_was_counted(
    stats: ClientSpace, visitor: Visitor, page: str, said: str
) -> None:
    assert said in visitor.get(f"/ui/stats/{page}")


def test_an_entity_is_reset_and_a_limit_is_tried(stats: ClientSpace, visitor: Visitor) -> None:
    visitor.get("/ui/stats/limits")
    visitor.do("/ui/stats/metrics/visits/reset", entity="user,user-8")
    fields = {"condition": "tries", "limit": 2, "window": 3600, "entity": "user,zoe"}
    said = [visitor.do("/ui/stats/limits/try", **fields) for _ in range(3)]

    assert stats.metrics.rate("visits", ["user", "user-8"], latest=600).total == 0
    assert ["Allowed, and counted." in page for page in said] == [True, True, False]
    assert "would be refused" in said[-1]


@pytest.mark.parametrize("algorithm", get_args(Algorithm))
def test_a_limit_is_checked_by_every_algorithm(
    stats: ClientSpace, visitor: Visitor, algorithm: str
) -> None:
    page = visitor.get(f"/ui/stats/limits?condition=checks&limit=2&window=60&algorithm={algorithm}")

    assert f"<option selected>{algorithm}</option>" in page
    assert "would be allowed" in page


def test_defined_metrics_are_listed_in_pages(stats: ClientSpace) -> None:
    first = list(stats.metrics.defined(limit=2))
    rest = stats.metrics.defined(after=first[-1])

    assert first == ["load", "seconds"]
    assert rest["visits"].help == "pages that were read"


def test_hostile_metrics_stay_text(server: Server, visitor: Visitor) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        metrics = client.space("hostile-stats").metrics
        metrics.define({"visits": {"help": HOSTILE_TEXT}})
        metrics.incr("visits", [HOSTILE_TEXT])

    for path in ("metrics", "metrics/visits"):
        page = visitor.get(f"/ui/hostile-stats/{path}")
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)" in page


def test_a_reader_may_neither_reset_nor_try(guarded: Server) -> None:
    visitor = Visitor(guarded)
    visitor.log_in("guest", PASSWORD)
    page = visitor.get("/ui/default/limits?condition=logins")

    assert "Try it once" not in page
    assert visitor.post("/ui/default/limits/try", condition="a").status == 403
    assert visitor.post("/ui/default/metrics/visits/reset").status == 403
