"""The program of a process slot: `python -m holdfast.tasks.child JOBS REPORTS SOURCE DIR`.

JOBS and REPORTS are the file descriptors of two pipes; DIR is the folder for sandboxes. The program
ends when its parent closes the first pipe or is gone. It ignores signals to the process group: the
parent handles them, and hands the job back.
"""

import contextlib
import faulthandler
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from typing import IO, Final

import msgspec

from holdfast.jobs.records import Job
from holdfast.limits import CHILD_REPORT_SECONDS
from holdfast.tasks.execution import Runtime
from holdfast.tasks.loading import WorkerSource
from holdfast.tasks.pipes import receive, send
from holdfast.tasks.run import Run
from holdfast.tasks.worker_log import start_logging

__all__ = ["main"]

_NEED_STORE: Final = frozenset({"run", "tx", "batch"})


def main(words: list[str]) -> None:
    """Runs jobs until the parent closes the pipe."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(name, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)
    jobs, reports = os.fdopen(int(words[0]), "rb"), os.fdopen(int(words[1]), "wb")
    source = msgspec.json.decode(words[2], type=WorkerSource)
    start_logging()
    with contextlib.ExitStack() as opened:
        runtime = Runtime(source.tasks(), None, workdir=words[3])
        opened.callback(runtime.close)
        while (message := receive(jobs)) is not None:
            job = msgspec.convert(message, Job)
            _open_store(runtime, job, source, opened)
            _run(runtime, job, reports)


def _open_store(
    runtime: Runtime, job: Job, source: WorkerSource, opened: contextlib.ExitStack
) -> None:
    """Opens the store for the first task that needs it: a folder is faster while only one process
    has it open."""
    task = runtime.tasks.find(job.klass)
    needs = task is not None and not _NEED_STORE.isdisjoint(task.parameters.kinds)
    if needs and runtime.where is None:
        runtime.use(opened.enter_context(source.open()))


def _run(runtime: Runtime, job: Job, reports: IO[bytes]) -> None:
    attempt = runtime.attempt(job)
    takes_run = attempt.task is not None and "run" in attempt.task.parameters.kinds
    with _reporting(attempt.run, reports) if takes_run else contextlib.nullcontext():
        outcome = attempt.execute()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    report = attempt.report(outcome)
    send(reports, {"report": report, "what": outcome.what, "memory": memory})


@contextlib.contextmanager
def _reporting(run: Run, reports: IO[bytes]) -> Iterator[None]:
    """Passes progress and log lines on to the parent while the block runs."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(CHILD_REPORT_SECONDS):
            unsent = run.take_unsent()
            if unsent:
                send(reports, {"unsent": unsent})

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
