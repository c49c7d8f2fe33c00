"""The Valkey engine: what is its own beside the conformance suite."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Notice, Transaction, read_counter
from holdfast.engine.remote import RemoteEngine
from holdfast.engine.valkey.address import parse
from holdfast.engine.valkey.backend import ValkeyBackend
from holdfast.engine.valkey.library import Names
from holdfast.engine.valkey.servers import slot_of
from holdfast.errors import (
    BadInput,
    Conflict,
    MissingDriver,
    NotAuthenticated,
    OutcomeUnknown,
    OutsideSpace,
    StoreForked,
    StoreFull,
    StoreUnreachable,
    StoreUnusable,
    UnsupportedFormat,
)
from tests.engine.faulty_link import FaultyLink
from tests.engine.model import END
from tests.servers import Servers, ValkeyCluster, ValkeyServer
from tests.stores import Stores

pytestmark = pytest.mark.only_on("valkey")


@pytest.fixture
def engine(stores: Stores) -> Iterator[RemoteEngine]:
    with stores.open_engine() as engine:
        assert isinstance(engine, RemoteEngine)
        yield engine


@pytest.fixture
def faulty(servers: Servers) -> Iterator[FaultyLink]:
    [(_, port)] = parse(servers.lend("valkey")).hosts
    with FaultyLink(port) as connection:
        yield connection


def through(connection: FaultyLink, options: str = "") -> RemoteEngine:
    url = f"valkey://127.0.0.1:{connection.port}?persistence=none{options}"
    engine = open_engine(url, durability="interval")
    assert isinstance(engine, RemoteEngine)
    return engine


def backend_of(engine: RemoteEngine) -> ValkeyBackend:
    assert isinstance(engine.backend, ValkeyBackend)
    return engine.backend


def increment(tx: Transaction) -> int:
    number = int(tx.get(tx.space + b"n") or b"0") + 1
    tx.put(tx.space + b"n", b"%d" % number)
    return number


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


# --- durability -----------------------------------------------------------------------------------


def waits_of(url: str, durability: str) -> tuple[int, bool]:
    engine = open_engine(url, durability=durability)
    assert isinstance(engine, RemoteEngine)
    waits = backend_of(engine).waits
    engine.transact(increment, space=b"A")
    engine.checkpoint()
    engine.close()
    return waits.replicas, waits.disk


def test_a_commit_waits_for_what_the_settings_of_its_server_leave_open() -> None:
    with ValkeyServer.started(durable=True) as server:
        assert waits_of(server.url, "commit") == (0, False)
        assert waits_of(server.url, "interval") == (0, False)

        server.command("CONFIG", "SET", "appendfsync", "everysec")
        assert waits_of(server.url, "commit") == (0, True)
        assert waits_of(server.url, "interval") == (0, False)


def test_a_server_that_would_lose_what_it_acknowledges_is_refused() -> None:
    with ValkeyServer.started(durable=True) as server:
        server.command("CONFIG", "SET", "appendfsync", "no")
        with pytest.raises(StoreUnusable, match="lets its system decide"):
            open_engine(server.url, durability="interval")

        server.command("CONFIG", "SET", "appendonly", "no")
        for durability in ("commit", "interval"):
            with pytest.raises(StoreUnusable, match=r"append-only file.*persistence=none"):
                open_engine(server.url, durability=durability)

        open_engine(server.url + "?persistence=none").close()


def test_a_server_that_removes_keys_by_itself_is_refused() -> None:
    server = ValkeyServer.started(maxmemory="100mb", maxmemory_policy="volatile-lru")
    with server, pytest.raises(StoreUnusable, match="noeviction"):
        open_engine(server.url)


def test_a_commit_that_too_few_replicas_confirm_is_not_acknowledged() -> None:
    with ValkeyServer.started() as server:
        engine = open_engine(server.url + "&replicas=1&patience=0", durability="interval")

        with pytest.raises(OutcomeUnknown, match="0 of 1 replicas"):
            engine.transact(increment, space=b"A")
        engine.close()


def test_a_commit_whose_reply_is_lost_is_not_acknowledged_before_replicas_confirm_it(
    faulty: FaultyLink,
) -> None:
    engine = through(faulty, "&replicas=1&patience=0")

    faulty.lose_replies(b"_commit")
    with pytest.raises(OutcomeUnknown, match="0 of 1 replicas"):
        engine.transact(increment, space=b"A")
    assert faulty.lost == 1
    engine.close()


def test_a_full_server_refuses_to_grow_and_still_removes() -> None:
    with ValkeyServer.started(maxmemory="30mb") as server:
        engine = open_engine(server.url, durability="interval")

        def fill() -> None:
            for number in count():
                key = b"A%d" % number
                engine.transact(lambda tx, k=key: tx.put(k, bytes(1_000_000)), space=b"A")  # type: ignore[misc]

        with pytest.raises(StoreFull):
            fill()
        engine.transact(lambda tx: tx.clear(b"A", b"B"), space=b"A")

        with engine.view(space=b"A") as view:
            assert list(view.scan(b"A", b"B")) == []
        assert engine.check() == []
        engine.close()


# --- opening --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("valkey://", "is not a host"),
        ("valkey://host:port", "'host:port'"),
        ("valkey://host:0", "'host:0'"),
        ("valkey://one:1,,two", "'' in the URL"),
        ("valkey://host/name", "'name'"),
        ("valkey://host?replica=1", "no option 'replica'"),
        ("valkey://host?replicas=-1", "'-1'"),
        ("valkey://host?persistence=always", "'always'"),
        ("valkey://host?store={a}", "'{a}'"),
    ],
)
def test_a_url_that_says_nothing_sensible_is_refused(url: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        open_engine(url)


def test_a_url_names_hosts_login_database_and_options() -> None:
    address = parse("rediss://ann:p%40ss@one:7000,[::1]:7001,two/3?store=s&replicas=2&patience=9")

    assert address.hosts == (("one", 7000), ("::1", 7001), ("two", 6379))
    assert (address.username, address.password, address.tls) == ("ann", "p@ss", True)
    assert (address.database, address.store, address.replicas, address.patience) == (3, "s", 2, 9)
    assert "p@ss" not in address.name


def test_an_unknown_durability_is_refused(stores: Stores) -> None:
    with pytest.raises(BadInput, match="unknown durability 'always'"):
        open_engine(stores.url(), durability="always")


def test_a_wrong_password_is_told_and_the_right_one_taken() -> None:
    with ValkeyServer.started() as server:
        server.command("ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all")
        url = f"valkey://{{}}127.0.0.1:{server.port}?persistence=none"

        with pytest.raises(NotAuthenticated, match="refuses the name or password"):
            open_engine(url.format("ann:wrong@"))
        engine = open_engine(url.format("ann:secret@"), durability="interval")
        assert engine.transact(increment, space=b"A") == 1
        engine.close()


def test_a_store_of_a_newer_format_is_refused(stores: Stores) -> None:
    url = stores.url()
    engine = open_engine(url)
    assert isinstance(engine, RemoteEngine)
    backend_of(engine).servers._node(0).ask([("SET", backend_of(engine).names.format, "2")])
    engine.close()

    with pytest.raises(UnsupportedFormat, match="format b'2'"):
        open_engine(url)


def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith("holdfast.engine.valkey.") or name.split(".")[0] == "valkey":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "valkey", None)

    with pytest.raises(MissingDriver, match=r"pip install 'holdfastdb\[valkey\]'"):
        open_engine("valkey://127.0.0.1:1")


def test_a_forked_child_can_not_use_the_store_of_its_parent(engine: RemoteEngine) -> None:
    engine.transact(increment, space=b"A")
    child = os.fork()
    if child == 0:
        try:
            engine.transact(increment, space=b"A")
        except StoreForked:
            engine.close()
            os._exit(0)
        os._exit(1)

    _, status = os.waitpid(child, 0)

    assert status == 0
    assert engine.transact(increment, space=b"A") == 2


# --- clusters -------------------------------------------------------------------------------------


@pytest.mark.only_on("cluster")
def test_spaces_spread_over_the_cluster(stores: Stores) -> None:
    with stores.open_engine() as engine:
        assert isinstance(engine, RemoteEngine)
        servers = backend_of(engine).servers
        places = [backend_of(engine).place(b"%d" % number) for number in range(30)]

        assert len({servers.host_of(place.slot) for place in places}) == 3
        assert engine.stats()["servers"] == 3


@pytest.mark.only_on("cluster")
def test_a_subscriber_hears_all_that_is_left_while_a_primary_is_replaced() -> None:
    space = b"A"
    numbers = count()

    def leave(tx: Transaction) -> None:
        tx.after_commit(Notice("n", b"%d" % next(numbers)))

    with ValkeyCluster(failover_seconds=1) as cluster:
        engine = open_engine(cluster.url + "&replicas=1", durability="interval")
        with engine.subscribe(space=space) as subscription:
            engine.transact(leave, space=space)
            primary = cluster.primary_of(Names("holdfast", space).tag)
            replica = cluster.kill_primary(primary)
            cluster.await_promotion(replica)
            primary.start()  # and follows the new one
            cluster.await_replicas()
            for _ in range(3):
                engine.transact(leave, space=space)

            heard = [int(notice.payload) for notice in subscription.poll()]

        # A commit that had to be run again has left a number unused.
        assert (heard, len(heard)) == (sorted(set(heard)), 4)
        assert subscription.missed == 0
        engine.close()


@pytest.mark.only_on("cluster")
def test_a_primary_that_hangs_is_left_for_the_one_that_takes_its_place() -> None:
    with ValkeyCluster(failover_seconds=1) as cluster:
        engine = open_engine(cluster.url, durability="interval")
        engine.transact(increment, space=b"A")
        cluster.await_replicas()
        primary = cluster.primary_of(Names("holdfast", b"A").tag)

        os.kill(primary.pid, signal.SIGSTOP)
        try:
            number = engine.transact(increment, space=b"A")
        finally:
            os.kill(primary.pid, signal.SIGCONT)

        assert number == 2
        assert engine.transact(increment, space=b"A") == 3
        engine.close()


@pytest.mark.only_on("cluster")
def test_a_space_that_moves_to_another_node_is_followed_under_load() -> None:
    space = b"A"
    tag = Names("holdfast", space).tag
    with ValkeyCluster() as cluster:
        engine = open_engine(cluster.url, durability="interval")
        stop = threading.Event()

        def run() -> int:
            runs = 0
            while not stop.is_set() or runs < 20:
                engine.transact(increment, space=space)
                runs += 1
            return runs

        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(run) for _ in range(2)]
            for _ in range(4):
                move(cluster, tag)
            stop.set()
            total = sum(each.result() for each in runs)

        assert engine.transact(increment, space=space) == total + 1
        assert engine.check() == []
        engine.close()


def move(cluster: ValkeyCluster, tag: bytes) -> None:
    """Moves the slot of a tag to the next primary, key by key, as old tools do."""
    slot = slot_of(tag)
    source = cluster.primary_of(tag)
    primaries = sorted(cluster.primaries, key=lambda node: node.port)
    target = primaries[(primaries.index(source) + 1) % len(primaries)]
    ids = {node.port: str(node.command("CLUSTER", "MYID")) for node in (source, target)}
    target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
    source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
    while keys := source.command("CLUSTER", "GETKEYSINSLOT", slot, 1):
        source.command("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *keys)
    for node in (target, source, *primaries):
        node.command("CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])
