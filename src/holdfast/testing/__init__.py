"""Helpers for your tests: a temporary store or server, a clock, objects of models, a crash.

With pytest, the fixtures `holdfast_store` and `holdfast_clock` give the same without an import.
`holdfast.testing.strategies` has strategies for hypothesis.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import holdfast
from holdfast.engine.contract import Engine, Outcome, Transaction
from holdfast.store import Store
from holdfast.testing.factories import BEGINNING, Factory, sequence

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.store import Space
    from holdfast.tasks import Tasks
    from holdfast.tasks.inline import Ran

__all__ = [
    "Clock",
    "Factory",
    "crash_at_write",
    "run_tasks",
    "sequence",
    "temporary_server",
    "temporary_store",
]

T = TypeVar("T")


class Clock:
    """A clock that stays still until it is advanced.

    >>> clock = Clock(1_000)
    >>> clock.advance(seconds=0.5)
    >>> clock()
    1000.5
    """

    def __init__(self, now: float = BEGINNING) -> None:
        self._now = float(now)

    def __call__(self) -> float:
        return self._now

    def advance(self, *, seconds: float) -> None:
        """Moves the clock forward, or back if `seconds` is negative."""
        self._now += seconds

    def set(self, now: float) -> None:
        """Sets the clock to `now`, in seconds since 1970."""
        self._now = float(now)


@contextmanager
def temporary_store(*, clock: Callable[[], float] | None = None, **options: Any) -> Iterator[Store]:
    """Opens a store in a temporary folder, which is deleted after the block.

    Its clock stays still unless you give another. Its durability is "interval", which is faster
    and is enough for a store that is deleted.

    >>> with temporary_store() as store:
    ...     store.name
    'default'
    """
    options.setdefault("durability", "interval")
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-") as folder,
        holdfast.open(folder, clock=clock or Clock(), **options) as store,
    ):
        yield store


@contextmanager
def temporary_server(*options: str) -> Iterator[str]:
    """Runs `holdfast serve` on a free port and an empty store, and returns its URL for a `with`
    block.

    `options` are those of the command line. Server and store are gone after the block.

    >>> with temporary_server() as url, holdfast.connect(url) as client:
    ...     client.jobs.put("emails", id="welcome")
    'welcome'
    """
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-") as folder,
        (Path(folder) / "log").open("w+") as log,
    ):
        command = [sys.executable, "-m", "holdfast", "serve", "--data", f"{folder}/data"]
        command += ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--durability", "interval"]
        # Whatever folder this program runs in, the server is of the same Holdfast.
        paths = [str(Path(holdfast.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with subprocess.Popen(
            [*command, *options], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server:
            assert server.stdout is not None
            try:
                found = re.search(r"Redis clients on (\S+)", server.stdout.readline())
                if found is None:
                    log.seek(0)
                    raise RuntimeError(f"the server did not start: {log.read()}")
                yield f"holdfast://{found[1]}"
            finally:
                server.terminate()
                server.communicate()


def run_tasks(
    store: "Space | ClientSpace", tasks: "Tasks", *, keep_failures: bool = False
) -> "list[Ran]":
    """Runs all jobs of the tasks' queues that are due, here and in order; returns what ran.

    >>> from holdfast.tasks import Tasks
    >>> tasks = Tasks()
    >>> @tasks.task(name="double")
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> with temporary_store() as store:
    ...     job = double.put(store, 21)
    ...     [ran] = run_tasks(store, tasks)
    ...     ran.task, job.result()
    ('double', 42)

    Jobs that are put meanwhile run too. Jobs that wait for a later time are left: advance the clock
    and call it again. An exception of a task is raised as it is, after its job was settled; with
    `keep_failures` it is kept with the run, and the next job runs.
    """
    from holdfast.tasks import inline

    return inline.run_tasks(store, tasks, keep_failures=keep_failures)


def crash_at_write(
    path: str | Path,
    work: Callable[[Store], object],
    *,
    n: int,
    timeout_seconds: float = 60,
    **options: Any,
) -> bool:
    """Runs `work(store)` in a child process, kills it at its n-th write, returns whether it did.

    The child opens the store at `path` by itself and dies by SIGKILL in the middle of whatever
    transaction makes the n-th write of `work` (counted from 1). With fewer writes `work` ends by
    itself and the result is False. Open the store afterwards and check what it contains. `work`
    must be importable, as for any new process; if it fails or takes longer than `timeout_seconds`,
    this function raises RuntimeError.
    """
    child = get_context("spawn").Process(target=_run_and_crash, args=(path, work, n, options))
    child.start()
    child.join(timeout_seconds)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise RuntimeError(f"the child was not done after {timeout_seconds} seconds")
    if child.exitcode == -signal.SIGKILL:
        return True
    if child.exitcode != 0:
        raise RuntimeError(f"the child ended with {child.exitcode} before its write number {n}")
    return False


def _run_and_crash(
    path: str | Path, work: Callable[[Store], object], n: int, options: dict[str, Any]
) -> None:
    with holdfast.open(path, **options) as store:
        engine: Any = _CrashingEngine(store.engine, n)
        work(Store(engine))


class _CrashingEngine:
    """An engine that kills its own process at the n-th write of all its transactions."""

    def __init__(self, engine: Engine, n: int) -> None:
        self._engine = engine
        self._left = n

    def before_write(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def transact(self, work: Callable[[Any], T], *, space: bytes = b"", kind: str = "") -> T:
        return self._engine.transact(self._counted(work), space=space, kind=kind)

    def transact_many(
        self, works: Sequence[Callable[[Any], Any]], *, spaces: Sequence[bytes] | None = None
    ) -> list[Outcome[Any]]:
        return self._engine.transact_many([self._counted(work) for work in works], spaces=spaces)

    def try_transact_many(
        self, works: Sequence[Callable[[Any], Any]], *, spaces: Sequence[bytes]
    ) -> list[Outcome[Any]] | None:
        return None

    @contextmanager
    def transaction(self, *, space: bytes = b"") -> Iterator["_CountedTransaction"]:
        with self._engine.transaction(space=space) as tx:
            yield _CountedTransaction(tx, self.before_write)

    def _counted(self, work: Callable[[Any], T]) -> Callable[[Transaction], T]:
        return lambda tx: work(_CountedTransaction(tx, self.before_write))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _CountedTransaction:
    """A transaction that reports each write before it makes it."""

    def __init__(self, tx: Transaction, before_write: Callable[[], None]) -> None:
        self._tx = tx
        self._before_write = before_write

    def put(self, key: bytes, value: bytes) -> None:
        self._before_write()
        self._tx.put(key, value)

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        for key, value in pairs.items():
            self.put(key, value)

    def delete(self, key: bytes) -> None:
        self._before_write()
        self._tx.delete(key)

    def clear(self, begin: bytes, end: bytes) -> None:
        self._before_write()
        self._tx.clear(begin, end)

    def add(self, key: bytes, delta: int) -> None:
        self._before_write()
        self._tx.add(key, delta)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)
