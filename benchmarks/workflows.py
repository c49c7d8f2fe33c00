"""How many durable workflow steps run per second, compared with DBOS?

Run: python -m benchmarks.workflows [--quick]

A step doubles a number; its result is on the disk before the next one begins. Workflows of 50 steps
run one after the other, and eight at a time. Both sides sync each commit: DBOS by default, on a
sqlite3 file and on a PostgreSQL server; Holdfast on a folder and on the same server. DBOS runs in
an environment of its own, under .peers/; if it can't be installed, it is left out with the reason.
"""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.alternatives import SYNCED, Figures, fresh_database, in_rounds, seconds
from benchmarks.environments import Peer
from benchmarks.rounds import reach, report, run_benchmark
from tests.servers import PostgresServer

ON_FOLDER = Peer("Holdfast, on a folder", "workflows_holdfast", ())
ON_POSTGRES = Peer("Holdfast, on PostgreSQL", "workflows_holdfast", ())
DBOS_ON_SQLITE = Peer("DBOS on sqlite3", "workflows_dbos", ("dbos",))
DBOS_ON_POSTGRES = Peer("DBOS on PostgreSQL", "workflows_dbos", ("dbos",))


def main(quick: bool) -> None:
    count, rounds = (400, 3) if quick else (2_000, 5)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        postgres = stack.enter_context(PostgresServer(durable=True))
        contenders: dict[Peer, Callable[[], str]] = {
            ON_FOLDER: partial(fresh_file, folder),
            DBOS_ON_SQLITE: lambda: f"sqlite:///{fresh_file(folder)}",
            ON_POSTGRES: partial(fresh_database, postgres),
            DBOS_ON_POSTGRES: partial(fresh_database, postgres),
        }
        show(in_rounds(contenders, count, rounds, lambda: None))


def show(figures: Figures) -> None:
    for phase, title in (("alone", "one workflow"), ("crowd", "eight workflows at once")):
        each = seconds(figures, phase)
        report(f"A durable step, {title}", each, baseline=ON_FOLDER.name, durability=SYNCED)
    ours = figures[ON_FOLDER.name]
    costs = {name: 1 / ours[phase] for phase, name in (("complete", "complete"), ("alone", "step"))}
    report("A step and a job's `complete`", costs, baseline="complete", durability=SYNCED)
    print("\nReach")
    for our, their in ((ON_FOLDER, DBOS_ON_SQLITE), (ON_POSTGRES, DBOS_ON_POSTGRES)):
        if their.name not in figures:
            continue
        for phase in ("alone", "crowd"):
            ratio = figures[our.name][phase] / figures[their.name][phase]
            reach(f"durable steps, {phase}, vs {their.name}", ratio, 3, at_most=False)
    reach("a step vs a job's `complete`", costs["step"] / costs["complete"], 1.3, at_most=True)


def fresh_file(folder: Path) -> str:
    return tempfile.mktemp(dir=folder)


if __name__ == "__main__":
    run_benchmark(main, file=__file__, doc=__doc__)
