"""Draws small charts as text: a line of blocks for a series, a bar for each entry of a ranking."""

import sys
from collections.abc import Sequence
from typing import Any, Final

from holdfast.cli.output import Output, cell_text, cell_width, terminal_width

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_BAR_COLUMNS: Final = 30
_MIN_BAR_COLUMNS: Final = 8  # shorter bars could not be told apart


def sparkline(values: Sequence[float | None]) -> str:
    """Returns one block for each value, as high as its share of the highest; a blank where it is
    unknown.

    >>> sparkline([0, 1, 2, 4]), sparkline([3, None, 3]), sparkline([0, 0])
    ('▁▃▅█', '█ █', '▁▁')
    """
    top = max((value for value in values if value is not None), default=0)
    return "".join(" " if value is None else _block(value, top) for value in values)


def _block(value: float, top: float) -> str:
    part = value / top if top > 0 else 0.0
    return _BLOCKS[max(0, min(len(_BLOCKS) - 1, round(part * (len(_BLOCKS) - 1))))]


def bar(value: float, top: float, columns: int = _BAR_COLUMNS) -> str:
    """Returns a bar whose length is the value's share of the longest.

    >>> bar(15, 30), bar(1, 1_000), bar(0, 5), bar(15, 30, columns=4)
    ('███████████████', '█', '', '██')
    """
    if value <= 0 or top <= 0:
        return ""
    return "█" * max(1, round(value / top * columns))


def ranking(
    out: Output, heads: Sequence[str], rows: Sequence[tuple[Any, float]], *, empty: str = ""
) -> None:
    """Prints names with their numbers, and on a terminal that is wide enough a bar for each.

    Without rows, prints the remark `empty`.
    """
    top = max((number for _, number in rows), default=0)
    names, numbers = zip(heads, *rows, strict=True)
    widths = [max(cell_width(cell_text(each)) for each in column) for column in (names, numbers)]
    columns = min(_BAR_COLUMNS, terminal_width() - sum(widths) - 2 * len(widths))
    if not sys.stdout.isatty() or columns < _MIN_BAR_COLUMNS:
        out.table(heads, rows, empty=empty)
        return
    out.table(
        (*heads, ""),
        [(name, number, bar(number, top, columns)) for name, number in rows],
        empty=empty,
    )


def series(out: Output, heads: Sequence[str], rows: Sequence[tuple[str, float | None]]) -> None:
    """Prints steps with their numbers, and on a terminal a line of blocks above them."""
    if sys.stdout.isatty() and rows:
        width = max(1, terminal_width())
        line = sparkline([value for _, value in rows])
        for begin in range(0, len(line), width):
            out.say(line[begin : begin + width])
    out.table(heads, rows)
