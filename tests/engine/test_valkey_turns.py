"""Valkey: transactions that wait for their turn in what others change too."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.engine import open_engine
from holdfast.engine.contract import Transaction
from holdfast.engine.remote import BackendSession, RemoteEngine
from tests.engine.valkey_engine import backend_of, increment
from tests.servers import Servers

pytestmark = pytest.mark.only_on("valkey")


@pytest.fixture
def url(servers: Servers) -> str:
    return servers.lend("valkey")


@pytest.fixture
def engine(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteEngine]:
    """Turns of minutes: nothing ends because a test was slow."""
    monkeypatch.setattr("holdfast.engine.valkey.connections.VALKEY_ANSWER_SECONDS", 600.0)
    monkeypatch.setattr("holdfast.engine.valkey.session._CLAIM_MS", 300_000)
    monkeypatch.setattr("holdfast.engine.valkey.session._PROMISE_MS", 300_000)
    monkeypatch.setattr("holdfast.engine.valkey.session.CLAIM_SECONDS", 300)
    monkeypatch.setattr("holdfast.engine.valkey.session.MAX_CLAIM_WAIT_SECONDS", 300)
    engine = open_engine(url, durability="interval")
    assert isinstance(engine, RemoteEngine)
    with engine.view(space=b"A") as view:
        view.get(b"Aa")  # has the functions loaded
    yield engine
    engine.close()


class Waiting:
    """A session that waits for its turn in a thread of its own."""

    def __init__(self, engine: RemoteEngine, *contended: bytes) -> None:
        self.engine = engine
        self.session: BackendSession = backend_of(engine).turn_session(b"A", contended)
        self.read: list[Any] = []
        self._thread = threading.Thread(target=self._read)
        before = self._blocked()
        self._thread.start()
        while self._blocked() == before:
            assert self._thread.is_alive()

    def _read(self) -> None:
        [row], _ = self.session.fetch([b"An"], [])
        self.read.append(row and row.value)

    def _blocked(self) -> int:
        servers = backend_of(self.engine).servers
        [figures] = servers.ask(0, [("INFO", "clients")])
        return int(figures.split(b"\nblocked_clients:", 1)[1].split(b"\r", 1)[0])

    def have_turn(self) -> list[Any]:
        """Returns what it has read, once it has its turn."""
        self._thread.join()
        return self.read


def test_a_turn_is_passed_on_in_the_order_in_which_sessions_wait(engine: RemoteEngine) -> None:
    first = backend_of(engine).turn_session(b"A", [b"An"])
    first.fetch([b"An"], [])
    second = Waiting(engine, b"An")
    third = Waiting(engine, b"An", b"Az")
    engine.transact(increment, space=b"A")  # which does not wait for a turn

    first.close()
    assert second.have_turn() == [b"1"]
    assert third.read == []
    engine.transact(increment, space=b"A")
    second.session.close()

    assert third.have_turn() == [b"2"]
    third.session.close()


def test_who_has_a_turn_holds_up_only_those_that_want_the_same(
    engine: RemoteEngine, url: str
) -> None:
    other = open_engine(url, durability="interval")
    engine.transact(increment, space=b"A")
    engine._runner._contention._until[b"An"] = float("inf")
    runs = []

    def work(tx: Transaction) -> int:
        runs.append(1)
        if len(runs) == 2:  # the first run was on guesses
            other.transact(lambda tx: tx.put(b"Am", b"not held up"), space=b"A")
        return increment(tx)

    assert engine.transact(work, space=b"A") == 2
    assert len(runs) == 2
    assert engine.stats()["conflicts"] == 0
    other.close()


def test_a_turn_whose_process_has_died_is_free_when_its_lease_ends(
    engine: RemoteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.valkey.session.CLAIM_SECONDS", 0.1)
    backend = backend_of(engine)
    backend.turn_session(b"A", [b"An"]).fetch([], [])
    waiting = Waiting(engine, b"An")
    place = backend.state_of(b"A")

    backend.servers.ask(place.slot, [("PEXPIRE", place.names.turn(b"An")[0], 0)])

    assert waiting.have_turn() == [None]


def test_what_others_did_not_change_is_still_remembered_after_a_turn(
    engine: RemoteEngine, url: str
) -> None:
    other = open_engine(url, durability="interval")

    def read_all(tx: Transaction) -> tuple[Any, ...]:
        found = tx.get(b"Aa"), tx.get(b"Ab")
        tx.put(b"Aread", b"%r" % (found,))
        return found

    engine.transact(lambda tx: tx.put_all({b"Aa": b"1", b"Ab": b"1"}), space=b"A")
    other.transact(lambda tx: tx.put(b"Ab", b"2"), space=b"A")
    engine._runner._contention.note([b"An"])
    engine.transact(increment, space=b"A")
    memory = engine._runner._memories.of(b"A")

    assert b"Aa" in memory.rows
    assert b"Ab" not in memory.rows
    assert engine.transact(read_all, space=b"A") == (b"1", b"2")
    other.close()


def test_a_job_that_another_process_has_put_is_popped_in_two_round_trips(url: str) -> None:
    with (
        holdfast.open(url, durability="interval") as producer,
        holdfast.open(url, durability="interval") as worker,
    ):
        servers = worker._engine.backend.servers  # type: ignore[attr-defined]  # it is remote
        for id in ("first", "second"):
            producer.jobs.put("emails", "Welcome", {"to": "ann"}, id=f"{id}-job")
            before = servers.round_trips
            [job] = worker.jobs.pop("emails", worker="one")
            popped_in = servers.round_trips - before
            worker.jobs.complete(job.id, worker="one", lock=job.lock)

        assert job.id == "second-job"
        assert popped_in == 2
