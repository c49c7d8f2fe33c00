"""Job cycles on one folder or file: the program of one of several processes.

Run by benchmarks.processes, which writes seconds to its input and reads from its output how many
cycles it made in them.
"""

import sqlite3
import sys
import time
from collections.abc import Callable

import holdfast

DATA = {"to": "ann@example.org", "template": "welcome", "attempt": 1}


def holdfast_cycle(durability: str, path: str, queue: str) -> Callable[[], None]:
    """Returns a job's put, pop and completion: three transactions, with history and statistics."""
    interval = durability == "interval"
    jobs = holdfast.open(path, durability="interval" if interval else "commit").jobs

    def cycle() -> None:
        jobs.put(queue, "klass", DATA)
        [job] = jobs.pop(queue, "worker")
        jobs.complete(job.id, "worker", lock=job.lock)

    return cycle


def sqlite_cycle(synchronous: str, path: str, queue: str) -> Callable[[], None]:
    """Returns three such transactions on a bare table, without history or statistics."""
    db = sqlite3.connect(path, isolation_level=None, timeout=60)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute(
        "CREATE TABLE IF NOT EXISTS jobs "
        "(id INTEGER PRIMARY KEY, queue TEXT, state TEXT, worker TEXT, data TEXT)"
    )
    db.execute("CREATE INDEX IF NOT EXISTS waiting ON jobs (queue, state, id)")

    def cycle() -> None:
        db.execute(
            "INSERT INTO jobs (queue, state, data) VALUES (?, 'waiting', ?)", (queue, str(DATA))
        )
        [(job,)] = db.execute(
            "UPDATE jobs SET state = 'running', worker = 'worker' WHERE id = (SELECT id FROM jobs "
            "WHERE queue = ? AND state = 'waiting' ORDER BY id LIMIT 1) RETURNING id",
            (queue,),
        ).fetchall()
        db.execute("UPDATE jobs SET state = 'complete' WHERE id = ?", (job,))

    return cycle


def main(contender: str, path: str, number: str) -> None:
    kind, _, durability = contender.partition(" ")
    make = holdfast_cycle if kind == "holdfast" else sqlite_cycle
    cycle = make(durability, path, f"queue-{number}")
    print("ready", flush=True)
    for line in sys.stdin:
        count, end = 0, time.perf_counter() + float(line)
        while time.perf_counter() < end:
            cycle()
            count += 1
        print(count, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
