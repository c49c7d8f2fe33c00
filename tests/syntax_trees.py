"""Syntax trees of the package's modules, for tests of what the source may say."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path


def trees_with(paths: Iterable[Path], words: Iterable[str]) -> Iterator[tuple[Path, ast.Module]]:
    """Returns the trees of the modules whose text has one of `words`: those of all modules would
    take four seconds."""
    wanted = tuple(words)
    for path in paths:
        text = path.read_text()
        if any(word in text for word in wanted):
            yield path, ast.parse(text)


def quoted(names: Iterable[str]) -> list[str]:
    """Returns names as the source writes them in a constant."""
    return [f"{mark}{name}{mark}" for name in names for mark in "\"'"]
