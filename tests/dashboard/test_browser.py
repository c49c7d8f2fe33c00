"""The dashboard in Chromium: looks, accessibility, live parts, keyboard, and without a script."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser

import holdfast
from holdfast.client.client import Client, ClientSpace
from tests.dashboard.browser import Reader, chromium
from tests.dashboard.data_seeding import (
    HOSTILE_TEXT,
    seed_entities,
    seed_events,
    seed_hostile_data,
    seed_metrics,
    seed_tables,
)
from tests.server.serving import Server

LOOKED_AT = [
    "shop/", "shop/queues", "shop/queues/receipts?state=failed", "shop/jobs/receipt-1",
    "shop/jobs/merge", "shop/jobs/order-1042", "shop/failures",
    "shop/failures/SMTPServerDisconnected", "shop/workers", "shop/schedules",
    "shop/schedules/nightly", "shop/throttles", "shop/throttles?name=smtp", "shop/tracked",
    "shop/search?q=vip", "shop/bulk", "hostile/jobs/long",
    "data/entities", "data/entities/shop.Users?c0=country&v0=de", "data/entities/shop.Users?c0=age",
    "data/entities/shop.Users/ids/user-001", "data/schemas?schema=shop", "data/tables",
    "data/tables/revisions", "data/tables/revisions/rows/Page_001%2F2", "data/events",
    "data/events/keys/popular", "data/events/playground", "data/metrics", "data/metrics/visits",
    "data/limits?condition=logins&limit=3", "data/spaces", "data/spaces/data", "data/users",
    "data/backups", "data/check", "data/settings", "data/slow",
]  # fmt: skip
_KEY = quote(HOSTILE_TEXT, safe="")
HOSTILE_PAGES = [
    "", "queues", "failures", "schedules", "workers", "jobs/long", "entities",
    "entities/shop.Users", f"entities/shop.Users/ids/{_KEY}", "entities/shop.Users/ids/odd",
    "tables/revisions", f"tables/revisions/rows/{quote(f'{_KEY}/2', safe='')}", "events",
    "events/schemas/hostile", f"events/keys/{_KEY}", "metrics", "metrics/visits", "spaces/hostile",
    f"search?q={_KEY}", f"limits?condition={_KEY}",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def wide(browser: Browser, server: Server, client: object) -> Iterator[Reader]:
    """A window of a desk, light, for all tests that only look."""
    reader = Reader(browser, f"{server.url}/ui/", viewport={"width": 1440, "height": 900})
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def data(client: Client) -> None:
    """The space `data`, which has a little in each layer but jobs, and more that is hostile."""
    space = client.space("data")
    seed_entities(space, 12)
    seed_tables(space, 4)
    seed_events(space, 12)
    seed_metrics(space)
    seed_hostile_data(client.space("hostile"))


@pytest.mark.parametrize("path", LOOKED_AT)
def test_a_page_has_no_errors_fits_a_phone_and_axe_finds_nothing(
    wide: Reader, data: None, path: str
) -> None:
    wide.errors.clear()

    page = wide.open(path)
    with wide.as_phone():
        on_phone = wide.excess_width(), wide.violations()

    assert page.locator("h1").count() == 1
    assert on_phone == (0, [])
    assert (wide.excess_width(), wide.violations()) == (0, [])
    assert wide.errors == []


def test_a_page_follows_what_happens_in_the_store(wide: Reader, client: Client) -> None:
    client.space("live").jobs.put("q", id="first")
    page = wide.open("live/queues")
    page.get_by_text("live", exact=True).last.wait_for()

    client.space("live").jobs.put("appears", id="second")

    page.get_by_role("link", name="appears").wait_for()


def test_a_chart_is_drawn_with_axes(wide: Reader, server: Server) -> None:
    page = wide.open("shop/queues/receipts")

    assert page.locator("table.bars rect").count() == 20


def test_an_action_is_done_by_keyboard_alone(wide: Reader, client: Client) -> None:
    space: ClientSpace = client.space("keyboard")
    space.jobs.put("q", id="one")
    page = wide.open("keyboard/jobs/one")

    page.get_by_text("Cancel", exact=True).first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Cancel it"
    page.keyboard.press("Enter")
    page.get_by_text("Canceled the job one.").wait_for()

    assert space.jobs.get("one") is None


def test_the_first_tab_leads_past_the_menu(wide: Reader) -> None:
    page = wide.open("shop/")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "main"


def test_all_of_a_page_are_selected_with_one_tick(wide: Reader) -> None:
    page = wide.open("shop/queues/search-index")

    page.get_by_label("Select all on this page").check()

    ticked = page.locator("tbody input[type=checkbox]:checked").count()
    assert ticked == page.locator("tbody tr input[type=checkbox]").count() > 1


def test_light_and_dark_are_switched(wide: Reader) -> None:
    page = wide.open("shop/queues")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")

    page.get_by_label("Light or dark").click()
    page.get_by_label("Light or dark: now light").click()
    page.get_by_label("Light or dark: now dark").wait_for()

    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.get_by_label("Light or dark: now dark").click()


def test_times_are_shown_in_the_zone_of_the_viewer(browser: Browser, server: Server) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        client.space("zones").jobs.put("q", id="one")
    reader = Reader(browser, f"{server.url}/ui/", timezone_id="Asia/Kolkata", locale="en-GB")
    time = reader.open("zones/jobs/one").locator("time[data-time]").first

    hours = time.evaluate("each => new Date(each.dataset.time * 1000).getHours()")
    assert f"{hours}:" in time.inner_text() or f"{hours:02}:" in time.inner_text()
    assert time.get_attribute("title", timeout=1000).endswith(" UTC")  # type: ignore[union-attr]  # it is set
    reader.close()


def test_without_a_script_pages_are_read_and_single_actions_done(
    browser: Browser, server: Server
) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        space = client.space("scriptless")
        space.jobs.put("q", "Task", id="one")
        reader = Reader(browser, f"{server.url}/ui/", java_script_enabled=False)

        page = reader.open("scriptless/queues")
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("Paused q.").wait_for()
        page = reader.open("scriptless/jobs/one")
        page.get_by_text("Cancel", exact=True).first.click()
        page.get_by_role("button", name="Cancel it").click()
        page.get_by_text("Canceled the job one.").wait_for()

        assert space.jobs.counts("q").paused
        assert space.jobs.get("one") is None
        reader.close()


def test_hostile_data_runs_nothing_and_breaks_no_layout(wide: Reader, data: None) -> None:
    wide.errors.clear()

    for path in HOSTILE_PAGES:
        page = wide.open(f"hostile/{path}")
        assert page.locator("h1").count() == 1, path
        assert page.locator("img, script:not([src])").count() == 0, path
        assert wide.excess_width() == 0, path
        with wide.as_phone():
            assert wide.excess_width() == 0, path

    assert wide.errors == []
