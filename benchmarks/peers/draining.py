"""A worker program drains its queue: each task leaves a byte in a file, whose growth is timed.

The time from the first twentieth of the jobs to the last one counts, so the start of the program
does not. Nothing here needs Holdfast: a peer runs in an environment of its own.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from timing import say

THREADS = "8"
SECONDS = 100  # that a worker may take
ADDRESS = os.environ.get("PEER_URL") or (sys.argv[1:] or [""])[0]


@cache
def _marks() -> int:
    return os.open(os.environ["PEER_MARKS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def mark() -> None:
    """The work of every task: one byte."""
    os.write(_marks(), b".")


def drain(
    package: str, put: Callable[[int], object], command: list[str], *, share: int = 1
) -> None:
    """Puts jobs, lets the worker program run them, and says how many it ran in a second."""
    count = int(sys.argv[2]) // share
    put(count)
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks"
        marks.touch()
        here = str(Path(__file__).parent)
        given = {"PEER_URL": ADDRESS, "PEER_MARKS": str(marks)}
        path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        worker = subprocess.Popen(
            command,
            cwd=here,
            env={**os.environ, **given, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            say(package, drained=_per_second(worker, marks, count))
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def _per_second(worker: "subprocess.Popen[bytes]", marks: Path, count: int) -> float:
    deadline = time.perf_counter() + SECONDS

    def reached(size: int) -> tuple[int, float]:
        while (done := marks.stat().st_size) < size:
            if worker.poll() is not None:
                raise SystemExit(f"the worker ended with {worker.returncode}")
            if time.perf_counter() > deadline:
                raise SystemExit(f"{done} of {count} jobs ran in {SECONDS} seconds")
            time.sleep(0.002)
        return done, time.perf_counter()

    first, begin = reached(max(1, count // 20))
    last, end = reached(count)
    return (last - first) / (end - begin)
