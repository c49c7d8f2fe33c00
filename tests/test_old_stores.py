"""Stores that earlier versions wrote: this version reads them, and goes on with them."""

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast.entities.messages import Filter
from holdfast.testing import Clock
from tests.old_stores.fill import NOW, PAGES, fill
from tests.stores import problems_of

ARCHIVES = sorted(Path(__file__).with_name("old_stores").glob("*.tar.xz"))
VERSIONS = [path.name.removesuffix(".tar.xz") for path in ARCHIVES]


@pytest.fixture(params=[None, *ARCHIVES], ids=["today", *VERSIONS])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store as an earlier version left it, and for comparison one of this version."""
    folder = tmp_path / "data"
    if request.param is None:
        with holdfast.open(folder, clock=Clock(NOW)) as store:
            fill(store)
        return folder
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, filter="data")
    state = folder / "redo-state"
    if state.exists():
        # A log in interval mode counts until the machine is restarted, and it has been since.
        written_in = msgspec.msgpack.decode(state.read_bytes()[4:])["boot_id"].decode()
        monkeypatch.setattr("holdfast.engine.folder.boot_id", lambda: written_in)
    return folder


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def store(folder: Path, clock: Clock) -> Iterator[holdfast.Store]:
    with holdfast.open(folder, clock=clock) as store:
        yield store


def test_archives_are_there() -> None:
    assert {"2026-11-16-closed", "2026-11-16-killed"} <= set(VERSIONS)


def test_nothing_is_wrong_with_it(store: holdfast.Store) -> None:
    assert problems_of(store) == []
    assert sorted(store.spaces()) == ["default", "other"]


def test_its_entities_are_found_by_id_and_by_index_and_expire(
    store: holdfast.Store, clock: Clock
) -> None:
    def found(customer: str) -> list[float]:
        by_customer = (Filter("customer", "=", [customer]),)
        page = store.entities.select_raw("shop.Orders", by_customer, limit=100)
        assert page.total == len(page.entities)
        return sorted(entity.properties["total"] for entity in page.entities)

    assert found("c3") == [float(n) for n in range(3, 70, 7)]
    [order] = store.entities.get_raw("shop.Orders", ["order-42"])
    assert order.properties == {"customer": "c0", "total": 42.0}
    store.entities.put_raw("shop.Orders", [{"customer": "c3", "total": 1000.0}])
    assert found("c3")[-1] == 1000.0

    brief = store.entities.get_raw("shop.Orders", ["brief"])
    clock.advance(seconds=61)
    assert brief
    assert not store.entities.get_raw("shop.Orders", ["brief"])


def test_its_rows_are_read_in_order_and_their_revisions_retained(store: holdfast.Store) -> None:
    store.tables.create(dict(PAGES))  # the same schema changes nothing
    store.tables.put("pages", {"title": "t1", "rev": 9, "html": "<p>newer"})

    rows = store.tables.get("pages", {"title": "t1"}).items

    assert [row["rev"] for row in rows] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert [row["html"] for row in rows[:2]] == ["<p>newer", "<p>25"]


def test_its_events_are_counted_on(store: holdfast.Store) -> None:
    view = {"visitor": "v9", "artist": "leonardo", "artwork": "w4"}
    store.events.send({"name": "shop:view", "attributes": view, "at": "2023-11-14T13:00:00Z"})

    top = store.events.top("popular:leonardo")

    assert {entry.value: entry.count for entry in top} == {
        "w0": 8,
        "w1": 8,
        "w2": 8,
        "w3": 8,
        "w4": 9,
    }


def test_its_jobs_are_run(store: holdfast.Store, clock: Clock) -> None:
    done = []
    while popped := store.jobs.pop("emails", worker="new"):
        done += [job.id for job in popped]
        for job in popped:
            store.jobs.complete(job.id, worker="new", lock=job.lock)

    assert done == [*(f"job-{number:02}" for number in range(16, -1, -1)), "after"]
    clock.advance(seconds=3601)
    assert [job.id for job in store.jobs.pop("emails", worker="new")] == ["later"]
    clock.advance(seconds=11)  # the grace period of the job that the old worker has not completed
    assert [job.id for job in store.jobs.pop("emails", worker="new")] == ["job-19"]
    assert [job.klass for job in store.jobs.pop("reports", worker="new")] == ["app.Report"]


def test_its_counts_and_limits_go_on(store: holdfast.Store, clock: Clock) -> None:
    store.metrics.incr("points", ["ann"], 2)
    limiter = store.metrics.limiter({"logins": "3/hour"}, prefix="app", algorithm="strict")

    assert store.metrics.lifetime("points", ["ann"]) == 52
    assert store.metrics.rate("orders", latest=3600).total == 25
    assert not limiter.try_incr("logins", ["ann"]).allowed
    clock.advance(seconds=7200)
    assert limiter.try_incr("logins", ["ann"]).allowed


def test_it_is_backed_up_and_restored(
    store: holdfast.Store, folder: Path, tmp_path: Path, clock: Clock
) -> None:
    store.backup(tmp_path / "backup")
    store.close()
    shutil.rmtree(folder)
    with holdfast.open(tmp_path / "backup", clock=clock) as copy:
        assert problems_of(copy) == []
        assert copy.metrics.lifetime("points", ["ann"]) == 50
