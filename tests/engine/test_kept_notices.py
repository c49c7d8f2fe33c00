"""Notices are bounded by their bytes, and little is kept that nobody will read."""

from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from holdfast.engine import notices as hub
from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.engine.lmdb import notice_log
from holdfast.engine.notices import NoticeHub
from holdfast.limits import COMMITS_BEFORE_LOG
from tests.engine.test_notices import ListLog
from tests.processes import start

MEBIBYTE = 2**20


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store")
    yield engine
    engine.close()


def publish(engine: Engine, payload: bytes) -> None:
    engine.transact(lambda tx: tx.after_commit(Notice("topic", payload)))


def file_bytes(engine: Engine) -> int:
    return engine.stats()["file_bytes"]


def stored(engine: Engine) -> int:
    """How many commits have notices in the file."""
    with engine.begin_view() as txn:  # type: ignore[attr-defined]
        entries = txn.stat(engine._opened.notices)["entries"]  # type: ignore[attr-defined]
        return int(entries)


def publish_when_told(path: str, connection: Connection) -> None:
    engine = open_engine(path)
    connection.send("open")
    while (size := connection.recv()) is not None:
        publish(engine, bytes(size))
        connection.send("done")
    engine.close()


def test_large_notices_do_not_make_the_file_grow_without_bound(
    engine: Engine, tmp_path: Path
) -> None:
    """Another process has the store open, so nobody knows who has read what."""
    other = start(publish_when_told, str(tmp_path / "store"))
    assert other.receive() == "open"
    with engine.subscribe() as subscription:
        for _ in range(40):
            assert other.ask(5 * MEBIBYTE) == "done"

        assert file_bytes(engine) < 60 * MEBIBYTE
        heard = len(subscription.poll()) + subscription.missed
        assert heard == 40
    other.send(None)
    other.join()


def test_what_all_have_read_is_not_kept(engine: Engine) -> None:
    with engine.subscribe() as subscription:
        for number in range(30):
            publish(engine, b"%d" % number)
            engine.stats()  # brings it into the file
            assert [notice.payload for notice in subscription.poll()] == [b"%d" % number]

        assert stored(engine) <= 3


def test_without_anyone_who_listens_nothing_is_kept(engine: Engine) -> None:
    def work(tx: Transaction) -> None:
        tx.put(b"large", bytes(2 * MEBIBYTE))  # too large to wait: it is committed directly
        tx.after_commit(Notice("topic", bytes(1000)))

    for _ in range(30):
        engine.transact(work)

    assert stored(engine) <= 2


def test_a_subscriber_that_was_left_behind_learns_how_many_commits_it_missed(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notice_log, "KEPT_NOTICE_BYTES", 0)
    log = engine._notice_log  # type: ignore[attr-defined]
    monkeypatch.setattr(log, "_read_by_all", lambda: 0)
    with engine.subscribe():
        place = log.newest_notice()
        for number in range(10):
            publish(engine, b"%d" % number)
            engine.stats()

        _, forgotten, notices = log.notices_since(place)

    assert (forgotten, [notice.payload for notice in notices]) == (9, [b"9"])


def test_a_subscriber_keeps_so_many_bytes_and_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MAX_QUEUED_NOTICE_BYTES", 10_000)
    log = ListLog(kept=100)
    followers = NoticeHub(log)
    with followers.subscribe(lambda notice: True) as subscription:
        with followers._lock:  # the hub looks away
            log.commits += [[Notice("topic", bytes(1_000))] for _ in range(20)]
            log.commits.append([Notice("topic", bytes(50_000))])

        heard = subscription.poll()

        assert [len(notice.payload) for notice in heard] == [50_000]
        assert subscription.missed == 20
    followers.close()


def test_notices_that_no_subscriber_wants_are_not_kept(engine: Engine) -> None:
    wanted: set[bytes] = set()
    with engine.subscribe(wanted=lambda notice: notice.payload in wanted) as subscription:
        for _ in range(COMMITS_BEFORE_LOG + 10):
            publish(engine, b"unwanted")
        before = stored(engine)  # by the first ones, which went to LMDB one by one
        for _ in range(30):
            publish(engine, b"unwanted")
        assert engine._overlay.notices()[1] == []  # type: ignore[attr-defined]
        assert stored(engine) <= before <= COMMITS_BEFORE_LOG
        assert subscription.poll_own() == []

        wanted.add(b"later")
        publish(engine, b"unwanted")
        publish(engine, b"later")
        assert [notice.payload for notice in subscription.poll_own()] == [b"later"]


def test_a_filter_holds_for_the_commits_of_other_processes(engine: Engine, tmp_path: Path) -> None:
    other = start(publish_when_told, str(tmp_path / "store"))
    assert other.receive() == "open"
    with engine.subscribe(wanted=lambda notice: len(notice.payload) == 2) as subscription:
        for size in (1, 2, 3):
            assert other.ask(size) == "done"

        assert [notice.payload for notice in subscription.poll()] == [bytes(2)]
    other.send(None)
    other.join()
