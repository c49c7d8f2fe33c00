"""Contenders in rounds: each runs once in every round, so noise of the machine hits all alike."""

import statistics
import time
from collections.abc import Callable, Mapping

Contender = Callable[[], int]  # does its work and returns how many times it did it


def seconds_each(contenders: Mapping[str, Contender], *, rounds: int) -> dict[str, float]:
    """The median, over `rounds`, of the seconds that one piece of work takes for each contender."""
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            begin = time.perf_counter()
            count = contender()
            figures[name].append((time.perf_counter() - begin) / count)
    return {name: statistics.median(values) for name, values in figures.items()}


def report(title: str, figures: Mapping[str, float], *, beside: str) -> None:
    """Prints microseconds, and the ratio of each to the contender `beside`."""
    print(f"\n{title}")
    for name, seconds in figures.items():
        ratio = seconds / figures[beside]
        print(f"  {name:<44} {seconds * 1e6:10.2f} µs   {ratio:6.2f} x")


def reach(what: str, reached: float, wanted: float, *, at_most: bool) -> bool:
    """Prints a target, what came of it, and whether it is met."""
    met = reached <= wanted if at_most else reached >= wanted
    sign = "at most" if at_most else "at least"
    print(f"  {'met   ' if met else 'MISSED'} {what}: {reached:.2f} ({sign} {wanted:g})")
    return met
