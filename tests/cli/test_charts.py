"""Small charts of text, on terminals of all widths."""

import sys

import pytest

from holdfast.cli import charts, output
from holdfast.cli.output import Output

ROWS = [("a name of 20 letters", 1_000.0), ("b", 10.0)]


def rank_on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for module in (charts, output):
        monkeypatch.setattr(module, "terminal_width", lambda: columns)
    charts.ranking(Output(is_json=False), ("value", "count"), ROWS)


@pytest.mark.parametrize(("columns", "bar"), [(120, 30), (60, 30), (50, 21)])
def test_bars_are_as_long_as_the_terminal_allows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, bar: int
) -> None:
    rank_on_terminal(monkeypatch, columns)

    lines = capsys.readouterr().out.splitlines()

    assert lines[2] == f"a name of 20 letters  1,000  {'█' * bar}"
    assert lines[3].endswith(" █")
    assert max(map(len, lines[1:])) <= columns


def test_a_terminal_that_is_too_narrow_for_bars_shows_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_on_terminal(monkeypatch, 30)

    shown = capsys.readouterr().out

    assert "█" not in shown
    assert "1,000" in shown


def test_nothing_to_rank_is_an_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    charts.ranking(Output(is_json=False), ("value", "count"), [])

    assert capsys.readouterr().out == "value  count\n"
