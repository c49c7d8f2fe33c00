"""Commits that wait for LMDB together, and who notices nothing of it."""

import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Notice, Transaction, read_counter
from holdfast.engine.lmdb import flusher, overlay
from holdfast.engine.lmdb.log_lease import DEFERRING, PASSING
from holdfast.engine.lmdb.redo_log import RedoLog, Writes
from holdfast.errors import StoreForked, StoreFull, ViewOnlyReads
from holdfast.limits import (
    MAX_CLEARED_IN_OVERLAY,
    MAX_DEFERRED_BYTES,
    MAX_SKIPPED_DELETED_KEYS,
    REDO_LOG_BYTES,
)
from tests.processes import start
from tests.repetitions import repeated


@pytest.fixture(scope="module", autouse=True)
def no_short_programs() -> Iterator[None]:
    """In commit mode, the first commit waits already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
        yield


@pytest.fixture(params=["interval", "commit"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(tmp_path: Path, durability: str) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store", durability=durability, checkpoint_seconds=3600)
    yield engine
    assert engine.check() == []
    engine.close()


@pytest.fixture(scope="module", params=["interval", "commit"])
def shared_engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """One for all examples of a property, which begin by emptying it."""
    engine = open_engine(tmp_path_factory.mktemp("store"), durability=request.param)
    yield engine
    engine.close()


def lmdb_commits(engine: Engine) -> int:
    """Returns LMDB's last commit, without the view that would make a new one."""
    return int(engine._env.info()["last_txnid"])  # type: ignore[attr-defined]


def put(engine: Engine, key: bytes, value: bytes) -> None:
    engine.transact(lambda tx: tx.put(key, value))


# --- one process ----------------------------------------------------------------------------------


def test_commits_wait_for_each_other_and_a_view_sees_them_all(engine: Engine) -> None:
    before = lmdb_commits(engine)

    with engine.transaction() as tx:  # no flush gives its lease away while someone writes
        tx.put(b"0", b"")
    for number in range(1, 50):
        put(engine, b"%d" % number, b"")
    waited = 50 - (lmdb_commits(engine) - before)
    with engine.view() as view:
        found = [key for key, _ in view.scan(b"", b"\xff")]

    assert waited > 0
    assert len(found) == 50


steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["put", "delete", "block", "group", "large"]), st.sampled_from("abc")
        ),
        st.tuples(st.sampled_from(["read", "look", "look", "clear", "checkpoint"]), st.just("")),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_commits_and_looks_in_any_order_agree(
    shared_engine: Engine, steps: list[tuple[str, str]]
) -> None:
    engine = shared_engine
    engine.transact(lambda tx: tx.clear(b"", b"\xff"))
    model: dict[bytes, bytes] = {}
    for number, (name, letter) in enumerate(steps):
        key, value = letter.encode(), b"%d" % number
        match name:
            case "put" | "large":
                value *= MAX_DEFERRED_BYTES if name == "large" else 1
                put(engine, key, value)
                model[key] = value
            case "delete":
                engine.transact(lambda tx, key=key: tx.delete(key))  # type: ignore[misc]
                model.pop(key, None)
            case "block":
                with engine.transaction() as tx:
                    assert tx.get(key) == model.get(key)
                    tx.put(key, value)
                model[key] = value
            case "group":
                engine.transact_many(
                    [
                        lambda tx, key=key: tx.delete(key),  # type: ignore[misc]
                        lambda tx, key=key, value=value: tx.put(key, value),  # type: ignore[misc]
                    ]
                )
                model[key] = value
            case "read":
                assert engine.transact(lambda tx: dict(tx.scan(b"", b"\xff"))) == model
            case "look":
                with engine.view() as view:
                    assert dict(view.scan(b"", b"\xff")) == model
            case "clear":
                engine.transact(lambda tx: tx.clear(b"b", b"d"))
                model = {key: value for key, value in model.items() if not b"b" <= key < b"d"}
            case "checkpoint":
                engine.checkpoint()


def test_what_waits_is_flushed_by_itself(engine: Engine) -> None:
    before = lmdb_commits(engine)

    put(engine, b"a", b"1")

    while lmdb_commits(engine) == before:  # ends when LMDB has got it
        pass


@pytest.mark.parametrize("durability", ["interval"])
def test_where_every_commit_is_looked_at_none_waits_until_one_is_not(engine: Engine) -> None:
    def commit_and_look(number: int) -> int:
        before = lmdb_commits(engine)
        put(engine, b"n", b"%d" % number)
        made = lmdb_commits(engine) - before
        with engine.view() as view:
            assert view.get(b"n") == b"%d" % number
        return made

    made = [commit_and_look(number) for number in range(20)]
    put(engine, b"n", b"direct")
    assert engine.transact(lambda tx: tx.get(b"n")) == b"direct"
    while True:  # ends when a commit has waited again
        before = lmdb_commits(engine)
        put(engine, b"n", b"")
        if lmdb_commits(engine) == before:
            break

    assert made[-10:] == [1] * 10


def test_a_transaction_that_runs_while_others_look_is_neither_seen_nor_disturbed(
    engine: Engine,
) -> None:
    put(engine, b"a", b"old")
    put(engine, b"b", b"old")

    def look() -> list[tuple[bytes, bytes]]:
        with engine.view() as view:  # flushes what was committed before
            return list(view.scan(b"", b"\xff"))

    with ThreadPoolExecutor(1) as pool, engine.transaction() as tx:
        tx.put(b"a", b"new")
        seen = pool.submit(look).result(timeout=30)
        assert list(tx.scan(b"", b"\xff")) == [(b"a", b"new"), (b"b", b"old")]
        tx.delete(b"b")
        assert pool.submit(look).result(timeout=30) == seen

    assert seen == [(b"a", b"old"), (b"b", b"old")]
    assert look() == [(b"a", b"new")]


def test_a_key_that_was_put_and_deleted_never_reaches_lmdb(engine: Engine) -> None:
    put(engine, b"a", b"1")
    engine.transact(lambda tx: tx.delete(b"a"))

    assert engine.transact(lambda tx: list(tx.scan(b"", b"\xff"))) == []
    assert engine.stats()["keys"] == 0
    while not engine._redo.is_empty():  # type: ignore[attr-defined]  # ends when the log was reset
        pass


@settings(deadline=None, max_examples=repeated(20, full=60))
@given(
    st.lists(st.integers(0, 99) | st.sampled_from(["take"] * 3 + ["look"]), max_size=60),
)
def test_who_takes_the_first_of_a_range_finds_what_others_put_before_it(
    steps: list[int | str],
) -> None:
    with (
        TemporaryDirectory() as folder,
        closing(open_engine(folder, durability="interval")) as engine,
    ):
        waiting = {b"q%02d" % number for number in range(30, 60)}
        for key in waiting:
            put(engine, key, b"")
        engine.checkpoint()
        assert (
            take_some(engine, MAX_SKIPPED_DELETED_KEYS + 2)
            == sorted(waiting)[: MAX_SKIPPED_DELETED_KEYS + 2]
        )
        waiting -= set(sorted(waiting)[: MAX_SKIPPED_DELETED_KEYS + 2])
        for step in steps:
            if step == "take":
                assert take_some(engine, 1) == sorted(waiting)[:1]
                waiting -= set(sorted(waiting)[:1])
            elif step == "look":
                assert engine.transact(first_of_all) == min(waiting, default=None)
            else:
                waiting.add(key := f"q{step:02}".encode())
                put(engine, key, b"")


def take_some(engine: Engine, count: int) -> list[bytes]:
    """Takes the first key, `count` times, in a transaction each."""

    def take(tx: Transaction) -> bytes | None:
        for key, _ in tx.scan(b"q", b"r", limit=1):
            tx.delete(key)
            return key
        return None

    found = [engine.transact(take) for _ in range(count)]
    return [key for key in found if key is not None]


def first_of_all(tx: Transaction) -> bytes | None:
    return next((key for key, _ in tx.scan(b"p", b"z", limit=1)), None)


@pytest.mark.parametrize("keys", [MAX_CLEARED_IN_OVERLAY, MAX_CLEARED_IN_OVERLAY + 1, 1_000])
def test_a_range_is_cleared_however_much_is_in_it(engine: Engine, keys: int) -> None:
    def fill(tx: Transaction) -> None:
        for number in range(keys):
            tx.put(b"k%d" % number, b"")
        tx.put(b"z", b"")

    engine.transact(fill)

    engine.transact(lambda tx: tx.clear(b"k", b"l"))

    assert engine.transact(lambda tx: list(tx.scan(b"", b"\xff"))) == [(b"z", b"")]
    with engine.view() as view:
        assert list(view.scan(b"", b"\xff")) == [(b"z", b"")]


def test_large_and_small_transactions_keep_their_order(engine: Engine) -> None:
    put(engine, b"a", b"small")
    put(engine, b"a", b"l" * (MAX_DEFERRED_BYTES + 1))
    put(engine, b"b", b"small")
    put(engine, b"b", b"m" * (MAX_DEFERRED_BYTES // 2))

    with engine.view() as view:
        assert view.get_many([b"a", b"b"]) == [
            b"l" * (MAX_DEFERRED_BYTES + 1),
            b"m" * (MAX_DEFERRED_BYTES // 2),
        ]


def test_a_large_value_is_not_encoded_for_the_log(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[Writes] = []
    record = RedoLog.record

    def noted(log: RedoLog, writes: Writes) -> bytes:
        recorded.append(writes)
        return record(log, writes)

    monkeypatch.setattr(RedoLog, "record", noted)
    large = b"l" * (MAX_DEFERRED_BYTES + 1)

    put(engine, b"small", b"s")
    put(engine, b"large", large)
    outcomes = engine.transact_many(
        [lambda tx: tx.put(b"first", b"f"), lambda tx: tx.put(b"second", large)]
    )

    assert recorded == [{b"small": b"s"}]
    assert [outcome.error for outcome in outcomes] == [None, None]


def test_a_transaction_reads_what_was_flushed_and_what_went_to_lmdb_directly_since(
    engine: Engine,
) -> None:
    large = b"l" * (MAX_DEFERRED_BYTES + 1)
    put(engine, b"a", b"1")
    put(engine, b"b", b"1")
    assert engine.transact(lambda tx: tx.delete(b"b")) is None
    engine.stats()  # flushes

    flushed = engine.transact(lambda tx: tx.get_many([b"a", b"b", b"c"]))
    put(engine, b"c", b"2")
    engine.transact(lambda tx: tx.put_all({b"a": b"3", b"b": large}))

    assert flushed == [b"1", None, None]
    assert engine.transact(lambda tx: tx.get_many([b"a", b"b", b"c"])) == [b"3", large, b"2"]


def test_more_than_the_log_holds_is_no_problem(engine: Engine) -> None:
    count = 3 * REDO_LOG_BYTES // 100_000

    for number in range(count):
        put(engine, b"%d" % number, bytes(100_000))

    assert engine.stats()["keys"] == count


def test_a_subscriber_hears_of_every_commit_after_it_came(engine: Engine) -> None:
    engine.transact(lambda tx: tx.after_commit(Notice("before")))
    put(engine, b"a", b"1")

    with engine.subscribe() as subscription:
        engine.transact(lambda tx: tx.after_commit(Notice("one")))
        put(engine, b"b", b"2")
        engine.transact(lambda tx: tx.after_commit(Notice("two")))

        assert [notice.topic for notice in subscription.poll()] == ["one", "two"]


def test_notices_that_nobody_can_hear_are_neither_made_nor_kept(engine: Engine) -> None:
    made: list[str] = []

    def work(tx: Transaction) -> None:
        def make(name: str) -> list[Notice]:
            made.append(name)
            return [Notice(name)]

        tx.put(b"a", b"1")
        tx.after_commit(Notice("entities.changed"))
        tx.after_commit_many("events:", lambda: make("events:key"))
        tx.after_commit_many("jobs.", lambda: make("jobs.ready"))

    engine.transact(work)
    wanted = {"events:"}
    with (
        engine.subscribe(topic_prefix="events:key"),
        engine.subscribe(may_want=lambda topic: topic.startswith(tuple(wanted))) as other,
    ):
        engine.transact(work)
        engine.transact_many([work, work])
        wanted.add("jobs.")
        engine.transact(work)

        heard = [notice.topic for notice in other.poll()]
    assert made[:3] == ["events:key"] * 3
    assert sorted(made[3:]) == ["events:key", "jobs.ready"]
    assert heard == ["events:key"] * 4 + ["jobs.ready"]


def test_a_child_that_is_forked_inside_a_transaction_commits_nothing(engine: Engine) -> None:
    put(engine, b"a", b"1")
    reading, writing = os.pipe()

    def fork(tx: Transaction) -> int:
        tx.put(b"a", b"2")
        return os.fork()

    try:
        pid = engine.transact(fork)
    except StoreForked as error:
        os.write(writing, error.code.encode())
        os._exit(0)
    os.waitpid(pid, 0)

    assert os.read(reading, 100) == b"store_forked"
    with engine.view() as view:
        assert view.get(b"a") == b"2"


# --- several processes ----------------------------------------------------------------------------


def add_one_by_one(path: str, durability: str, connection: Connection) -> None:
    engine = open_engine(path, durability=durability, checkpoint_seconds=3600)
    connection.send("open")
    while connection.recv():
        connection.send(engine.transact(_increment))
    engine.close()
    connection.send("closed")


def _increment(tx: Transaction) -> int:
    number = int(tx.get(b"n") or b"0") + 1
    tx.put(b"n", b"%d" % number)
    return number


def test_from_the_moment_in_which_another_one_comes_both_see_each_other(
    engine: Engine, tmp_path: Path, durability: str
) -> None:
    assert [engine.transact(_increment) for _ in range(3)] == [1, 2, 3]

    child = start(add_one_by_one, str(tmp_path / "store"), durability)
    assert child.receive() == "open"

    for number in range(4, 40, 2):
        assert child.ask(True) == number
        assert engine.transact(_increment) == number + 1
    child.send(False)
    assert child.receive() == "closed"
    assert child.join() == 0


def test_who_is_alone_again_defers_again(tmp_path: Path, durability: str) -> None:
    engine = open_engine(tmp_path, durability=durability, checkpoint_seconds=0.01)
    lease = engine._overlay._lease  # type: ignore[attr-defined]
    child = start(add_one_by_one, str(tmp_path), durability)
    assert child.receive() == "open"
    shared = []
    for _ in range(10):
        engine.transact(_increment)
        shared.append(lease.state)

    child.send(False)
    assert child.join() == 0
    with engine.transaction() as tx:
        counted = _increment(tx)
    while lease.state is not DEFERRING:  # ends when it is alone
        counted = engine.transact(_increment)

    assert shared == [PASSING] * 10
    with engine.view() as view:
        assert view.get(b"n") == b"%d" % counted
    engine.close()


# --- a full disk ----------------------------------------------------------------------------------


def fill_the_disk_behind_its_back(path: str, connection: Connection) -> None:
    """The space that was reserved on the disk is not there, as on a disk that fails."""
    flusher.FLUSH_SECONDS = 3600.0  # type: ignore[attr-defined]  # in this process only
    engine = open_engine(path, durability="interval", checkpoint_seconds=3600)
    put(engine, b"a", b"1")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
    engine.transact(lambda tx: tx.add(b"n", 1))
    with engine.view() as view:
        connection.send((view.get(b"a"), len(list(view.scan(b"", b"\xff")))))
        with pytest.raises(ViewOnlyReads):
            view.put(b"a", b"2")  # type: ignore[attr-defined]  # that is the point
    for call in (engine.checkpoint, lambda: put(engine, b"large", bytes(2 * MAX_DEFERRED_BYTES))):
        try:
            call()
            connection.send("no error")
        except StoreFull as error:
            connection.send(error.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    put(engine, b"b", b"2")
    with engine.view() as view:
        connection.send((view.get_many([b"a", b"b", b"large"]), read_counter(view.get(b"n"))))
    connection.send(engine.check())
    engine.close()


def test_what_waits_stays_readable_while_lmdb_can_not_take_it(tmp_path: Path) -> None:
    child = start(fill_the_disk_behind_its_back, str(tmp_path))

    assert child.receive() == (b"1", 2)
    assert child.receive() == "store_full"
    assert child.receive() == "store_full"
    assert child.receive() == ([b"1", b"2", None], 1)
    assert child.receive() == []
    assert child.join() == 0
