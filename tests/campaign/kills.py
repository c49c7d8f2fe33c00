"""Kill matrix.

Three clients place orders, each one transaction over all five layers, and processes are killed with
SIGKILL at random moments: the server, the processes that share a folder, PostgreSQL, Valkey, a
primary of a cluster, the clients themselves. In other cells of the matrix a backup, an index build,
the drop of a space, a copy or a restore goes on meanwhile, and is killed too. A ledger outside of
the store notes every acknowledgement; a counter in the same transaction shows what was applied
twice. At the end of a cell everything that was acknowledged must be there once, all five layers
must agree, the store's own checks must find nothing, and what the killed action has left must be
whole or finish when it is run again.
"""

import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from itertools import count, product
from pathlib import Path
from typing import Final, NamedTuple

import holdfast
from tests.campaign import orders
from tests.campaign.actions import ACTIONS, TARGETS, Done, Site, act_without_end
from tests.campaign.frame import Result
from tests.campaign.load import Load
from tests.campaign.setups import DURABILITIES, SETUPS, Setup, running
from tests.processes import Child, start

_NUMBERS: Final = count()
CELL_SECONDS: Final = 2.0  # of kills, at least
FIRST_ORDERS: Final = 5  # of each client before the first kill
MAX_ORDERS_BETWEEN_KILLS: Final = 12  # of each client


class Cell(NamedTuple):
    """One cell of the matrix."""

    setup: str
    durability: str
    action: str

    def __str__(self) -> str:
        return f"{self.setup}, {self.durability}, {self.action}"


MATRIX: Final = [Cell(*cell) for cell in product(SETUPS, DURABILITIES, ACTIONS)]


def run(random: random.Random, seconds: float) -> Result:
    """Attacks the cells of the matrix in a random order, as many as there is time for."""
    cells = list(MATRIX)
    random.shuffle(cells)
    return run_cells(cells, random, seconds)


def run_rest(left: Iterable[str], random: random.Random, seconds: float) -> Result:
    """Attacks the cells that another run has left."""
    wanted = set(left)
    return run_cells([cell for cell in MATRIX if str(cell) in wanted], random, seconds)


def run_cells(cells: Iterable[Cell], chance: random.Random, seconds: float) -> Result:
    """Attacks some cells; those of the same setup and durability share their servers and their
    time. At least one of them is attacked, all if there is time; the result names the others."""
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.setup, cell.durability), []).append(cell)
    figures: dict[str, Counter[str]] = {}
    broken: list[str] = []
    left: list[str] = []
    for (name, durability), row in rows.items():
        end = time.monotonic() + seconds / len(rows)
        share = max(seconds / len(rows) / len(row) / 2, CELL_SECONDS)  # half of it to look back
        counts = figures[f"{name}, {durability}"] = Counter()
        with running(name, durability) as setup:
            for number, cell in enumerate(row, 1):
                found, sentences = attack(setup, cell, chance, share)
                counts.update(found)
                counts["cells"] += 1
                broken += [f"{cell}: {sentence}" for sentence in sentences]
                if time.monotonic() > end:
                    left += map(str, row[number:])
                    break
    total = sum(figures.values(), Counter[str]())
    return Result(
        tried=_ordered(total),
        broken=broken,
        rows={name: _ordered(figures[name]) for name in sorted(figures)},
        left=left,
    )


def _ordered(figures: Counter[str]) -> dict[str, int]:
    return {name: figures[name] for name in ("cells", "kills", "acknowledged", "lost", "doubled")}


def attack(
    setup: Setup, cell: Cell, chance: random.Random, seconds: float
) -> tuple[Counter[str], list[str]]:
    """Kills for some seconds, and then looks at what is there."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-campaign-"))
    name = f"cell-{next(_NUMBERS)}"
    try:
        return _Attack(setup, cell, chance, folder, name).run(seconds)
    except AssertionError as error:
        return Counter(), [str(error)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Attack:
    """One cell under attack."""

    def __init__(
        self, setup: Setup, cell: Cell, chance: random.Random, folder: Path, name: str
    ) -> None:
        self._setup, self._chance = setup, chance
        self._name = cell.action
        self._action = ACTIONS[cell.action]
        self._figures: Counter[str] = Counter()
        self._excused: list[tuple[float, float]] = []
        url = setup.fresh(name)
        with holdfast.open(url, durability=setup.durability) as store:  # type: ignore[arg-type]  # one of two words
            orders.prepare(store)
        needs_targets = cell.action in ("copy", "restore") and not url.startswith("lmdb:")
        targets = [setup.fresh(f"{name}-{n}") for n in range(TARGETS)] if needs_targets else []
        self._site = Site(
            place=setup.begin(url, folder),
            url=url,
            durability=setup.durability,
            folder=folder,
            targets=targets,
        )

    def run(self, seconds: float) -> tuple[Counter[str], list[str]]:
        load = Load(self._site.place)
        doing: _Doing | None = None
        try:
            load.await_progress(FIRST_ORDERS)
            self._action.prepare(self._site)
            doing = _Doing(self._name, self._site) if self._name != "load" else None
            end = time.monotonic() + seconds
            while True:
                self._kill(load, doing)
                load.await_progress(self._chance.randint(1, MAX_ORDERS_BETWEEN_KILLS))
                if time.monotonic() >= end:
                    break
            if doing is not None:
                doing.kill()
                self._figures["kills"] += 1
            acknowledged = load.end()
        except BaseException:
            load.abandon()
            if doing is not None:
                doing.kill()
            raise
        finally:
            self._setup.end()
        return self._figures, self._judge(acknowledged, doing)

    def _kill(self, load: Load, doing: "_Doing | None") -> None:
        if doing is not None and self._chance.random() < 0.5:
            doing.kill()
            doing.start()
            self._figures["kills"] += 1
        excused = self._setup.crash(load, self._chance)
        if excused is not None:
            self._excused.append(excused)
        self._figures["kills"] += 1

    def _judge(self, acknowledged: dict[str, float], doing: "_Doing | None") -> list[str]:
        due = {
            mark: at
            for mark, at in acknowledged.items()
            if not any(begin <= at <= end for begin, end in self._excused)
        }
        problems: list[str] = []
        if doing is not None:
            problems += self._action.problems(self._site, doing.begun, doing.done, due)
        with holdfast.open(self._site.url, durability=self._setup.durability) as store:  # type: ignore[arg-type]  # one of two words
            found = orders.audit(store)
        lost = due.keys() - found.marks
        self._figures["acknowledged"] += len(acknowledged)
        self._figures["lost"] += len(lost)
        self._figures["doubled"] += found.doubled
        problems += found.problems
        if lost:
            problems.append(f"{len(lost)} acknowledged orders are lost, such as {min(lost)}")
        if found.doubled:
            problems.append(f"{found.doubled} orders were placed twice")
        return problems


class _Doing:
    """The process that runs an action, and what it has reported."""

    def __init__(self, name: str, site: Site) -> None:
        self._name, self._site = name, site
        self.begun: list[int] = []
        self.done: list[Done] = []
        self.start()

    def start(self) -> None:
        first = self.begun[-1] + 1 if self.begun else 0
        self._child: Child = start(act_without_end, self._name, self._site, first)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while True:
                number, begun, result = self._child.receive()
                if result is False:
                    self.begun.append(number)
                elif result is True:
                    self.done.append(Done(number, begun))
        except (EOFError, ConnectionResetError):
            pass

    def kill(self) -> None:
        self._child.kill()
        self._reader.join()
