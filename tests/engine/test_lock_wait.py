"""A store beside a process that was stopped: an error or a warning that names it."""

import fcntl
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from holdfast.engine import lock_wait, open_engine
from holdfast.engine.lmdb import overlay
from holdfast.errors import StoreBusy
from tests.processes import Child, start


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_wait, "STOPPED_PROCESS_SECONDS", 0.1)


def hold(path: str, what: str, connection: Connection) -> None:
    """Opens the store, and is then in the middle of something."""
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]
    durability = "interval" if what == "a checkpoint" else "commit"
    engine = open_engine(path, durability=durability)
    engine.transact(lambda tx: tx.put(b"key", b"value"))
    if what == "a commit to LMDB":
        engine._overlay._release_kept_lease()  # type: ignore[attr-defined]
        txn = engine._env.begin(write=True)  # type: ignore[attr-defined]
        assert txn
    elif what != "the lease":
        name = {"an opening": "opening.lock", "a checkpoint": "checkpoint.lock"}[what]
        fcntl.flock(os.open(f"{path}/{name}", os.O_RDWR), fcntl.LOCK_EX)
    connection.send(os.getpid())
    connection.recv()
    os._exit(0)


@pytest.fixture
def stopped(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[int, Child]:
    child = start(hold, str(tmp_path), request.param)
    pid = child.receive()
    child.stop()
    return pid, child


@pytest.mark.parametrize(
    "stopped", ["an opening", "the lease", "a commit to LMDB", "a checkpoint"], indirect=True
)
def test_opening_beside_a_stopped_process_names_it(
    tmp_path: Path, stopped: tuple[int, Child], request: pytest.FixtureRequest
) -> None:
    pid, child = stopped
    durability = "interval" if "a checkpoint" in request.node.name else "commit"

    with pytest.raises(StoreBusy, match=rf"process {pid} \(.+\) is stopped, and has it locked"):
        open_engine(tmp_path, durability=durability)

    os.kill(pid, signal.SIGCONT)
    child.send("end")
    child.join()
    engine = open_engine(tmp_path, durability=durability)
    with engine.view() as view:
        assert view.get(b"key") == b"value"
    engine.close()


def test_a_transaction_that_waits_for_a_stopped_process_names_it_and_goes_on_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = open_engine(tmp_path)
    child = start(hold_lease, str(tmp_path))
    pid = child.receive()
    child.stop()

    with ThreadPoolExecutor(1) as thread:
        written = thread.submit(engine.transact, lambda tx: tx.put(b"key", b"late"))
        while not caplog.records:
            assert not written.done()
        os.kill(pid, signal.SIGCONT)
        child.send("end")
        written.result()

    [record] = caplog.records
    assert f"process {pid} (" in record.getMessage()
    assert f"kill -CONT {pid}" in record.getMessage()
    child.join()
    engine.close()


def hold_lease(path: str, connection: Connection) -> None:
    """Is in the middle of a commit."""
    engine = open_engine(path)
    engine._files.folder.take_lease(wait=True)  # type: ignore[attr-defined]
    connection.send(os.getpid())
    connection.recv()
    os._exit(0)


def test_a_process_that_runs_and_does_not_let_go_is_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_wait, "MAX_OPENING_SECONDS", 0.2)
    child = start(hold, str(tmp_path), "an opening")
    pid = child.receive()

    with pytest.raises(StoreBusy, match=rf"process {pid} \(.+\) has had it locked"):
        open_engine(tmp_path)

    child.send("end")
    child.join()
