"""Exports rows as lines of NDJSON or CSV, and imports lines of NDJSON."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Literal

import msgspec

from holdfast.engine.contract import Transaction
from holdfast.error_text import shown
from holdfast.errors import InvalidTableQuery, InvalidTableRequest, TableError, ValueTooLarge
from holdfast.limits import MAX_ATOMIC_LOAD_BYTES, MAX_REPORTED_REFUSALS
from holdfast.tables import catalogue, puts
from holdfast.tables.json_parser import parse_json
from holdfast.tables.records import Item, Refusal
from holdfast.tables.row_writer import RowWriter
from holdfast.tables.types import json_text_as_written

Format = Literal["ndjson", "csv"]

_CSV_ROWS = 200  # that are yielded together


def lines_of(items: Iterable[Item], names: list[str], format: Format) -> Iterator[bytes]:
    """Returns items in their JSON forms as lines of text; CSV begins with a line of names."""
    if format == "ndjson":
        return (msgspec.json.encode(item) + b"\n" for item in items)
    if format == "csv":
        return _csv(iter(items), names)
    raise InvalidTableQuery(f"The format must be ndjson or csv, not {shown(format)}")


def _csv(items: Iterator[Item], names: list[str]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    while True:
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
        portion = list(islice(items, _CSV_ROWS))
        if not portion:
            return
        writer.writerows([[_cell(item[name]) for name in names] for item in portion])


def _cell(value: Any) -> Any:
    """Returns a CSV cell: empty for no value, JSON text for sets and JSON values."""
    if value is None:
        return ""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    return json_text_as_written(value).decode()


def import_lines(
    tx: Transaction,
    table: str,
    lines: list[tuple[int, bytes]],
    make_version: Callable[[], Any],
) -> tuple[int, list[Refusal]]:
    """Puts one row for each numbered line; returns how many were put, and the refused lines."""
    writer = RowWriter(tx, catalogue.find_to_write(tx, table))
    rows, refusals = 0, []
    for number, line in lines:
        try:
            attributes = parse_json(line)
            if not isinstance(attributes, dict):
                raise InvalidTableRequest("A line is an object of attributes")
            put = puts.prepare(writer.plan, attributes, make_version)
            puts.apply(writer, put, puts.find(writer, put))
        except TableError as error:
            refusals.append(Refusal(line=number, code=error.type, message=error.message))
        else:
            rows += 1
    writer.finish()
    return rows, refusals


def numbered(lines: Iterable[bytes | str]) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that are not blank, numbered from 1."""
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise InvalidTableRequest(
            f"`lines` must be several lines, not {shown(lines)}",
            hint="Split a text with `splitlines()`, or pass an open file.",
        )
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str | bytes):
            raise InvalidTableRequest(f"line {number} must be text or bytes, not {shown(line)}")
        # A lone surrogate becomes bytes that are not UTF-8, so its line is refused as not UTF-8.
        raw = line.encode(errors="surrogatepass") if isinstance(line, str) else line
        if raw.strip():
            yield number, raw


def bounded(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yields numbered lines, and raises when they are too large for one transaction."""
    size = 0
    for number, line in lines:
        size += len(line)
        if size > MAX_ATOMIC_LOAD_BYTES:
            raise ValueTooLarge(
                f"more than {MAX_ATOMIC_LOAD_BYTES:,} bytes of rows can't be loaded in one "
                "transaction",
                hint="Load them without `atomic`, or in several parts.",
            )
        yield number, line


def first_refusals(refusals: list[Refusal]) -> list[Refusal]:
    return refusals[:MAX_REPORTED_REFUSALS]
