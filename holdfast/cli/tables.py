"""`holdfast tables`: rows to files and back."""

import sys
from collections.abc import Iterator
from itertools import islice

import click

from holdfast.cli.files import reading, writing
from holdfast.cli.output import FOUND, Output
from holdfast.cli.place import Opened, Place, place_options

_LINES_PER_CALL = 1_000


@click.group("tables")
def command() -> None:
    """Export and import the rows of tables.

    Example: holdfast tables export --data data pages -o pages.ndjson
    """


@command.command("export")
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", help="Where it goes; standard output if not given.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["ndjson", "csv"]),
    default="ndjson",
    show_default=True,
    help="Lines of JSON, or a table for other programs.",
)
@place_options
def export(place: Place, out: Output, table: str, output: str | None, kind: str) -> None:
    """Write the rows of TABLE to a file.

    From a folder the export is one snapshot. From a server it comes in pieces of 1,000 rows, each
    consistent in itself. With --json, a report goes to standard output and -o must name a file.

    Example: holdfast tables export --data data pages -o pages.ndjson
    """
    if out.is_json and output in (None, "-"):
        raise click.UsageError("--json and the rows can't both go to standard output: give -o FILE")
    count = 0
    with place.open() as opened, writing(output) as file, out.progress(table) as tell:
        for lines, rows in _pieces(opened, table, kind):
            file.write(lines)
            count += rows
            tell(count)
    out.result({"table": table, "rows": count}, lambda: out.note(f"{count:,} rows"))


@command.command("import")
@click.argument("table")
@click.argument("file", default="-")
@place_options
def import_rows(place: Place, out: Output, table: str, file: str) -> None:
    """Put the rows in FILE (lines of JSON, standard input by default) into TABLE.

    Takes what `export` wrote. Lines that are refused are named, and the others count; then the exit
    code is 3.

    Example: holdfast tables import --data data pages pages.ndjson
    """
    rows, seen, refusals = 0, 0, []
    with place.open() as opened, reading(file) as source, out.progress(table) as tell:
        while portion := list(islice(source, _LINES_PER_CALL)):
            report = opened.space.tables.import_rows(table, [_text(line) for line in portion])
            rows += report.rows
            refusals += [
                {"line": seen + each.line, "code": each.code, "message": each.message}
                for each in report.refusals
            ]
            seen += len(portion)
            tell(rows)

    def show() -> None:
        out.say(f"imported {rows:,} rows")
        for each in refusals:
            out.note(f"line {each['line']}: {each['message']}")

    out.result({"table": table, "rows": rows, "refusals": refusals}, show)
    if refusals:
        sys.exit(FOUND)


def _pieces(opened: Opened, table: str, kind: str) -> Iterator[tuple[bytes, int]]:
    is_head = kind == "csv"
    for piece in opened.space.tables.export(table, format=kind):  # type: ignore[arg-type]  # one of the choices
        yield piece, 0 if is_head else piece.count(b"\n")
        is_head = False


def _text(line: bytes) -> str:
    return line.decode(errors="surrogateescape").rstrip("\r\n")
