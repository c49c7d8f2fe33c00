"""`holdfast load`: dumped entities into a table."""

from collections.abc import Iterator
from typing import IO

import click

from holdfast.cli.files import reading
from holdfast.cli.output import Output
from holdfast.cli.place import Place, place_options


@click.command("load")
@click.argument("table")
@click.argument("file", default="-")
@place_options
def command(place: Place, out: Output, table: str, file: str) -> None:
    """Read dumped entities from FILE (standard input by default) into TABLE.

    Takes both formats of `holdfast dump`. Entities keep their ids and replace what is there. Works
    in steps: a damaged document, or one that the table refuses, ends it, and what came before
    stays.

    Example: holdfast load --data data shop.Orders orders.jsonl
    """
    with place.open() as opened, reading(file) as source, out.progress(table) as tell:
        entities = opened.space.entities
        count = 0
        for piece in _pieces(source):
            count += entities.load_some(table, piece)
            tell(count)
    out.result({"table": table, "entities": count}, lambda: out.say(f"loaded {count:,} entities"))


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    """Whole documents or lines, a few hundred kilobytes together."""
    first = source.read(4)
    # A line begins with a brace; a BSON document with its length, whose fourth byte is small.
    is_json = first[:1] in (b"{", b" ", b"\n") and first[3:4] >= b"\t"
    buffer = first
    while more := source.read(_PIECE_BYTES):
        buffer += more
        end = buffer.rfind(b"\n") + 1 if is_json else _whole_documents(buffer)
        if end:
            yield buffer[:end]
            buffer = buffer[end:]
    if buffer:
        yield buffer


def _whole_documents(buffer: bytes) -> int:
    end = 0
    while len(buffer) - end >= 4:
        length = int.from_bytes(buffer[end : end + 4], "little")
        if length < 5 or end + length > len(buffer):
            break
        end += length
    return end


_PIECE_BYTES = 256 * 1024
