"""Rows as CSV: the same as Python's `csv` writes, however large a cell is."""

import csv
import io
from typing import Any, Final

import pytest

from holdfast.dashboard import page_request
from holdfast.limits import LARGE_PIECE_BYTES

_LARGE: Final = "é" * (LARGE_PIECE_BYTES + 1)
ROWS: Final[list[list[Any]]] = [
    ["a", 1, None, 1.5, True],
    [_LARGE, -1, None, 1e100, False],
    ['"' + _LARGE, "a,b", 'c"d', "e\r\nf", ""],
    [_LARGE + ",", " g ", "\n", "x\r", "'"],
    ["h" * LARGE_PIECE_BYTES, "", "", "", ""],
    ["", None, None, None, None],
]


@pytest.mark.parametrize("header", [["A", "B", "C", "D", "E"], None])
def test_large_cells_are_written_as_any_others(header: list[str] | None) -> None:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerows([*([header] if header else []), *ROWS])

    assert page_request.as_csv(header, ROWS).decode() == written.getvalue()


def test_no_large_cell_goes_through_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    make = csv.writer

    class Writer:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._writer = make(*arguments, **options)

        def writerow(self, cells: list[Any]) -> None:
            sizes.append(sum(len(str(cell)) for cell in cells))
            self._writer.writerow(cells)

    monkeypatch.setattr(csv, "writer", Writer)
    page_request.as_csv(None, ROWS)

    assert max(sizes) <= LARGE_PIECE_BYTES + 100
