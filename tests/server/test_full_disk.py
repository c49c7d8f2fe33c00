"""A server on a full disk: it says that it is not ready, lets things be deleted, and recovers."""

import resource
import time
from pathlib import Path

import holdfast
from tests.server.running import DEADLINE
from tests.server.serving import serving


def test_readiness_tells_of_a_full_disk_and_of_its_end(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        assert server.get("/readyz").status == 200
        pid = server.process.pid

        # No file may grow: to the server, a disk that is full.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        answer = server.get("/readyz")
        assert (answer.status, b"no space left" in answer.body) == (503, True)
        assert server.get("/livez").status == 200

        resource.prlimit(
            pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
        assert server.get("/readyz").status == 200


def test_a_full_disk_is_ready_again_once_enough_was_deleted(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        for number in range(4):
            server.call("jobs.put", queue="q", id=f"large-{number}", data="x" * 1_000_000)
        assert server.get("/metrics").status == 200  # which writes all commits to the file
        size = (tmp_path / "data" / "data.mdb").stat().st_size
        limits = (size + 600_000, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        assert server.get("/readyz").status == 503

        for number in range(4):
            assert server.call("jobs.cancel", ids=[f"large-{number}"]).status == 200

        deadline = time.monotonic() + DEADLINE
        while server.get("/readyz").status != 200:
            assert time.monotonic() < deadline
        assert server.call("jobs.put", queue="q", data="x" * 500_000).status == 200


def test_a_server_that_checks_a_damaged_store_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
            for number in range(300):
                client.jobs.put("emails", data="x" * 500, id=f"job-{number}")
        _damage(tmp_path / "data" / "data.mdb")
        with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
            problems = client.admin.check_engine()

        assert any("is damaged" in problem for problem in problems)
        assert server.get("/livez").status == 200


def _damage(file: Path) -> None:
    """Overwrites leaves with many keys, as soon as what was committed has reached the file."""
    deadline = time.monotonic() + DEADLINE
    while not (places := _full_leaves(file.read_bytes())):
        assert time.monotonic() < deadline
    with file.open("r+b") as opened:
        for place in places:
            opened.seek(place)
            opened.write(bytes(4096))


def _full_leaves(pages: bytes) -> list[int]:
    return [
        place
        for place in range(2 * 4096, len(pages), 4096)
        if pages[place + 10] == 2 and pages[place + 12] > 30
    ]
