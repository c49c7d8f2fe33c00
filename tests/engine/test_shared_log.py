"""Processes that share a folder append to one log, and each sees what the others have committed."""

import fcntl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.engine.lmdb import flusher, overlay
from holdfast.engine.lmdb.open_store import OpenStore
from holdfast.errors import StoreBusy
from holdfast.limits import MAX_DEFERRED_BYTES
from tests.processes import Child, start
from tests.repetitions import repeated

ALL = (b"", b"\xff")


def let_commits_wait() -> None:
    """In this process only: the first commit goes to the log, and is flushed by nobody's clock."""
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]
    overlay.MAX_WAITING_SECONDS = 3600.0  # type: ignore[attr-defined]
    overlay.MAX_INTERVAL_WAITING_SECONDS = 3600.0  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def commits_wait() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COMMITS_BEFORE_LOG", "MAX_WAITING_SECONDS", "MAX_INTERVAL_WAITING_SECONDS"):
            patch.setattr(overlay, name, getattr(overlay, name))  # so that it is put back
        let_commits_wait()
        yield


@pytest.fixture(params=["commit", "interval"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def open_here(path: Path | str, durability: str) -> Engine:
    return open_engine(path, durability=durability, checkpoint_seconds=3600)


def obey(path: str, durability: str, connection: Connection) -> None:
    """Does with the store what it is told, step by step."""
    let_commits_wait()
    engine = open_here(path, durability)
    connection.send("open")
    while (step := connection.recv()) is not None:
        connection.send(perform(engine, *step))
    engine.close()
    connection.send("closed")


def perform(engine: Engine, name: str, key: bytes, value: bytes) -> Any:
    """Does one step, and returns what it has read."""
    match name:
        case "put":
            engine.transact(lambda tx: tx.put(key, value))
        case "delete":
            engine.transact(lambda tx: tx.delete(key))
        case "group":
            engine.transact_many([lambda tx: tx.delete(key), lambda tx: tx.put(key, value)])
        case "clear":
            engine.transact(lambda tx: tx.clear(b"b", b"d"))
        case "fail":
            with pytest.raises(ZeroDivisionError):
                engine.transact(lambda tx: tx.put(key, value) or 1 // 0)  # type: ignore[func-returns-value]
        case "read":
            return engine.transact(lambda tx: dict(tx.scan(*ALL)))
        case "look":
            with engine.view() as view:
                return dict(view.scan(*ALL))
        case "flush":
            engine.stats()
        case "checkpoint":
            engine.checkpoint()
    return None


def lmdb_commits(engine: Engine) -> int:
    return int(engine._env.info()["last_txnid"])  # type: ignore[attr-defined]


def put(engine: Engine, key: bytes, value: bytes = b"") -> None:
    engine.transact(lambda tx: tx.put(key, value))


def neighbour_on(path: Path, durability: str) -> Child:
    child = start(obey, str(path), durability)
    assert child.receive() == "open"
    return child


# --- what everybody sees --------------------------------------------------------------------------


def test_a_commit_beside_another_process_goes_to_the_log_and_is_seen_at_once(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        before = lmdb_commits(engine)

        put(engine, b"a", b"1")
        assert other.ask(("look", b"", b"")) == {b"a": b"1"}
        other.ask(("put", b"b", b"2"))
        with engine.view() as view:
            seen = dict(view.scan(*ALL))

        assert seen == {b"a": b"1", b"b": b"2"}
        assert engine.transact(lambda tx: dict(tx.scan(*ALL))) == seen
        assert lmdb_commits(engine) == before
        assert other.ask(None) == "closed"


class CommitUnderWay:
    """An LMDB environment as another process sees it while a commit waits for the disk."""

    def __init__(self, env: Any) -> None:
        self._env = env

    def info(self) -> dict[str, int]:
        return {**self._env.info(), "last_txnid": self._env.info()["last_txnid"] + 1}

    def begin(self, **options: Any) -> Any:
        return self._env.begin(**options)


def test_a_view_sees_the_log_while_another_process_brings_it_into_lmdb(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        other.ask(("put", b"a", b"1"))
        unflushed = engine._overlay._unflushed  # type: ignore[attr-defined]
        unflushed._env = CommitUnderWay(unflushed._env)  # its number is known, and nothing else

        with engine.view() as view:
            seen = view.get(b"a")

        unflushed._env = unflushed._env._env
        assert seen == b"1"
        assert other.ask(None) == "closed"


names = st.sampled_from(["put"] * 4 + ["delete", "group", "fail", "read", "look", "look", "large"])
rare = st.sampled_from(["clear", "flush", "checkpoint", "leave"])
steps = st.lists(
    st.tuples(st.booleans(), names | names | names | rare, st.sampled_from([b"a", b"b", b"c"])),
    max_size=40,
)


@settings(max_examples=repeated(40, full=300), deadline=None)
@given(st.sampled_from(["commit", "interval"]), steps)
def test_two_processes_in_turns_agree_with_a_model(
    durability: str, steps: list[tuple[bool, str, bytes]]
) -> None:
    model: dict[bytes, bytes] = {}
    with (
        TemporaryDirectory() as folder,
        closing(open_here(folder, durability)) as engine,
    ):
        other = neighbour_on(Path(folder), durability)
        for number, (here, name, key) in enumerate(steps):
            value = b"%d" % number
            if name == "leave":
                assert other.ask(None) == "closed"
                other = neighbour_on(Path(folder), durability)
                continue
            if name == "large":
                name, value = "put", value * MAX_DEFERRED_BYTES
            step = (name, key, value)
            found = perform(engine, *step) if here else other.ask(step)
            if name in ("put", "group"):
                model[key] = value
            elif name == "delete":
                model.pop(key, None)
            elif name == "clear":
                model = {key: value for key, value in model.items() if not b"b" <= key < b"d"}
            elif name in ("read", "look"):
                assert found == model
        assert perform(engine, "look", b"", b"") == model
        assert other.ask(("look", b"", b"")) == model
        assert other.ask(None) == "closed"
        assert engine.check() == []


def test_more_than_the_log_holds_is_brought_into_lmdb_by_whichever_process_finds_it_full(
    tmp_path: Path, durability: str
) -> None:
    large = bytes(100_000)
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)

        for number in range(60):
            put(engine, b"here %d" % number, large)
            other.ask(("put", b"there %d" % number, large))

        assert len(other.ask(("look", b"", b""))) == 120
        assert engine.stats()["keys"] == 120
        assert other.ask(None) == "closed"


# --- notices --------------------------------------------------------------------------------------


def announce(path: str, durability: str, connection: Connection) -> None:
    let_commits_wait()
    engine = open_here(path, durability)
    connection.send("open")
    while (topic := connection.recv()) is not None:

        def work(tx: Transaction, topic: str = topic) -> None:
            tx.put(b"last", topic.encode())
            tx.after_commit(Notice(topic))
            tx.after_commit_many("made.", lambda: [Notice(f"made.{topic}")])

        engine.transact(work)
        connection.send("announced")
    engine.close()


def test_a_subscriber_is_woken_by_commits_of_another_process_that_wait_in_the_log(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = start(announce, str(tmp_path), durability)
        assert other.receive() == "open"
        assert other.ask("before") == "announced"

        with engine.subscribe() as subscription:
            before = lmdb_commits(engine)
            assert other.ask("one") == "announced"
            first = [subscription.get(timeout=30), subscription.get(timeout=30)]
            waited = lmdb_commits(engine) == before
            engine.stats()  # brings all into LMDB's file
            assert other.ask("two") == "announced"
            second = [subscription.get(timeout=30), subscription.get(timeout=30)]

            topics = [notice.topic for notice in first + second if notice is not None]
        assert topics == ["one", "made.one", "two", "made.two"]
        assert waited
        other.send(None)
        assert other.join() == 0


def test_notices_are_left_out_of_the_log_while_nobody_has_subscribed(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)

        engine.transact(lambda tx: tx.after_commit(Notice("unheard")))

        assert engine._redo.is_empty()  # type: ignore[attr-defined]
        assert other.ask(None) == "closed"


# --- coming, going and being killed ---------------------------------------------------------------


def test_the_last_to_close_keeps_what_another_process_committed_before_it_was_killed(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_here(tmp_path, durability)
    other = neighbour_on(tmp_path, durability)
    put(engine, b"a", b"1")
    leave = OpenStore._leave_folder

    def commit_and_die_first(files: OpenStore) -> None:
        other.ask(("put", b"b", b"2"))  # after this process has flushed
        other.kill()
        leave(files)

    monkeypatch.setattr(OpenStore, "_leave_folder", commit_and_die_first)
    engine.close()
    monkeypatch.undo()
    let_commits_wait()

    with closing(open_here(tmp_path, durability)) as engine, engine.view() as view:
        assert dict(view.scan(*ALL)) == {b"a": b"1", b"b": b"2"}


def test_what_a_killed_process_has_committed_is_seen_by_those_that_go_on(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        other.ask(("put", b"a", b"1"))
        other.kill()

        with engine.view() as view:
            assert view.get(b"a") == b"1"
        put(engine, b"b", b"2")
        assert engine.transact(lambda tx: dict(tx.scan(*ALL))) == {b"a": b"1", b"b": b"2"}
        assert engine.check() == []


def test_a_record_that_its_writer_could_not_publish_is_written_over(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        put(engine, b"a", b"1")
        log = engine._redo  # type: ignore[attr-defined]
        log.write(log.record({b"b": b"unpublished"}), log.position)  # and killed in this moment

        seen = other.ask(("look", b"", b""))
        other.ask(("put", b"c", b"3"))

        assert seen == {b"a": b"1"}
        assert other.ask(("look", b"", b"")) == {b"a": b"1", b"c": b"3"}
        with engine.view() as view:
            assert dict(view.scan(*ALL)) == {b"a": b"1", b"c": b"3"}
        assert other.ask(None) == "closed"


def test_a_process_that_only_reads_keeps_no_old_snapshot_open(
    tmp_path: Path, durability: str
) -> None:
    engine = open_here(tmp_path, durability)
    other = neighbour_on(tmp_path, durability)
    other.ask(("put", b"a", b"1"))
    with engine.view() as view:
        assert view.get(b"a") == b"1"
    unflushed = engine._overlay._unflushed  # type: ignore[attr-defined]
    assert unflushed.base is not None, "it has followed nothing: nothing is tested"

    other.ask(("flush", b"", b""))

    while unflushed.base is not None:  # ends when its flusher has looked
        pass
    assert other.ask(None) == "closed"
    engine.close()


def test_a_view_leaves_the_base_of_a_running_transaction_alone(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        other.ask(("put", b"a", b"1"))
        other.ask(("flush", b"", b""))  # what was published counts no more

        def look() -> bytes | None:
            with engine.view() as view:
                return view.get(b"a")

        with ThreadPoolExecutor(1) as pool, engine.transaction() as tx:
            seen = pool.submit(look).result(timeout=30)
            assert tx.get(b"a") == seen == b"1"
            tx.put(b"b", b"2")

        assert other.ask(("look", b"", b"")) == {b"a": b"1", b"b": b"2"}
        assert other.ask(None) == "closed"


def test_a_transaction_that_raises_releases_the_lease(tmp_path: Path, durability: str) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)

        perform(engine, "fail", b"a", b"1")
        with pytest.raises(ZeroDivisionError), engine.transaction() as tx:
            tx.put(b"a", b"%d" % (1 // 0))
        other.ask(("put", b"b", b"2"))  # would wait for ever

        assert engine.transact(lambda tx: dict(tx.scan(*ALL))) == {b"b": b"2"}
        assert other.ask(None) == "closed"


def test_an_older_version_without_a_shared_log_is_kept_apart(tmp_path: Path) -> None:
    open_here(tmp_path, "commit").close()
    with (tmp_path / "users.lock").open("w") as users:
        users.write("commit")  # as it did
        users.flush()
        fcntl.flock(users, fcntl.LOCK_SH)

        with pytest.raises(StoreBusy, match="older version of Holdfast"):
            open_here(tmp_path, "commit")


def test_an_older_version_finds_a_durability_that_is_not_its_own(tmp_path: Path) -> None:
    with closing(open_here(tmp_path, "commit")):
        assert (tmp_path / "users.lock").read_text() not in ("commit", "interval")


def test_the_file_of_what_processes_tell_each_other_is_gone_when_the_store_is_closed(
    tmp_path: Path, durability: str
) -> None:
    open_here(tmp_path, durability).close()

    assert not (tmp_path / "sharing").exists()


def test_a_process_whose_log_fails_goes_on_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_here(tmp_path, "commit")) as engine:
        other = neighbour_on(tmp_path, "commit")
        other.ask(("put", b"a", b"1"))
        put(engine, b"b", b"2")

        def fail(file: int) -> None:
            raise OSError(5, "the disk fails")

        monkeypatch.setattr("os.fdatasync", fail)
        put(engine, b"c", b"3")
        monkeypatch.undo()
        other.ask(("put", b"d", b"4"))
        put(engine, b"e", b"5")

        expected = {b"a": b"1", b"b": b"2", b"c": b"3", b"d": b"4", b"e": b"5"}
        assert other.ask(("look", b"", b"")) == expected
        with engine.view() as view:
            assert dict(view.scan(*ALL)) == expected
        assert other.ask(None) == "closed"


def test_the_flusher_of_an_idle_process_brings_the_log_into_lmdb(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "MAX_WAITING_SECONDS", 0.05)
    monkeypatch.setattr(overlay, "MAX_INTERVAL_WAITING_SECONDS", 0.05)
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 0.001)
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        before = lmdb_commits(engine)

        put(engine, b"a", b"1")

        while lmdb_commits(engine) == before:  # ends when LMDB has got it
            pass
        assert other.ask(("look", b"", b"")) == {b"a": b"1"}
        assert other.ask(None) == "closed"
