"""The page of benchmarks: made from a run, losses on top, and never edited by hand."""

from pathlib import Path

import msgspec

from benchmarks import when_to_use
from benchmarks.page import PAGE, PICTURES, RESULTS, Machine, Results, page, pictures
from benchmarks.rounds import Book, Line, Table, Target

MACHINE = Machine("a processor", 2, 8, "Linux 6", "3.11.7", {"lmdb": "3.0"})
RUN = Results(
    machine=MACHINE,
    is_full=False,
    seconds=120.0,
    others=0.5,
    books=[
        Book(
            name="engine",
            question="What does it cost?",
            tables=[Table("a put", "raw", [Line("raw", 2.0), Line("ours <&>", 3.0, "fsync")])],
            targets=[
                Target("put vs raw", 1.5, 1.6, at_most=True),
                Target("threads vs one", 4.0, 6.0, at_most=False),
            ],
            facts={"memory": "40 MiB"},
            skipped={"memcached": "it is not installed"},
        )
    ],
)


def test_missed_targets_are_listed_before_those_that_are_reached() -> None:
    text = page(RUN)

    missed, reached = text.index("threads vs one"), text.index("put vs raw")
    assert text.index("## What we miss") < missed < text.index("## What we reach") < reached


def test_every_figure_is_shown_with_its_ratio_and_its_durability() -> None:
    assert "| ours <&> | 3.0 | 1.50 | fsync |" in page(RUN)


def test_who_could_not_take_part_is_named_with_the_reason() -> None:
    assert "Left out: memcached (it is not installed)." in page(RUN)


def test_a_picture_shows_the_contenders_and_stays_well_formed() -> None:
    [drawing] = pictures(RUN).values()

    assert "ours &lt;&amp;&gt;" in drawing
    assert drawing.count("<rect") == 3  # the ground and two bars


def test_the_figures_of_when_to_use_are_those_of_the_kept_run() -> None:
    results = msgspec.json.decode(RESULTS.read_bytes(), type=Results)

    written = when_to_use.PAGE.read_text()
    assert written == when_to_use.when_to_use(results.books), (
        "change benchmarks/when_to_use.txt, then: python -m benchmarks.page"
    )
    assert when_to_use.NOT_MEASURED not in written


def test_what_a_run_left_out_is_said_in_when_to_use() -> None:
    assert "| Holdfast | not measured |" in when_to_use.when_to_use(RUN.books)


def test_the_page_is_the_one_that_the_kept_run_makes() -> None:
    results = msgspec.json.decode(RESULTS.read_bytes(), type=Results)

    assert PAGE.read_text() == page(results), "write it again: python -m benchmarks.page"
    drawn = {path.name: path.read_text() for path in Path(PICTURES).glob("bench-*.svg")}
    assert drawn == pictures(results)
