"""How many processor instructions does a call take, however busy the machine is?

Run: python -m benchmarks.instructions [NAME ...]

Times vary by a fifth from run to run, and twofold on a shared machine, so they can't show a change
of a twentieth. valgrind counts instructions, exact to a hundredth: one program makes more calls
than another that is otherwise the same, and the difference is what these calls took.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

import holdfast
from benchmarks import row_calls
from benchmarks.events import BATCH, SCHEMA, views
from holdfast import space_runner
from holdfast.engine.lmdb import environment, flusher

CALLS: Final = 400
WARM_UP: Final = 150  # calls, after which the interpreter has specialised its code
DATA: Final = {"to": "ann@example.org", "template": "welcome", "attempt": 1}
Call = Callable[[], object]


def transaction(opened: holdfast.Store) -> Call:
    return lambda: opened.transact(lambda tx: None)


def five_puts(opened: holdfast.Store) -> Call:
    def work(tx: Any) -> None:
        for number in range(5):
            tx.raw.put(tx.raw.space + b"!%d" % number, bytes(100))

    return lambda: opened.transact(work)


def view(opened: holdfast.Store) -> Call:
    def look() -> None:
        with opened.view():
            pass

    return look


def job(opened: holdfast.Store) -> Call:
    """Puts, pops and completes a job, in a transaction each."""
    jobs = opened.jobs

    def cycle() -> None:
        jobs.put("emails", "Email", DATA)
        [popped] = jobs.pop("emails", "worker")
        jobs.complete(popped.id, "worker", lock=popped.lock)

    return cycle


def hit(algorithm: Any) -> Callable[[holdfast.Store], Call]:
    def prepare(opened: holdfast.Store) -> Call:
        limiter = opened.metrics.limiter({"calls": "1000000/minute"}, algorithm=algorithm)
        return lambda: limiter.try_incr("calls", ["user", 7])

    return prepare


def event(opened: holdfast.Store) -> Call:
    """Sends an event on 12 sets and a board, in a transaction of its own."""
    events = prepared_events(opened)
    return lambda: opened.events.send(next(events))


def events(opened: holdfast.Store) -> Call:
    """Sends a batch of 20 such events."""
    events = prepared_events(opened)
    return lambda: opened.events.send_many(list(islice(events, BATCH)))


def prepared_events(opened: holdfast.Store) -> Iterator[dict[str, Any]]:
    """Returns events for a store that has taken some before."""
    opened.events.deploy(SCHEMA)
    stream = (view.as_event() for view in views(1))
    opened.events.send_many(list(islice(stream, 1_000)))
    return stream


def memory(opened: holdfast.Store) -> Call:
    """Hits the in-memory limiter that the strict one is compared with."""
    from limits import parse
    from limits.storage import storage_from_string
    from limits.strategies import MovingWindowRateLimiter

    limiter, item = (
        MovingWindowRateLimiter(storage_from_string("memory://")),
        parse("1000000/minute"),
    )
    return lambda: limiter.hit(item, "calls", "7")


CONTENDERS: Final[dict[str, Callable[[holdfast.Store], Call]]] = {
    "transaction": transaction,
    "five_puts": five_puts,
    "view": view,
    "job": job,
    "strict": hit("strict"),
    "estimate": hit("estimate"),
    "gcra": hit("gcra"),
    "limits_in_memory": memory,
    "event": event,
    "events": events,
    **row_calls.CONTENDERS,
}
FEWER_CALLS: Final = {"events": (20, 5)}  # calls, and how many come before them


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.instructions", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"some of {', '.join(CONTENDERS)}; else all"
    )
    parser.add_argument(
        "--calls", type=int, help=argparse.SUPPRESS
    )  # of the program that is counted
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in CONTENDERS]
    if unknown:
        parser.error(f"no contender is called {unknown[0]}; there are {', '.join(CONTENDERS)}")
    if options.calls is not None:
        run(options.names[0], options.calls)
    elif shutil.which("valgrind") is None:
        sys.exit("valgrind counts the instructions, and is not installed: apt install valgrind")
    else:
        for name in options.names or CONTENDERS:
            print(f"{name:<20} {count(name):>10,} instructions", flush=True)


def count(name: str) -> int:
    calls, _ = FEWER_CALLS.get(name, (CALLS, WARM_UP))
    # Run once without counting: the first run compiles the modules that have changed.
    subprocess.run(program(name, 0), check=True)
    return (counted(name, calls) - counted(name, 0)) // calls


def counted(name: str, calls: int) -> int:
    """Returns all instructions of a program that makes `calls` calls."""
    counted_program = program(name, calls)
    valgrind = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
    ]
    done = subprocess.run(
        [*valgrind, *counted_program],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"I +refs: +([\d,]+)", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"{' '.join(counted_program)} failed:\n{done.stderr}")
    return int(found[1].replace(",", ""))


def program(name: str, calls: int) -> list[str]:
    return [sys.executable, "-m", "benchmarks.instructions", name, "--calls", str(calls)]


def run(name: str, calls: int) -> None:
    be_quiet()
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        holdfast.open(folder, durability="interval", checkpoint_seconds=3600) as opened,
    ):
        call = CONTENDERS[name](opened)
        _, warm_up = FEWER_CALLS.get(name, (CALLS, WARM_UP))
        for _ in range(warm_up + calls):
            call()


def be_quiet() -> None:
    """Disables what a clock starts, because valgrind makes everything fifty times slower, and
    makes LMDB's map smaller, because valgrind has no address space for a large one."""
    for module, name, value in (
        (flusher, "FLUSH_SECONDS", 3600),
        (space_runner, "EXPIRY_CHECK_SECONDS", 3600),
        (environment, "MAP_BYTES", 2**30),
    ):
        assert hasattr(module, name), f"{name} is not in {module.__name__} any more"
        setattr(module, name, value)


if __name__ == "__main__":
    main()
