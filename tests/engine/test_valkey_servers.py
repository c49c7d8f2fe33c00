"""Valkey's servers: their durability, opening a store on them, and clusters."""

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

import holdfast
from holdfast.engine import open_engine
from holdfast.engine.contract import Notice, Transaction
from holdfast.engine.remote import RemoteEngine
from holdfast.engine.valkey.address import parse
from holdfast.engine.valkey.library import SpaceKeyNames
from holdfast.engine.valkey.servers import slot_of
from holdfast.errors import (
    BadInput,
    MissingDriver,
    NotAuthenticated,
    OutcomeUnknown,
    StoreForked,
    StoreFull,
    StoreUnusable,
    UnsupportedFormat,
)
from tests.engine.faulty_link import FaultyLink
from tests.engine.valkey_engine import backend_of, engine, faulty, increment, through
from tests.servers import ValkeyCluster, ValkeyServer
from tests.stores import Stores

__all__ = ["engine", "faulty"]

pytestmark = pytest.mark.only_on("valkey")


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


def delete_and_count(tx: Transaction) -> None:
    """Removes as layers do: with a counter and a notice."""
    tx.delete(b"A1000000-0")
    tx.add(b"Acount", -1)
    tx.after_commit(Notice("deleted"))


def test_a_full_server_refuses_to_grow_and_still_removes() -> None:
    with ValkeyServer.started(maxmemory="30mb") as server:
        engine = open_engine(server.url, durability="interval")

        def fill(size: int) -> None:
            for number in count():
                key = b"A%d-%d" % (size, number)
                engine.transact(lambda tx, k=key: tx.put(k, bytes(size)), space=b"A")  # type: ignore[misc]

        engine.refuse_full(space=b"A")
        for size in (1_000_000, 10_000):
            with pytest.raises(StoreFull):
                fill(size)
        with pytest.raises(StoreFull, match="has no memory left: it uses"):
            engine.refuse_full(space=b"A")
        engine.transact(delete_and_count, space=b"A")
        engine.transact(lambda tx: tx.clear(b"A", b"B"), space=b"A")

        with engine.view(space=b"A") as view:
            assert list(view.scan(b"A", b"B")) == []
        assert engine.check() == []
        engine.close()


def test_a_space_of_a_full_server_can_be_dropped() -> None:
    with (
        ValkeyServer.started(maxmemory="30mb") as server,
        holdfast.open(server.url, durability="interval") as store,
    ):

        def fill() -> None:
            while True:
                store.space("large").jobs.put("q", data="x" * 1_000_000)

        with pytest.raises(StoreFull):
            fill()
        store.drop_space("large")

        assert not store.has_space("large")
        store.jobs.put("q")


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


@pytest.mark.only_on("cluster")
def test_spaces_spread_over_the_cluster(stores: Stores) -> None:
    with stores.open_engine() as engine:
        assert isinstance(engine, RemoteEngine)
        servers = backend_of(engine).servers
        places = [backend_of(engine).state_of(b"%d" % number) for number in range(30)]

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
            primary = cluster.primary_of(SpaceKeyNames("holdfast", space).tag)
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
        primary = cluster.primary_of(SpaceKeyNames("holdfast", b"A").tag)

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
    tag = SpaceKeyNames("holdfast", space).tag
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
