"""`holdfast dump`: the entities of a table as a file."""

from collections.abc import Iterator

import click

from holdfast.cli.files import writing
from holdfast.cli.output import Output
from holdfast.cli.place import Opened, Place, place_options


@click.command("dump")
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", help="Where it goes; standard output if not given.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["bson", "jsonl"]),
    default="jsonl",
    show_default=True,
    help="Lines of Extended JSON, or BSON documents.",
)
@place_options
def command(place: Place, out: Output, table: str, output: str | None, kind: str) -> None:
    """Write the entities of TABLE to a file, with their ids and expiries.

    From a folder the dump is one snapshot. From a server it comes in pieces of 500 entities, each
    consistent in itself. With --json, a report goes to standard output and -o must name a file.

    Example: holdfast dump --data data shop.Orders -o orders.jsonl
    """
    if out.is_json and output in (None, "-"):
        raise click.UsageError("--json and the dump can't both go to standard output: give -o FILE")
    with place.open() as opened, writing(output) as file, out.progress(table) as tell:
        count = 0
        for piece, number in _pieces(opened, table, kind):
            file.write(piece)
            count += number
            tell(count)
    out.result({"table": table, "entities": count}, lambda: out.note(f"{count:,} entities"))


def _pieces(opened: Opened, table: str, kind: str) -> Iterator[tuple[bytes, int]]:
    entities = opened.space.entities
    if not opened.is_server:
        for document in entities.dump(table, format=kind):  # type: ignore[arg-type]  # one of the choices
            yield document, 1
        return
    after = None
    while True:
        page = entities.dump_some(table, format=kind, after=after)  # type: ignore[arg-type]  # see above
        yield page.dump, page.entities
        if page.next is None:
            return
        after = page.next
