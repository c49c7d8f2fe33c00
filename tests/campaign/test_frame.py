"""The page of the campaign is made from its results, and no part of it is forgotten."""

import importlib
import re
from datetime import date
from pathlib import Path

from tests.campaign.__main__ import PARTS
from tests.campaign.frame import Result
from tests.campaign.report import PAGE, Run, Versions, kept, page

FOLDER = Path(__file__).parent
ON = Versions(machine="a machine", software="Holdfast 1")


def run_of(part: str, result: Result) -> Run:
    return Run(
        part=part,
        about=f"Kills of {part}.\n\nEverything is killed.",
        seed=7,
        seconds=90,
        date=date(2026, 1, 2),
        on=ON,
        result=result,
    )


def test_what_was_broken_is_above_what_held() -> None:
    runs = {
        "good": run_of("good", Result(tried={"kills": 1_000, "lost": 0})),
        "bad": run_of("bad", Result(tried={"kills": 2}, broken=["order 7 is gone"])),
    }

    text = page(runs, order=["good", "bad"])

    assert text.index("order 7 is gone") < text.index("1,000 kills, 0 lost")


def test_a_page_without_findings_says_that_nothing_was_lost_and_how_to_run_it_again() -> None:
    text = page({"x": run_of("x", Result(tried={"lost": 0}))}, order=["x"])

    assert "Nothing: 0 acknowledged writes were lost or applied twice." in text
    assert 'make campaign args="--part x --minutes 1.5 --seed 7"' in text
    assert "Everything is killed." in text


def test_a_part_shows_its_kinds_of_attack_as_a_table() -> None:
    rows = {"server": {"kills": 3, "lost": 0}, "cluster": {"kills": 1_200}}

    text = page({"x": run_of("x", Result(tried={}, rows=rows))}, order=["x"])

    assert "| | kills | lost |" in text
    assert "| cluster | 1,200 |  |" in text


def test_what_there_was_no_time_for_is_named_with_the_command_that_runs_it() -> None:
    result = Result(tried={"cells": 1}, left=["server, commit, copy", "cluster, commit, load"])

    text = page({"x": run_of("x", result)}, order=["x"])

    assert "| 1 cells, 2 left out |" in text
    assert "- server, commit, copy" in text
    assert 'make campaign args="--part x --rest --minutes 1.5 --seed 1"' in text


def test_the_figures_of_a_rest_are_added_to_those_of_the_run_that_left_it() -> None:
    first = Result(tried={"kills": 3, "latest in ms": 9}, rows={"a": {"kills": 3}}, left=["b", "c"])
    rest = Result(
        tried={"kills": 2, "latest in ms": 5},
        rows={"b": {"kills": 2}},
        broken=["b broke"],
        left=["c"],
    )

    both = run_of("x", first).followed_by(run_of("x", rest))

    assert both.seconds == 180
    assert both.result == Result(
        tried={"kills": 5, "latest in ms": 9},
        rows={"a": {"kills": 3}, "b": {"kills": 2}},
        broken=["b broke"],
        left=["c"],
    )


def test_the_page_is_the_one_that_the_kept_results_make() -> None:
    assert PAGE.read_text() == page(kept(), order=list(PARTS)), (
        "write it again: python -m tests.campaign.report"
    )


def test_every_part_is_registered_and_has_a_short_form_among_the_tests() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "__main__"}
    parts = {
        name
        for name in modules
        if not name.startswith("test_")
        and hasattr(importlib.import_module(f"tests.campaign.{name}"), "run")
    }

    assert set(PARTS) == parts
    assert {f"test_{name}" for name in parts} <= modules


def test_each_part_tries_to_break_a_promise_that_the_guarantees_link_to_it() -> None:
    promises = (PAGE.parent / "guarantees.md").read_text()
    linked = set(re.findall(r"reliability\.md#([\w-]+)", promises))
    titles = {
        (importlib.import_module(f"tests.campaign.{name}").__doc__ or "").partition("\n")[0]
        for name in PARTS
    }

    assert linked == {title.rstrip(".").lower().replace(" ", "-") for title in titles}
    assert "](reliability.md)" not in promises.partition("## At every commit")[2]
