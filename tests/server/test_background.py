"""A server removes what is due by itself, in every space, and without work for others."""

import time
from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast import expiry
from holdfast.errors import StoreUnreachable
from holdfast.events.fan_outs import FAN_OUT_KIND
from holdfast.events.layout import keys_of
from holdfast.jobs import NewJob, dependencies
from holdfast.limits import MAX_WATCHED_SPACES, SWEPT_SPACES_PER_ROUND
from holdfast.server import background
from holdfast.server.background import Sweeper
from holdfast.space_runner import SpaceRunner
from holdfast.store import Space
from holdfast.testing import Clock
from tests.server.serving import Server, serving


def schedule(space: Space, seconds: float) -> None:
    """Has something end after `seconds`, as the layers do, and without a notice."""

    def work(tx: holdfast.store.Tx) -> None:
        expiry.schedule(tx.raw, tx.now + seconds, "metrics.cell", b"nothing")

    space.transact(work)


def entries(space: Space) -> int:
    with space.view() as view:
        begin = expiry.dropped_key(view.raw.space)
        return sum(1 for _ in view.raw.scan(begin, begin[:-1] + b"\xff"))


def due(space: Space) -> float | None:
    with space.view() as view:
        return expiry.next_due(view.raw)


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The prefixes of the spaces in which the sweep has written."""
    seen: list[bytes] = []
    original = SpaceRunner.sweep

    def sweep(self: SpaceRunner, limit: int) -> int:
        seen.append(self.prefix)
        return original(self, limit)

    monkeypatch.setattr(SpaceRunner, "sweep", sweep)
    return seen


@pytest.mark.every_engine
def test_what_is_due_is_removed_when_it_is_due(store: holdfast.Store, clock: Clock) -> None:
    space = store.space("shop")
    schedule(space, 100)
    sweeper = Sweeper(store)
    sweeper.round()
    assert due(space) is not None

    clock.advance(seconds=101)
    sweeper.round()

    assert due(space) is None


def test_work_in_steps_goes_on_without_a_pause(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "DEPENDENTS_RELEASED_AT_ONCE", 5)
    monkeypatch.setattr(dependencies, "JOBS_PER_STEP", 5)
    store.jobs.put("first", id="root")
    store.jobs.put_many([NewJob(queue="later", depends=("root",)) for _ in range(300)])
    store.jobs.pop("first", "worker")
    store.jobs.complete("root", "worker")
    sweeper = Sweeper(store)

    sweeper.round()
    assert 50 < store.jobs.counts("later").waiting < 300
    assert sweeper.is_building  # the next round begins at once
    while sweeper.is_building:
        sweeper.round()

    assert store.jobs.counts("later").waiting == 300


def test_an_idle_space_is_never_written_to(
    store: holdfast.Store, clock: Clock, sweeps: list[bytes]
) -> None:
    spaces = [store.space(f"space {number}") for number in range(20)]
    schedule(spaces[7], 100)
    sweeper = Sweeper(store)

    for _ in range(5):
        sweeper.round()
    clock.advance(seconds=101)
    sweeper.round()

    assert sweeps == [spaces[7].prefix]


def test_a_round_looks_at_few_spaces_however_many_there_are(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2 * SWEPT_SPACES_PER_ROUND + 50):
        store.space(f"space {number}")
    looked: list[bytes] = []
    original = Sweeper._sweep_space

    def look_at(self: Sweeper, prefix: bytes) -> None:
        looked.append(prefix)
        original(self, prefix)

    monkeypatch.setattr(Sweeper, "_sweep_space", look_at)
    sweeper = Sweeper(store)
    sizes = []
    for _ in range(4):
        before = len(looked)
        sweeper.round()
        sizes.append(len(looked) - before)

    assert max(sizes) <= SWEPT_SPACES_PER_ROUND + 1
    assert len(set(looked)) == 2 * SWEPT_SPACES_PER_ROUND + 51


def test_a_space_that_no_notice_told_of_is_found_by_the_walk(
    store: holdfast.Store, clock: Clock
) -> None:
    spaces = [store.space(f"space {number}") for number in range(SWEPT_SPACES_PER_ROUND + 20)]
    sweeper = Sweeper(store)
    sweeper.round()
    for space in spaces:
        schedule(space, 1)

    clock.advance(seconds=2)
    for _ in range(3):
        sweeper.round()

    assert all(due(space) is None for space in spaces)


def test_a_space_that_was_written_to_is_looked_at_in_the_next_round(
    store: holdfast.Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "SWEPT_SPACES_PER_ROUND", 1)
    space = [store.space(f"space {number}") for number in range(9)][-1]
    sweeper = Sweeper(store)
    sweeper.round()
    schedule(space, 5)
    sweeper.touch([space.prefix])
    sweeper.round()

    clock.advance(seconds=6)
    sweeper.round()

    assert due(space) is None


def test_the_times_that_are_known_are_of_bounded_number(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_WATCHED_SPACES > 10
    monkeypatch.setattr(background, "MAX_WATCHED_SPACES", 10)
    for number in range(30):
        schedule(store.space(f"space {number}"), 100)
    sweeper = Sweeper(store)
    sweeper.round()

    assert len(sweeper) == 10


def test_a_clock_that_jumps_leaves_nothing_behind(store: holdfast.Store, clock: Clock) -> None:
    space = store.space("shop")
    sweeper = Sweeper(store)
    clock.advance(seconds=10_000_000)
    schedule(space, 10)
    sweeper.round()
    clock.advance(seconds=-9_000_000)
    schedule(space, 10)
    sweeper.round()

    clock.advance(seconds=11)
    sweeper.round()
    assert entries(space) == 1  # the one of the time that has not come again
    clock.advance(seconds=9_000_000)
    sweeper.round()
    assert entries(space) == 0


@pytest.mark.every_engine
def test_a_space_that_is_dropped_meanwhile_does_not_come_back(store: holdfast.Store) -> None:
    space = store.space("gone")
    schedule(space, 0)
    sweeper = Sweeper(store)
    sweeper.touch([space.prefix])
    store.drop_space("gone")

    for _ in range(3):
        sweeper.round()

    assert store.spaces() == ["default"]


def test_a_server_leaves_dropped_spaces_dropped(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for number in range(20):
            server.call("jobs.put", space=f"s{number}", queue="q")
        for number in range(20):
            assert server.call("admin.drop_space", name=f"s{number}").result is True
            server.call("jobs.length", space=f"s{number}", queue="q")

        _wait_for_a_round(server)
        assert server.call("admin.spaces").result["spaces"] == ["default"]


def _wait_for_a_round(server: Server) -> None:
    """Returns when the server has removed something that ends at once."""
    deadline = time.monotonic() + 20
    with holdfast.open(server.data, durability="interval") as store:
        schedule(store, 0.01)
        while due(store) is not None:
            assert time.monotonic() < deadline


def damage(space: Space) -> None:
    """Stores a fan-out that can't be read, with a step of it that is due."""

    def work(tx: holdfast.store.Tx) -> None:
        tx.raw.put(keys_of(tx.raw.space).fan_out(b"12345678"), b"damaged")
        expiry.begin_work(tx.raw, FAN_OUT_KIND, b"12345678")

    space.transact(work)


def test_a_damaged_record_in_one_space_delays_no_other(store: holdfast.Store, clock: Clock) -> None:
    damage(store.space("damaged"))
    others = [store.space(f"space {number}") for number in range(20)]
    for space in others:
        schedule(space, 1)
    clock.advance(seconds=2)

    errors = Sweeper(store).round()

    assert [type(error) for error in errors] == [msgspec.ValidationError]
    assert all(due(space) is None for space in others)


def test_a_space_whose_engine_does_not_answer_is_tried_after_all_others(
    store: holdfast.Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = {store.space("away 1").prefix, store.space("away 2").prefix}
    others = [store.space(f"space {number}") for number in range(20)]
    tried: list[bytes] = []
    original = Sweeper._sweep_space

    def sweep_space(self: Sweeper, prefix: bytes) -> None:
        if prefix in away:
            tried.append(prefix)
            raise StoreUnreachable("its node is away")
        original(self, prefix)

    monkeypatch.setattr(Sweeper, "_sweep_space", sweep_space)
    sweeper = Sweeper(store)
    for _ in range(2):
        assert [type(error) for error in sweeper.round()] == [StoreUnreachable]
    for space in others:
        schedule(space, 1)
    clock.advance(seconds=2)

    sweeper.round()
    sweeper.round()

    assert all(due(space) is None for space in others)
    assert set(tried[-2:]) == away  # in turn, so that each is found when it is back


def test_a_server_removes_what_is_due_beside_a_damaged_space(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "data", durability="interval") as store:
        damage(store.space("damaged"))

    with serving(tmp_path / "data") as server:
        for _ in range(3):  # the damaged space is met in one of the first rounds
            _wait_for_a_round(server)
