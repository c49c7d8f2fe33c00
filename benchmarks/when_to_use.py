"""Fills in the figures of docs/why/when-to-use.md from a run.

The text is benchmarks/when_to_use.txt. `python -m benchmarks.page` writes the page.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.rounds import Book, Line

PAGE: Final = Path("docs/why/when-to-use.md")
TEXT: Final = Path(__file__).with_suffix(".txt")
NOT_MEASURED: Final = "not measured"
QUEUES: Final = {
    "Holdfast": "Holdfast",
    "Celery": "Celery",
    "RQ": "RQ",
    "Dramatiq": "Dramatiq",
    "arq": "arq",
    "procrastinate": "procrastinate, on PostgreSQL",
    "PgQueuer": "PgQueuer, on PostgreSQL",
}
_ENTITY: Final = "an entity vs GET, "
_SET: Final = "a synced job put vs SET, "


def when_to_use(books: Sequence[Book]) -> str:
    """Returns the page with the figures of a run."""
    return TEXT.read_text().format_map(_figures(_Run(books)))


class _Run:
    """Finds the figures of a run by benchmark, table and contender."""

    def __init__(self, books: Sequence[Book]) -> None:
        self._lines = {
            (book.name, table.title, line.name): line
            for book in books
            for table in book.tables
            for line in table.lines
        }

    def line(self, book: str, table: str, name: str) -> Line | None:
        return self._lines.get((book, table, name))

    def figure(self, book: str, table: str, name: str) -> str:
        line = self.line(book, table, name)
        return NOT_MEASURED if line is None else f"{line.microseconds:,.0f}"

    def ratio(self, book: str, table: str, name: str, baseline: str) -> str:
        """Returns how many times as long `name` takes as `baseline`."""
        ours, theirs = self.line(book, table, name), self.line(book, table, baseline)
        if ours is None or theirs is None:
            return NOT_MEASURED
        return f"{ours.microseconds / theirs.microseconds:.1f}"

    def vs_valkey(self, table: str) -> str:
        return self.ratio("server", table, "Holdfast", "Valkey")


def _figures(run: _Run) -> dict[str, str]:
    completed = "A job, completed, 8 clients"
    row, rows = "latest revision, 10,000 rows", "put in batches of 100 with an index, each"
    hits = "a hit, 1 thread"
    clients = ("1 connection", "8 connections", "32 connections", "64 connections")
    ratios = [run.vs_valkey(f"{_ENTITY}{each}") for each in clients]
    low, *_, high = sorted(ratios, key=lambda ratio: (len(ratio), ratio))  # as numbers sort
    return {
        "jobs": _jobs(run),
        "pgqueuer_completes": run.figure("alternatives", completed, "PgQueuer"),
        "holdfast_completes": run.figure("alternatives", completed, "Holdfast"),
        "row_ratio": run.ratio("tables", row, "holdfast", "sqlite3"),
        "indexed_ratio": run.ratio("tables", f"{rows}, 10,000 rows", "holdfast", "sqlite3"),
        "put_16": run.figure("tables", "put from 16 threads, each, 10,000 rows", "holdfast"),
        "put_1": run.figure("tables", "put, 10,000 rows", "holdfast"),
        "entity_get": run.figure("entities", "get", "holdfast"),
        "peewee_get": run.figure("entities", "get", "peewee"),
        "sqlalchemy_get": run.figure("entities", "get", "SQLAlchemy"),
        "entity_low": low,
        "entity_high": high,
        "set_1": run.vs_valkey(f"{_SET}1 connection"),
        "set_64": run.vs_valkey(f"{_SET}64 connections"),
        "limit_here": run.figure("metrics", hits, "estimate, interval"),
        "limit_redis": run.figure("metrics", hits, "limits on redis, sliding window"),
    }


def _jobs(run: _Run) -> str:
    """Returns the table of job queues."""
    rows = ["| | µs, enqueued | µs, from put to done | durability |", "|---|---|---|---|"]
    for name, shown in QUEUES.items():
        enqueued = run.figure("alternatives", "A job, enqueued, 8 clients", name)
        done = run.figure("alternatives", "A job from put to done, 8 clients", name)
        line = run.line("alternatives", "A job, enqueued, 8 clients", name)
        rows.append(f"| {shown} | {enqueued} | {done} | {line.durability if line else ''} |")
    return "\n".join(rows)
