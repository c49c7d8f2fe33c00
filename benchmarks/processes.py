"""How fast are several processes on one folder, compared with one process and with sqlite3?

Run: python -m benchmarks.processes [--quick]

Each process has a queue of its own, and puts, pops and completes one job after the other. A
contender is opened only by the processes that work, because an open store costs something too.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.engine_peers import together
from benchmarks.rounds import reach, report, run_benchmark

PROGRAM = Path(__file__).parent / "peers" / "folder_client.py"
COUNTS = (1, 2, 4)
SYNCED, NOT_SYNCED = "fsync before each reply", "a checkpoint every second"
PEERS = {"holdfast commit": "sqlite FULL", "holdfast interval": "sqlite NORMAL"}
NAMES = {
    "holdfast commit": "Holdfast, commit",
    "sqlite FULL": "sqlite3 in WAL mode, FULL",
    "holdfast interval": "Holdfast, interval",
    "sqlite NORMAL": "sqlite3 in WAL mode, NORMAL",
}
REASON = "each commit takes the lease from another process, and reads what that one has appended"
DURABILITY = {"commit": SYNCED, "FULL": SYNCED, "interval": NOT_SYNCED, "NORMAL": "at checkpoints"}


def main(quick: bool) -> None:
    rounds, seconds = (3, 0.8) if quick else (9, 1.5)
    rates: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        for turn in range(rounds):
            for count in COUNTS:
                for contender in NAMES:
                    path = Path(folder) / f"{contender}-{count}-{turn}"
                    rate = measured(contender, path, count, seconds)
                    rates.setdefault((contender, count), []).append(rate)
    middle = {key: median(found) for key, found in rates.items()}
    show(middle)


def show(rates: dict[tuple[str, int], float]) -> None:
    for count in COUNTS:
        figures = {NAMES[name]: 1 / rates[name, count] for name in NAMES}
        title = f"put+pop+complete, {count} process{'es' if count > 1 else ''}"
        report(title, figures, baseline=NAMES["sqlite FULL"], durability=DURABILITY)
    print("\nReach")
    alone, most = rates["holdfast commit", 1], rates["holdfast commit", COUNTS[-1]]
    reach("4 processes vs one, synced", most / alone, 0.9, at_most=False, reason=REASON)
    for ours, theirs in PEERS.items():
        for count in COUNTS[1:]:
            ratio = rates[ours, count] / rates[theirs, count]
            what = f"{NAMES[ours]} vs {NAMES[theirs]}, {count} processes"
            wanted = 1.0 if "commit" in ours else 0.8
            reach(what, ratio, wanted, at_most=False, reason=REASON)


def measured(contender: str, path: Path, count: int, seconds: float) -> float:
    """Returns the cycles a second of `count` processes together."""
    running: list[subprocess.Popen[str]] = []
    try:
        for number in range(count):  # in turn: the first one creates what the others use
            running.append(started(contender, path, number))
        list(together(running, seconds / 4))  # the first commits of a process are not typical
        return sum(together(running, seconds)) / seconds
    finally:
        for process in running:
            process.kill()
            process.communicate()


def started(contender: str, path: Path, number: int) -> "subprocess.Popen[str]":
    command = [sys.executable, str(PROGRAM), contender, str(path), str(number)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", contender
    return process


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
