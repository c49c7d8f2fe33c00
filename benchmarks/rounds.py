"""Runs contenders in rounds, and reports the results of every benchmark in the same form.

Each contender runs once in every round, so noise of the machine affects all of them. What is
printed is also recorded: `--json FILE` keeps it for the page that `python -m benchmarks` writes.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

Contender = Callable[[], int]  # does its work and returns how often


class Line(msgspec.Struct, frozen=True):
    """The times of one contender, and how safe its writes are when it returns."""

    name: str
    microseconds: float
    durability: str = ""


class Table(msgspec.Struct, frozen=True):
    """Contenders that did the same work."""

    title: str
    baseline: str  # the contender that the others are compared with
    lines: list[Line]


class Target(msgspec.Struct, frozen=True):
    """A target of the project, and the measured result."""

    what: str
    reached: float
    wanted: float
    at_most: bool
    reason: str = ""  # why it is missed, as far as we know

    @property
    def met(self) -> bool:
        return self.reached <= self.wanted if self.at_most else self.reached >= self.wanted

    def __str__(self) -> str:
        sign = "at most" if self.at_most else "at least"
        return f"{self.what}: {self.reached:.2f} ({sign} {self.wanted:g})"


class Book(msgspec.Struct):
    """The results of one benchmark."""

    name: str = ""
    question: str = ""
    seconds: float = 0.0
    tables: list[Table] = []
    targets: list[Target] = []
    facts: dict[str, str] = {}  # other than times: memory, sizes
    skipped: dict[str, str] = {}  # contenders that could not take part, and why


BOOK: Final = Book()


def run_benchmark(
    main: Callable[..., None], *, file: str, doc: str | None, keeps_data: bool = False
) -> None:
    """Runs a benchmark as a program; `main` is told whether it should be quick.

    With `keeps_data`, `main` also gets a folder for the store that it fills, or None.
    """
    BOOK.name = Path(file).stem
    BOOK.question = (doc or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{BOOK.name}", description=doc)
    parser.add_argument("--quick", action="store_true", help="smaller stores and fewer rounds")
    parser.add_argument("--json", type=Path, help="write the figures into a file as well")
    if keeps_data:
        parser.add_argument("--data", type=Path, help="keep the store here, or use one that is")
    options = parser.parse_args()
    begin = time.perf_counter()
    main(options.quick, *([options.data] if keeps_data else []))
    BOOK.seconds = time.perf_counter() - begin
    if options.json is not None:
        options.json.write_bytes(msgspec.json.encode(BOOK))


def seconds_each(contenders: Mapping[str, Contender], *, rounds: int) -> dict[str, float]:
    """Returns the median, over `rounds`, of each contender's seconds for one piece of work."""
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            begin = time.perf_counter()
            count = contender()
            figures[name].append((time.perf_counter() - begin) / count)
    return {name: statistics.median(values) for name, values in figures.items()}


def report(
    title: str,
    figures: Mapping[str, float],
    *,
    baseline: str,
    durability: Mapping[str, str] | str = "",
) -> None:
    """Prints microseconds, the ratio of each to the contender `baseline`, and how durable it is.

    `durability` is one text for all, or texts by a part of the contender's name.
    """
    print(f"\n{title}")
    table = keep(title, figures, durability, baseline=baseline)
    for line in table.lines:
        ratio = line.microseconds / (figures[baseline] * 1e6)
        figure = f"{line.microseconds:10.2f} µs   {ratio:6.2f} x"
        print(f"  {line.name:<44} {figure}   {line.durability}".rstrip())
    sys.stdout.flush()


def keep(
    title: str,
    figures: Mapping[str, float],
    durability: Mapping[str, str] | str = "",
    *,
    baseline: str = "",
) -> Table:
    """Records figures that are printed in another form."""
    lines = []
    for name, seconds in figures.items():
        kept = durability if isinstance(durability, str) else _chosen(durability, name)
        lines.append(Line(name, seconds * 1e6, kept))
    table = Table(title, baseline or next(iter(figures)), lines)
    BOOK.tables.append(table)
    return table


def reach(what: str, reached: float, wanted: float, *, at_most: bool, reason: str = "") -> bool:
    """Prints a target, the result, and whether the target is met."""
    target = Target(what, reached, wanted, at_most, reason)
    BOOK.targets.append(target)
    print(f"  {'met   ' if target.met else 'MISSED'} {target}")
    return target.met


def fact(name: str, figure: str) -> None:
    """Prints and records a figure that is not a time."""
    BOOK.facts[name] = figure
    print(f"  {name}: {figure}")


def skip(contender: str, reason: str) -> None:
    """Prints and records that a contender could not take part."""
    BOOK.skipped[contender] = reason
    print(f"  {contender} is left out: {reason}")


def _chosen(durability: Mapping[str, str], name: str) -> str:
    found = [kept for part, kept in durability.items() if part in name]
    return found[0] if found else ""
