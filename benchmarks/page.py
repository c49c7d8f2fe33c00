"""Writes docs/benchmarks.md, its pictures, and the figures of docs/why/when-to-use.md from a run.

`python -m benchmarks.page` writes them again from benchmarks/results.json.
"""

from html import escape
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import when_to_use
from benchmarks.rounds import Book, Table

RESULTS: Final = Path("benchmarks/results.json")
PAGE: Final = Path("docs/benchmarks.md")
PICTURES: Final = Path("docs/pictures")
THEIRS: Final = (
    "raw", "limits on", "prometheus", "sqlite", "SQLAlchemy", "peewee", "restbase", "Lua",
    "pipeline, no", "RQ", "Huey", "Dramatiq", "Celery", "arq", "procrastinate", "PgQueuer",
    "pyrate", "throttled", "walrus", "GET", "SET", "python -c", "psycopg", "redis-py",
    "script",
)  # fmt: skip
FILLS: Final = {True: "#2f6f4f", False: "#9aa5b1"}  # ours, and those of others


class Machine(msgspec.Struct, frozen=True):
    """The machine that the figures were measured on."""

    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    versions: dict[str, str]


class Results(msgspec.Struct, frozen=True):
    """One run of all benchmarks."""

    machine: Machine
    is_full: bool
    seconds: float
    others: float  # cores that other programs kept busy meanwhile
    books: list[Book]


def write_page(results: Results) -> None:
    """Writes the page and one picture for each benchmark with contenders."""
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("bench-*.svg"):
        old.unlink()
    for name, drawing in pictures(results).items():
        (PICTURES / name).write_text(drawing)
    PAGE.write_text(page(results))
    when_to_use.PAGE.write_text(when_to_use.when_to_use(results.books))


def page(results: Results) -> str:
    """Returns the whole page, missed targets first."""
    parts = [_HEAD, _about(results), _targets(results, met=False), _targets(results, met=True)]
    parts += [_section(book) for book in results.books]
    return "\n".join(parts).rstrip() + "\n"


_HEAD: Final = """# Benchmarks

Is Holdfast faster than what people use now? This page is made by `make bench` or `make bench-full`
from one run on one machine; the program writes all of it, missed targets first. For what each
benchmark measures, and what its numbers don't say, see
[benchmarks/README.md](../benchmarks/README.md).
"""


def _about(results: Results) -> str:
    machine = results.machine
    kind = "full" if results.is_full else "quick"
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    busy = f"{results.others:.1f} of {machine.cores}"
    return (
        f"**The run.** A {kind} run of {results.seconds / 60:.0f} minutes on "
        f"{machine.cores} cores of {machine.processor}, {machine.memory_gib} GiB, "
        f"{machine.system}, Python {machine.python}; other programs kept {busy} cores busy "
        f"meanwhile.\n\n**Versions.** {versions}.\n"
    )


def _targets(results: Results, *, met: bool) -> str:
    title = "## What we reach" if met else "## What we miss"
    chosen = [(b, t) for b in results.books for t in b.targets if t.met is met]
    if not chosen:
        return f"{title}\n\nNothing.\n"
    lines = [title, "", "| benchmark | what | reached | wanted |", "|---|---|---|---|"]
    if not met:
        lines = [
            title,
            "",
            "| benchmark | what | reached | wanted | why |",
            "|---|---|---|---|---|",
        ]
    for book, target in chosen:
        sign = "at most" if target.at_most else "at least"
        lines.append(
            f"| [{book.name}](#{book.name}) | {_cell(target.what)} | {target.reached:.2f} "
            f"| {sign} {target.wanted:g} |" + ("" if met else f" {_cell(target.reason)} |")
        )
    return "\n".join([*lines, ""])


def _section(book: Book) -> str:
    lines = [f"## {book.name}", "", book.question, ""]
    if _drawn(book):
        lines += [f"![{book.name}: contenders side by side](pictures/bench-{book.name}.svg)", ""]
    for table in book.tables:
        lines += [f"**{table.title}**", "", "| | µs | ratio | durability |", "|---|---|---|---|"]
        base = next(line.microseconds for line in table.lines if line.name == table.baseline)
        for line in table.lines:
            ratio = line.microseconds / base
            figure = f"{line.microseconds:,.1f}"
            lines.append(f"| {_cell(line.name)} | {figure} | {ratio:.2f} | {line.durability} |")
        lines.append("")
    if book.facts:
        lines += ["| | |", "|---|---|"]
        lines += [f"| {_cell(name)} | {figure} |" for name, figure in book.facts.items()]
        lines.append("")
    if book.skipped:
        lines += [f"Left out: {name} ({reason})." for name, reason in book.skipped.items()] + [""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# --- pictures ------------------------------------------------------------------------------------

BAR, GAP, LEFT, WIDTH, RIGHT = 16, 5, 330, 420, 130


def pictures(results: Results) -> dict[str, str]:
    """Returns a bar chart for each benchmark, by file name."""
    return {
        f"bench-{book.name}.svg": _draw(book.name, _drawn(book))
        for book in results.books
        if _drawn(book)
    }


def _drawn(book: Book) -> list[Table]:
    """Returns the tables that have several contenders."""
    return [table for table in book.tables if len(table.lines) > 1][:6]


def _draw(name: str, tables: list[Table]) -> str:
    parts: list[str] = []
    top = 10
    for table in tables:
        top += 22
        parts.append(f'<text x="10" y="{top}" font-weight="bold">{escape(table.title)}</text>')
        top += 8
        longest = max(line.microseconds for line in table.lines)
        for line in table.lines:
            length = max(1, round(WIDTH * line.microseconds / longest))
            fill = FILLS[_is_ours(line.name)]
            middle = top + BAR - 4
            label = f"{line.microseconds:,.1f} µs"
            parts += [
                f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(line.name)}</text>',
                f'<rect x="{LEFT}" y="{top}" width="{length}" height="{BAR}" fill="{fill}"/>',
                f'<text x="{LEFT + length + 6}" y="{middle}">{label}</text>',
            ]
            top += BAR + GAP
    width, height = LEFT + WIDTH + RIGHT, top + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        f"<title>{escape(name)}: shorter is faster</title>\n"
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _is_ours(name: str) -> bool:
    return not name.startswith(THEIRS)


if __name__ == "__main__":
    write_page(msgspec.json.decode(RESULTS.read_bytes(), type=Results))
