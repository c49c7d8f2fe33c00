"""Tasks that tests run in processes of their own."""

import logging
import os
import signal
import threading
from pathlib import Path

from holdfast.tasks import Run, Tasks, Tx

tasks = Tasks("sample", queue="sample")
others = Tasks("others", queue="others")


@tasks.task
def pid() -> int:
    return os.getpid()


@tasks.task
def double(number: int) -> int:
    return 2 * number


@tasks.task
def count(tx: Tx, by: int) -> None:
    tx.metrics.incr("done", value=by)


@tasks.task
def tell(run: Run, started: str) -> str:
    run.log("info", "half of it")
    run.progress(0.5, "half")
    Path(started).touch()
    _wait_for(Path(started).with_suffix(".go"))
    return run.job.worker


@tasks.task(retries=1)
def die(marks: str) -> None:
    with Path(marks).open("a") as file:
        file.write(f"{os.getpid()}\n")
    os.kill(os.getpid(), signal.SIGKILL)


@tasks.task(retries=0, timeout=0.5)
def hang(started: str) -> None:
    Path(started).touch()
    threading.Event().wait()


@tasks.task
def wait(started: str) -> None:
    Path(started).touch()
    _wait_for(Path(started).with_suffix(".go"))


@tasks.task(retries=0)
def litter(run: Run, told: str) -> None:
    (run.sandbox / "half").write_text("of it")
    Path(told).write_text(str(run.sandbox))
    os.kill(os.getpid(), signal.SIGKILL)


@tasks.task
def say(words: str) -> None:
    logging.getLogger("shop.orders").info("%s", words)
    logging.getLogger("valkey").info("a connection was made")


@others.task
def other() -> None: ...


def _wait_for(path: Path) -> None:
    pause = threading.Event()
    while not path.exists():
        pause.wait(0.01)
