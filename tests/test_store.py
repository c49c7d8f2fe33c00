"""The store: opened, written to in transactions, read in views, rid of what has expired."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import expiry
from holdfast.engine.contract import Notice, Transaction
from holdfast.errors import BadInput, StoreClosed, ViewOnlyReads
from holdfast.limits import EXPIRED_PER_WRITE, REMOTE_EXPIRY_CHECK_SECONDS
from holdfast.metrics.records import Write
from holdfast.space_runner import REMOVERS
from holdfast.store import Space, Store, Tx
from holdfast.testing import Clock
from tests.plain_keys import get, get_from, put, put_in
from tests.stores import Stores

pytestmark = pytest.mark.every_engine


class Broken(Exception):
    """Raised by a test in order to undo a transaction, or to fail a removal."""


# --- opening and closing --------------------------------------------------------------------------


@pytest.mark.parametrize("form", [str, Path, "lmdb:{}".format])
def test_a_store_opens_in_a_new_folder_by_path_or_url(
    tmp_path: Path, form: Callable[[Path], str | Path]
) -> None:
    folder = tmp_path / "new" / "data"

    with holdfast.open(form(folder)) as store:
        put_in(store, b"k", b"v")

    assert folder.is_dir()
    with holdfast.open(folder) as store:
        assert get_from(store, b"k") == b"v"


def test_an_unknown_url_scheme_is_named() -> None:
    with pytest.raises(BadInput, match=r"scheme 'gopher'.*holdfast\.open\('data'\)"):
        holdfast.open("gopher://localhost")


def test_a_closed_store_says_so_and_closes_twice(stores: Stores) -> None:
    store = holdfast.open(stores.url())
    space = store.space("other")
    store.close()
    store.close()

    with pytest.raises(StoreClosed):
        put_in(space, b"k")
    with pytest.raises(StoreClosed):
        get_from(store, b"k")
    with pytest.raises(StoreClosed):
        store.space("new")


def test_a_with_block_closes_its_store_whatever_happens(stores: Stores) -> None:
    with pytest.raises(Broken), holdfast.open(stores.url()) as store:
        raise Broken

    with pytest.raises(StoreClosed):
        store.spaces()


# --- transactions ---------------------------------------------------------------------------------


def test_the_result_of_the_work_comes_back(store: Store) -> None:
    def work(tx: Tx) -> int:
        put(tx, b"k", b"v")
        return 42

    assert store.transact(work) == 42
    assert get_from(store, b"k") == b"v"


def test_a_work_that_raises_has_written_nothing(store: Store) -> None:
    def work(tx: Tx) -> None:
        put(tx, b"k", b"v")
        raise Broken

    with pytest.raises(Broken):
        store.transact(work)

    assert get_from(store, b"k") is None


def test_what_comes_as_an_iterator_is_written_as_if_it_were_a_list(store: Store) -> None:
    """Work runs twice on a remote engine, and would find the iterator at its end."""

    def walked_once(*items: Any) -> Any:
        return iter(items)

    store.entities.deploy("schema: s\ntables:\n  T:\n    columns:\n      a: {type: Int}\n")
    store.metrics.define({"m": {}})
    hit = {"condition": "c", "entity": ["user", 1], "amount": 2}

    ids = store.entities.put_raw("s.T", walked_once({"a": 1}, {"a": 2}))
    written = store.metrics.write(walked_once({"metric": "m", "value": 5}))
    store.metrics.incr("m", entity=walked_once("user", 1))
    tries = [store.metrics.try_incr(walked_once(hit), {"c": "3/minute"}) for _ in range(2)]

    totals = [store.metrics.rate("m", each, latest=3_600).total for each in (None, ["user", 1])]
    assert (len(store.entities.get_raw("s.T", ids)), written.written) == (2, 1)
    assert totals == [5, 1]
    assert [each.allowed for each in tries] == [True, False]


def test_a_with_block_commits_at_its_end_and_sees_its_own_writes(store: Store) -> None:
    with store.transaction() as tx:
        put(tx, b"k", b"v")
        assert get(tx, b"k") == b"v"

    assert get_from(store, b"k") == b"v"


def test_a_with_block_that_raises_has_written_nothing(store: Store) -> None:
    def write_and_raise() -> None:
        with store.transaction() as tx:
            put(tx, b"k", b"v")
            raise Broken

    with pytest.raises(Broken):
        write_and_raise()

    assert get_from(store, b"k") is None


def test_a_view_keeps_its_snapshot_and_only_reads(store: Store) -> None:
    put_in(store, b"k", b"old")

    with store.view() as view:
        put_in(store, b"k", b"new")

        assert get(view, b"k") == b"old"
        with pytest.raises(ViewOnlyReads):
            put(view, b"k")  # type: ignore[arg-type]  # that is the point


def test_transactions_and_views_tell_the_time_of_the_stores_clock(
    store: Store, clock: Clock
) -> None:
    clock.set(1_234.5)

    with store.transaction() as tx:
        assert tx.now == 1_234.5
    with store.view() as view:
        assert view.now == 1_234.5
    assert store.transact(lambda tx: tx.now) == 1_234.5


# --- notices --------------------------------------------------------------------------------------


def test_a_subscriber_hears_the_notices_of_its_own_space_and_topic(store: Store) -> None:
    other = store.space("other")

    with store.subscribe() as ours, other.subscribe("jobs.") as theirs:
        store.transact(lambda tx: tx._tx.after_commit(Notice("jobs.put", b"ours")))
        other.transact(lambda tx: tx._tx.after_commit(Notice("jobs.put", b"theirs")))
        other.transact(lambda tx: tx._tx.after_commit(Notice("rows.put", b"unwanted")))

        assert [notice.payload for notice in ours.poll()] == [b"ours"]
        assert [notice.payload for notice in theirs.poll()] == [b"theirs"]


def test_what_holds_an_iterator_is_written_as_if_it_held_a_list(store: Store) -> None:
    """Work runs twice on a remote engine, and would find the iterator at its end."""
    store.metrics.define({"hits": {"lifetime": True}})
    entity = ["user", "ann"]

    store.metrics.write([{"metric": "hits", "entity": iter(entity)}])
    writes: Any = iter([Write(metric="hits", entity=iter(entity), value=2)])
    store.metrics.write(writes)
    writes = ({"metric": "hits", "entity": {"components": iter(entity)}} for _ in "a")
    store.metrics.write(writes)
    limited = [{"condition": "hits", "entity": iter(entity)}]
    store.metrics.limit_incr(limited, {"hits": "5/minute"}, prefix=iter(["limits"]))

    assert store.metrics.lifetime("hits", entity) == 4
    limiter = store.metrics.limiter({"hits": "5/minute"}, "limits")
    assert limiter.peek("hits", entity).prev_total == 1


@pytest.mark.only_on("lmdb")
def test_an_iterator_that_a_failed_removal_has_used_up_is_told_and_nothing_is_done(
    store: Store, clock: Clock, things: "Things"
) -> None:
    store.metrics.define({"hits": {"lifetime": True}})
    things.put([b"damaged"])
    things.damaged = {b"damaged"}
    clock.advance(seconds=60)

    with pytest.raises(BadInput, match="an iterator among its arguments is used up"):
        store.metrics.write([{"metric": "hits", "entity": iter(["user", "ann"])}])
    store.metrics.write([{"metric": "hits", "entity": iter(["user", "ann"])}])

    assert store.metrics.lifetime("hits", ["user", "ann"]) == 1
    assert store.metrics.lifetime("hits") == 0


# --- what has expired -----------------------------------------------------------------------------


class Things:
    """A layer of things that expire, some of them damaged so that their removal fails."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.damaged: set[bytes] = set()

    def put(self, names: list[bytes], space: Space | None = None) -> None:
        def work(tx: Tx) -> None:
            for name in names:
                put(tx, b"thing" + name)
                expiry.schedule(tx._tx, tx.now + 60, "thing", name)

        (space or self.store).transact(work)

    def remove(self, tx: Transaction, name: bytes) -> bool:
        tx.delete(tx.space + b"thing" + name)
        if name in self.damaged:
            raise Broken("damaged record")
        return True

    def left(self, space: Space | None = None) -> list[bytes]:
        with (space or self.store).view() as view:
            begin = view._tx.space + b"thing"
            return [key[len(begin) :] for key, _ in view._tx.scan(begin, begin + b"\xff")]


@pytest.fixture
def things(store: Store, monkeypatch: pytest.MonkeyPatch) -> Things:
    things = Things(store)
    monkeypatch.setitem(REMOVERS, "thing", things.remove)
    return things


def test_what_has_expired_is_removed_by_later_writes_a_few_each(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"%d" % number for number in range(EXPIRED_PER_WRITE + 2)])

    clock.advance(seconds=60)
    put_in(store, b"k")
    after_one = len(things.left())
    put_in(store, b"k")

    assert (after_one, things.left()) == (2, [])


def test_a_writer_that_found_nothing_to_be_due_looks_again_in_a_moment(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"a"])
    clock.advance(seconds=59.999)
    put_in(store, b"k")

    clock.advance(seconds=0.001)
    put_in(store, b"k")
    at_once = things.left()
    clock.advance(seconds=REMOTE_EXPIRY_CHECK_SECONDS)  # the longer one
    put_in(store, b"k")

    assert (at_once, things.left()) == ([b"a"], [])


def test_a_clock_that_is_set_back_keeps_no_writer_from_looking(
    store: Store, clock: Clock, things: Things
) -> None:
    clock.advance(seconds=1_000)
    put_in(store, b"k")
    clock.advance(seconds=-1_000)
    things.put([b"a"])

    clock.advance(seconds=60)
    put_in(store, b"k")

    assert things.left() == []


def test_a_write_to_one_space_removes_nothing_in_another(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"a"], store.space("other"))

    clock.advance(seconds=60)
    put_in(store, b"k")

    assert things.left(store.space("other")) == [b"a"]


def test_a_sweep_removes_many_at_once_and_says_how_many(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"%02d" % number for number in range(50)])
    assert store.sweep() == 0

    clock.advance(seconds=60)

    assert [store.sweep(limit=20) for _ in range(4)] == [20, 20, 10, 0]
    assert things.left() == []


def test_a_removal_that_fails_stops_no_write_and_is_tried_again(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"damaged", b"sound"])
    things.damaged = {b"damaged"}
    clock.advance(seconds=60)

    with store.subscribe("expiry.") as subscription:
        put_in(store, b"first")
        put_in(store, b"second")
        [notice] = subscription.poll()

    assert get_from(store, b"first") == get_from(store, b"second") == b""
    assert things.left() == [b"damaged"]
    assert notice.topic == expiry.REMOVAL_FAILED_TOPIC
    assert msgspec.json.decode(notice.payload) == {
        "kind": "thing",
        "error": "Broken('damaged record')",
    }

    things.damaged = set()
    clock.advance(seconds=60)
    put_in(store, b"third")
    assert things.left() == []


def test_a_sweep_goes_on_past_removals_that_fail(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"%02d" % number for number in range(20)])
    things.damaged = {b"03", b"04", b"15"}
    clock.advance(seconds=60)

    assert store.sweep() == 20
    assert things.left() == sorted(things.damaged)
    assert store.sweep() == 0


def test_a_sweep_of_nothing_but_failures_is_bounded(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"%02d" % number for number in range(5)])
    things.damaged = set(things.left())
    clock.advance(seconds=60)

    assert [store.sweep(limit=3) for _ in range(3)] == [3, 2, 0]


def test_no_removals_ride_on_a_with_block_because_it_can_not_run_again(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"damaged"])
    things.damaged = {b"damaged"}
    clock.advance(seconds=60)

    with store.transaction() as tx:
        put(tx, b"k", b"v")

    assert get_from(store, b"k") == b"v"
    assert things.left() == [b"damaged"]


def test_the_work_that_met_a_failing_removal_is_acknowledged_once(
    store: Store, clock: Clock, things: Things
) -> None:
    things.put([b"damaged"])
    things.damaged = {b"damaged"}
    clock.advance(seconds=60)

    def count(tx: Tx) -> int:
        number = int(get(tx, b"n") or b"0") + 1
        put(tx, b"n", b"%d" % number)
        tx._tx.after_commit(Notice("counted"))
        return number

    with store.subscribe("counted") as subscription:
        assert store.transact(count) == 1
        assert len(subscription.poll()) == 1


# --- care -----------------------------------------------------------------------------------------


@pytest.mark.only_on("lmdb")
def test_a_backup_holds_every_space(store: Store, tmp_path: Path) -> None:
    put_in(store.space("other"), b"k", b"v")

    store.backup(tmp_path / "copy")
    put_in(store.space("other"), b"k", b"later")

    with holdfast.open(tmp_path / "copy") as copy:
        assert get_from(copy.space("other"), b"k") == b"v"
        assert copy.check() == []


def test_the_figures_and_the_checkpoint_come_from_the_engine(store: Store) -> None:
    before = store.stats()["keys"]
    put_in(store, b"k")

    store.checkpoint()

    assert store.stats()["keys"] == before + 1
    assert store.check() == []
