"""The Valkey engine: what is its own beside the conformance suite."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Notice, Reader, Transaction, read_counter
from holdfast.engine.remote import RemoteEngine, group_runner
from holdfast.engine.valkey.connections import Command
from holdfast.engine.valkey.servers import Servers as ValkeyServers
from holdfast.errors import (
    Conflict,
    OutcomeUnknown,
    OutsideSpace,
    StoreUnreachable,
    StoreUnusable,
)
from tests.engine.faulty_link import FaultyLink
from tests.engine.model import END
from tests.engine.valkey_engine import backend_of, engine, faulty, increment, through
from tests.servers import Servers, ValkeyServer
from tests.stores import Stores

__all__ = ["engine", "faulty"]

pytestmark = pytest.mark.only_on("valkey")


# --- round trips ----------------------------------------------------------------------------------


def trips(engine: RemoteEngine, call: Callable[[], Any]) -> int:
    call()  # the first one introduces the space
    servers = backend_of(engine).servers
    before = servers.round_trips
    call()
    return servers.round_trips - before


def read_once(engine: RemoteEngine) -> None:
    with engine.view(space=b"A") as view:
        view.get_many([b"A1", b"A2"])


def scan_once(engine: RemoteEngine) -> None:
    with engine.view(space=b"A") as view:
        list(view.scan(b"A", b"B", limit=20))


def test_a_read_and_a_commit_cost_one_round_trip_each(engine: RemoteEngine) -> None:
    fresh = count()

    def write(tx: Transaction) -> None:
        tx.put(b"Aput", b"%d" % next(fresh))
        tx.add(b"Aadded", 1)
        tx.delete(b"Agone")
        tx.clear(b"Ax", b"Ay")
        tx.after_commit(Notice("written"))

    assert trips(engine, lambda: read_once(engine)) == 1
    assert trips(engine, lambda: scan_once(engine)) == 1
    assert trips(engine, lambda: engine.transact(write, space=b"A")) == 1
    assert trips(engine, lambda: engine.transact(increment, space=b"A")) == 1


def test_a_read_of_some_keys_is_one_plain_command(
    engine: RemoteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(reader: Reader) -> list[bytes | None]:
        return reader.get_many([b"A1", b"A2", b"A3"])

    def scan(reader: Reader) -> list[tuple[bytes, bytes]]:
        return [*reader.scan(b"A", b"B")]

    sent: list[Any] = []
    ask = ValkeyServers.ask

    def recorded(self: ValkeyServers, slot: int, commands: Sequence[Command]) -> list[Any]:
        sent.extend(command[0] for command in commands)
        return ask(self, slot, commands)

    engine.transact(lambda tx: tx.put_all({b"A1": b"one", b"A3": b""}), space=b"A")
    for work in (read, scan):
        engine.read(work, space=b"A", kind=work.__name__)  # known to need one fetch from now on
    monkeypatch.setattr(ValkeyServers, "ask", recorded)

    assert engine.read(read, space=b"A", kind="read") == [b"one", None, b""]
    assert sent == ["HMGET"]
    assert engine.read(scan, space=b"A", kind="scan") == [(b"A1", b"one"), (b"A3", b"")]
    assert sent == ["HMGET", "FCALL_RO"]


def test_a_wrong_guess_is_answered_with_the_truth(servers: Servers) -> None:
    url = servers.lend("valkey")
    engine, other = (open_engine(url, durability="interval") for _ in range(2))
    assert isinstance(engine, RemoteEngine)

    def first(tx: Transaction) -> None:
        tx.put(b"A1", b"before")
        tx.put(b"A2", b"gone")

    def second(tx: Transaction) -> None:
        tx.put(b"A1", b"after")
        tx.delete(b"A2")
        tx.put(b"A3", b"new")

    def work(tx: Transaction) -> Any:
        found = [list(tx.scan(b"A", b"B", limit=1)), list(tx.scan(b"A", b"B", reverse=True))]
        tx.put(b"A4", b"written")
        return found, tx.get(b"A1"), tx.get(b"A2")

    engine.transact(first, space=b"A")
    other.transact(second, space=b"A")
    before = backend_of(engine).servers.round_trips

    found, changed, deleted = engine.transact(work, space=b"A")

    assert found == [[(b"A1", b"after")], [(b"A3", b"new"), (b"A1", b"after")]]
    assert (changed, deleted) == (b"after", None)
    assert backend_of(engine).servers.round_trips == before + 2
    engine.close()
    other.close()


def test_what_others_have_not_changed_is_still_remembered_after_their_commits(
    servers: Servers,
) -> None:
    url = servers.lend("valkey")
    engine, other = (open_engine(url, durability="interval") for _ in range(2))
    assert isinstance(engine, RemoteEngine)
    fresh = count()

    def append(tx: Transaction) -> None:
        tx.put(b"Alist", (tx.get(b"Alist") or b"") + b"x")

    def disturbed() -> None:
        for work in (increment, append):  # neither reads what the other remembers
            other.transact(lambda tx: tx.put(b"Aother", b"%d" % next(fresh)), space=b"A")
            engine.transact(work, space=b"A")

    assert trips(engine, disturbed) == 2
    engine.close()
    other.close()


@pytest.mark.parametrize("refused", [True, False])
def test_what_others_have_changed_is_noticed_however_small_the_commit_in_between(
    refused: bool, servers: Servers
) -> None:
    """A commit that changes nothing has the version of the one before it, which is another's."""
    url = servers.lend("valkey")
    engine, other = (open_engine(url, durability="interval") for _ in range(2))
    engine.transact(increment, space=b"A")
    engine.transact(lambda tx: tx.put(b"Asame", b"1"), space=b"A")
    assert other.transact(increment, space=b"A") == 2
    if refused:
        other.transact(lambda tx: tx.put(b"Anew", b"2"), space=b"A")

    def same(tx: Transaction) -> None:
        tx.get(b"Anew")
        tx.put(b"Asame", b"1")

    engine.transact(same, space=b"A")

    assert engine.transact(increment, space=b"A") == 3
    engine.close()
    other.close()


def test_what_a_large_clear_of_others_has_removed_is_not_remembered(servers: Servers) -> None:
    url = servers.lend("valkey")
    engine, other = (open_engine(url, durability="interval") for _ in range(2))
    engine.transact(increment, space=b"A")
    big = b"x" * 9_000_000  # more than the log keeps of one commit
    other.transact(lambda tx: tx.put(b"Abig", big), space=b"A")
    other.transact(lambda tx: tx.clear(b"A", b"B"), space=b"A")

    engine.transact(lambda tx: tx.put(b"Amine", b"1"), space=b"A")

    assert engine.transact(increment, space=b"A") == 1
    engine.close()
    other.close()


def test_a_transaction_that_takes_longer_than_those_of_others_is_made_all_the_same(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process, which commits in one round trip, was quicker each time."""
    monkeypatch.setattr(group_runner, "MAX_CONFLICT_RUNS", 5)
    url = servers.lend("valkey")
    engine, other = (open_engine(url, durability="interval") for _ in range(2))
    assert isinstance(other, RemoteEngine)
    answers = threading.Semaphore(0)
    ask = backend_of(other).servers.ask

    def ask_and_tell(*arguments: Any) -> Any:
        replies = ask(*arguments)
        answers.release()
        return replies

    monkeypatch.setattr(backend_of(other).servers, "ask", ask_and_tell)
    ended = threading.Event()

    def disturb() -> None:
        while not ended.is_set():
            other.transact(increment, space=b"A")

    def lay_trail(tx: Transaction) -> None:
        for step in range(6):
            tx.put(b"A%d" % step, b"A%d" % (step + 1))

    def slow(tx: Transaction) -> None:
        key = b"A0"
        while key != b"A6":  # what comes next can't be guessed
            found = tx.get(key)
            if found is None:
                raise LookupError("the trail ends")
            key = found
        tx.get(b"An")  # which the other one increments
        while answers.acquire(blocking=False):
            pass
        for _ in range(3):  # at least one of them is a commit, or its refusal
            answers.acquire()
        tx.put(b"Aslow", b"made")

    other.transact(lay_trail, space=b"A")
    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(disturb)
        try:
            engine.transact(slow, space=b"A")
        finally:
            ended.set()
        disturbing.result()

    with engine.view(space=b"A") as view:
        assert view.get(b"Aslow") == b"made"
    engine.close()
    other.close()


def test_a_group_costs_as_many_round_trips_as_one_of_its_transactions(
    engine: RemoteEngine,
) -> None:
    works, spaces = [increment] * 50, [b"A"] * 50

    assert trips(engine, lambda: engine.transact_many(works, spaces=spaces)) == 1


# --- replies that are lost ------------------------------------------------------------------------


def test_a_commit_whose_reply_is_lost_is_applied_once(faulty: FaultyLink) -> None:
    engine = through(faulty)
    engine.transact(lambda tx: tx.add(b"An", 1), space=b"A")

    for _ in range(5):
        faulty.lose_replies(b"_commit")
        engine.transact(lambda tx: tx.add(b"An", 1), space=b"A")

    with engine.view(space=b"A") as view:
        assert read_counter(view.get(b"An")) == 6
    assert faulty.lost == 5
    engine.close()


def test_a_commit_that_never_arrives_is_sent_again(faulty: FaultyLink) -> None:
    engine = through(faulty)

    for number in range(1, 6):
        faulty.lose_messages(b"_commit")
        assert engine.transact(increment, space=b"A") == number

    assert faulty.lost == 5
    engine.close()


def test_reads_go_on_after_a_lost_connection_and_see_their_moment(faulty: FaultyLink) -> None:
    engine = through(faulty)
    engine.transact(increment, space=b"A")

    with engine.view(space=b"A") as view:
        assert view.get(b"An") == b"1"
        engine.transact(lambda tx: tx.put(b"Anew", b""), space=b"A")
        faulty.lose_replies(b"_read")
        assert view.get(b"Anew") is None

    assert faulty.lost == 1
    engine.close()


def test_a_commit_without_any_answer_is_an_unknown_outcome(faulty: FaultyLink) -> None:
    engine = through(faulty, "&patience=1")
    engine.transact(increment, space=b"A")

    faulty.lose_replies(b"FCALL", times=1_000_000)
    with pytest.raises(OutcomeUnknown):
        engine.transact(lambda tx: tx.add(b"Acount", 1), space=b"A")

    faulty.lose_replies(b"FCALL", times=0)
    engine.transact(lambda tx: tx.add(b"Acount", 1), space=b"A")
    with engine.view(space=b"A") as view:
        assert read_counter(view.get(b"Acount")) in (1, 2)
    engine.close()


def test_a_server_that_is_away_is_named_when_patience_ends() -> None:
    with ValkeyServer.started() as server:
        engine = open_engine(server.url + "&patience=1", durability="interval")
        server.kill()

        with pytest.raises(StoreUnreachable, match=str(server.port)):
            engine.transact(increment, space=b"A")
        engine.close()
        with pytest.raises(StoreUnusable, match=str(server.port)):
            open_engine(server.url)


def test_functions_that_a_server_has_lost_are_loaded_again(
    engine: RemoteEngine, stores: Stores, servers: Servers
) -> None:
    engine.transact(increment, space=b"A")
    node = backend_of(engine).servers._node(0)

    node.ask([("FUNCTION", "FLUSH")])

    assert engine.transact(increment, space=b"A") == 2


# --- spaces ---------------------------------------------------------------------------------------


def test_the_whole_store_is_seen_over_all_spaces_in_the_order_of_keys(
    engine: RemoteEngine,
) -> None:
    pairs = [(b"A%d" % n, b"a") for n in range(9)] + [(b"C%d" % n, b"c") for n in range(9)]
    for space in (b"A", b"C"):
        for key, value in pairs:
            if key.startswith(space):
                engine.transact(lambda tx, k=key, v=value: tx.put(k, v), space=space)  # type: ignore[misc]
    engine.transact(lambda tx: tx.put(b"B", b"in no space"))
    expected = sorted([*pairs, (b"B", b"in no space")])

    with engine.view() as view:
        assert list(view.scan(b"", END)) == expected
        assert list(view.scan(b"", END, reverse=True)) == expected[::-1]
        assert list(view.scan(b"A5", b"C2", limit=6)) == expected[5:11]
        assert list(view.scan(b"A5", b"C2", limit=6, reverse=True)) == expected[11:5:-1]
        assert view.get_many([b"A1", b"B", b"C1", b"C"]) == [b"a", b"in no space", b"c", None]


@pytest.mark.parametrize(
    "touch",
    [
        lambda tx: tx.put(b"A1", b""),
        lambda tx: tx.clear(b"", b"B"),
        lambda tx: tx.put(b"new", tx.get(b"A1") or b""),
        lambda tx: tx.put(b"new", b"%d" % len(list(tx.scan(b"", END)))),
    ],
)
def test_a_transaction_of_the_whole_store_can_not_touch_a_space(
    engine: RemoteEngine, touch: Callable[[Transaction], Any]
) -> None:
    engine.transact(lambda tx: tx.put(b"A1", b"1"), space=b"A")

    with pytest.raises(OutsideSpace, match="b'A'"):
        engine.transact(touch)

    with engine.view() as view:
        assert list(view.scan(b"", END)) == [(b"A1", b"1")]


def test_several_stores_share_a_server_and_see_nothing_of_each_other(stores: Stores) -> None:
    url = stores.url()
    one, two = (open_engine(f"{url}&store={name}", durability="interval") for name in ("a", "b"))
    with two.subscribe() as subscription:
        one.transact(lambda tx: tx.after_commit(Notice("n")), space=b"A")
        one.transact(increment, space=b"A")

        assert subscription.poll() == []
    assert two.transact(increment, space=b"A") == 1
    assert two.stats()["keys"] == 1
    one.close()
    two.close()


# --- views ----------------------------------------------------------------------------------------


def test_a_scan_passes_large_values_a_few_at_a_time(engine: RemoteEngine) -> None:
    keys = [b"A%02d" % number for number in range(12)]
    for key in keys:
        engine.transact(lambda tx, k=key: tx.put(k, k * 300_000), space=b"A")  # type: ignore[misc]

    with engine.view(space=b"A") as view:
        pairs = list(view.scan(b"A", b"B"))
        backwards = list(view.scan(b"A", b"B", limit=9, reverse=True))

    assert [(key, key * 300_000) for key in keys] == pairs
    assert backwards == pairs[:2:-1]


def test_a_view_that_a_change_was_too_large_for_says_so(engine: RemoteEngine) -> None:
    engine.transact(lambda tx: tx.put(b"Alarge", bytes(9_000_000)), space=b"A")

    with engine.view(space=b"A") as view:
        assert view.get(b"Aother") is None
        engine.transact(lambda tx: tx.delete(b"Alarge"), space=b"A")
        with pytest.raises(Conflict, match="did not keep it"):
            view.get(b"Alarge")


# --- notices --------------------------------------------------------------------------------------


def test_notices_that_were_left_while_the_connection_was_lost_are_heard_once(
    engine: RemoteEngine,
) -> None:
    numbers = count()

    def leave(tx: Transaction) -> None:
        tx.after_commit(Notice("n", b"%d" % next(numbers)))

    node = backend_of(engine).servers._node(0)
    heard: list[Notice] = []
    with engine.subscribe() as subscription:
        for space in (b"A", b"B", b"A"):
            engine.transact(leave, space=space)
            heard += subscription.poll()
            node.ask([("CLIENT", "KILL", "TYPE", "pubsub")])
            engine.transact(leave, space=space)
            heard += subscription.poll()

        assert [int(notice.payload) for notice in heard] == list(range(6))
        assert subscription.missed == 0


def test_a_subscriber_is_woken_by_another_process_without_looking(stores: Stores) -> None:
    url = stores.url()
    one, two = (open_engine(url, durability="interval") for _ in range(2))

    with one.subscribe() as subscription, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(subscription.get, 30)
        two.transact(lambda tx: tx.after_commit(Notice("wake")), space=b"A")

        assert waiting.result() == Notice("wake", b"", b"A")
    one.close()
    two.close()
