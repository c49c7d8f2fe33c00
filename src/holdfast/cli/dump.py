"""`holdfast dump`: writes entities, rows or a whole space to a file."""

from collections.abc import Iterator

import click

from holdfast.cli.dump_subjects import FORMAT_HELP, Format, Subject, find_subject
from holdfast.cli.files import writing
from holdfast.cli.location import Location, Opened, location_options
from holdfast.cli.output import Output, counted


@click.command("dump")
@click.argument("name")
@click.option(
    "-o", "--output", metavar="FILE", help="The file to write.  [default: standard output]"
)
@click.option(
    "--format",
    "kind",
    type=Format(),
    help=f"{FORMAT_HELP}  [default: ndjson]",
)
@location_options
def command(
    location: Location, out: Output, name: str, output: str | None, kind: str | None
) -> None:
    """Write NAME to a file: a table of entities, a table of rows, or `all` of a space.

    Entities keep their ids and expiries, rows their expiries. `all` is every layer as it is stored,
    for `holdfast load all`. If a table of entities and a table of rows have the same name, write
    entities:NAME or tables:NAME. A dump of a folder is one snapshot. A dump from a server comes in
    pieces, each consistent in itself. With --json, the report goes to standard output and -o must
    name a file.

    Example: holdfast dump --data data shop.Orders -o orders.ndjson
    """
    if out.is_json and output in (None, "-"):
        raise click.UsageError("--json and the dump can't both go to standard output: give -o FILE")
    count = 0
    with location.open() as opened:
        subject = find_subject(opened.space, name, out)
        pieces = _pieces(opened, subject, subject.format(kind))
        prints_data = output in (None, "-")
        total = _total(opened, subject) if out.has_bar(prints_data=prints_data) else None
        with (
            writing(output) as file,
            out.progress(name, total, subject.noun, prints_data=prints_data) as tell,
        ):
            for piece, number in pieces:
                file.write(piece)
                count += number
                tell(count)
    out.result(subject.report(count), lambda: out.note(counted(count, subject.noun)))


def _total(opened: Opened, subject: Subject) -> int | None:
    space = opened.space
    if subject.kind == "entities":
        return space.entities.stats()[subject.name].num_rows
    if subject.kind == "tables":
        return space.tables.facts(subject.name).rows
    return space.admin.count_keys()


def _pieces(opened: Opened, subject: Subject, kind: str) -> Iterator[tuple[bytes, int]]:
    """Yields the pieces to write, each with its number of records."""
    if subject.kind == "space":
        return _of_space(opened)
    if subject.kind == "entities":
        lines = _of_entities(opened, subject.name, "bson" if kind == "bson" else "jsonl")
    else:
        lines = _of_rows(opened, subject.name, "csv" if kind == "csv" else "ndjson")
    return _as_array(lines) if kind == "json" else lines


def _of_space(opened: Opened) -> Iterator[tuple[bytes, int]]:
    admin = opened.space.admin
    if not opened.is_server:
        for step in admin.dump():
            yield step.lines, step.keys
        return
    after, is_done = None, False
    while not is_done:
        step = admin.dump_some(after=after)
        yield step.lines, step.keys
        after, is_done = step.next, step.next is None


def _of_entities(opened: Opened, table: str, kind: str) -> Iterator[tuple[bytes, int]]:
    entities = opened.space.entities
    if not opened.is_server:
        for document in entities.dump(table, format=kind):  # type: ignore[arg-type]  # one of the choices
            yield document, 1
        return
    after, is_done = None, False
    while not is_done:
        page = entities.dump_some(table, format=kind, after=after)  # type: ignore[arg-type]  # see above
        yield page.dump, page.entities
        after, is_done = page.next, page.next is None


def _of_rows(opened: Opened, table: str, kind: str) -> Iterator[tuple[bytes, int]]:
    is_head = kind == "csv"
    tables = opened.space.tables
    policy = tables.schema(table).get("revisionRetentionPolicy") or {}
    # If a policy decides how long rows stay, a row may not be put with its own expiry.
    with_ttl = policy.get("type", "all") == "all"
    for piece in tables.export(table, format=kind, with_ttl=with_ttl):  # type: ignore[arg-type]  # one of the choices
        # A line ends outside of quotes: in every other part between two of them.
        outside = piece.split(b'"')[::2] if kind == "csv" else [piece]
        yield piece, 0 if is_head else sum(part.count(b"\n") for part in outside)
        is_head = False


def _as_array(lines: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    """Yields an array of JSON with one record on each line."""
    before = b"[\n"
    for piece, number in lines:
        if number:
            yield before + piece.rstrip(b"\n").replace(b"\n", b",\n"), number
            before = b",\n"
    yield b"[\n]\n" if before == b"[\n" else b"\n]\n", 0
