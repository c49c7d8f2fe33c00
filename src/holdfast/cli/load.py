"""`holdfast load`: loads what `holdfast dump` has written."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli.dump_subjects import FORMAT_HELP, Format, Subject, find_subject
from holdfast.cli.files import reading, size_of
from holdfast.cli.input_records import InputRecord, read_records
from holdfast.cli.location import Location, Opened, location_options
from holdfast.cli.output import FOUND, Output, counted

if TYPE_CHECKING:
    from holdfast.errors import BadDump

_BATCH_BYTES = 256 * 1024  # that are sent together
_BATCH_RECORDS = 1_000  # the same in records
_SHOWN_REFUSALS = 20  # lines that people see; --json has more


@click.command("load")
@click.argument("name")
@click.argument("file", default="-")
@click.option(
    "--format",
    "kind",
    type=Format(),
    help=f"{FORMAT_HELP}  [default: detected from FILE]",
)
@click.option(
    "--atomic", is_flag=True, help="Load everything or nothing, in one transaction of up to 64 MiB."
)
@location_options
def command(
    location: Location, out: Output, name: str, file: str, kind: str | None, atomic: bool
) -> None:
    """Load a dump from FILE (standard input by default) into NAME.

    NAME is a table of entities, a table of rows, or `all` for a whole space, which must be empty.
    Entities and rows replace those with the same key. A load works in steps: a damaged record, or
    an entity that its table refuses, stops it and is reported with its line number; what was loaded
    before it stays. Refused rows are listed by line, the others are loaded, and the exit code is 3.
    With --atomic, any refusal undoes everything.

    Example: holdfast load --data data shop.Orders orders.ndjson --atomic
    """
    from holdfast.errors import BadDump

    with location.open(creates=name == "all") as opened, reading(file) as source:
        subject = find_subject(opened.space, name, out)
        done = LoadProgress(subject)
        records = read_records(source, subject, kind, opened.space)
        with out.progress(name, size_of(source), "byte") as tell:
            try:
                for batch in _batches(records.numbered, atomic=atomic):
                    _load(opened, batch, done, records.unit, atomic=atomic)
                    tell(batch.position)
            except BadDump as error:
                raise _with_position(error, done, records.unit, atomic=atomic) from None

    def show() -> None:
        out.say(f"loaded {counted(done.count, subject.noun)}")
        for each in done.refusals[:_SHOWN_REFUSALS]:
            out.note(f"line {each['line']}: {each['message']}")
        if (more := done.refused - _SHOWN_REFUSALS) > 0:
            out.note(f"{counted(more, 'more line')} refused")

    report = {"refused": done.refused, "refusals": done.refusals}
    out.result(subject.report(done.count) | report, show)
    if done.refused:
        sys.exit(FOUND)


class LoadProgress:
    """The progress of a load."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.count = 0
        self.refused = 0
        self.refusals: list[dict[str, Any]] = []  # the first ones

    def refuse(self, refusals: list[dict[str, Any]]) -> None:
        from holdfast.limits import MAX_REPORTED_REFUSALS

        self.refused += len(refusals)
        self.refusals += refusals[: MAX_REPORTED_REFUSALS - len(self.refusals)]


class RecordBatch(NamedTuple):
    """Records that are sent together."""

    records: list[InputRecord]
    position: int  # in the file, after the last of them


def _batches(records: Iterator[InputRecord], *, atomic: bool) -> Iterator[RecordBatch]:
    """Yields batches of a few hundred kilobytes, or all of it; what precedes damage is included."""
    from holdfast.errors import BadDump

    batch: list[InputRecord] = []
    size = position = 0
    try:
        for record in records:
            batch.append(record)
            size += len(record.data) + 1
            position += len(record.data) + 1
            if atomic:
                _refuse_too_large(size)
            elif size >= _BATCH_BYTES or len(batch) == _BATCH_RECORDS:
                yield RecordBatch(batch, position)
                batch, size = [], 0
    except BadDump:
        if batch and not atomic:
            yield RecordBatch(batch, position)
        raise
    if batch:
        yield RecordBatch(batch, position)


def _refuse_too_large(size: int) -> None:
    from holdfast.errors import ValueTooLarge
    from holdfast.limits import MAX_ATOMIC_LOAD_BYTES

    if size > MAX_ATOMIC_LOAD_BYTES:
        raise ValueTooLarge(
            f"--atomic takes at most {MAX_ATOMIC_LOAD_BYTES:,} bytes",
            hint="Load it without --atomic, or split it into several files.",
        )


def _load(
    opened: Opened, batch: RecordBatch, done: LoadProgress, unit: str, *, atomic: bool
) -> None:
    """Sends a batch; an error names the refused record by its place in the file."""
    from holdfast.errors import BadDump

    subject = done.subject
    joint = b"" if unit == "document" else b"\n"
    try:
        if subject.kind == "tables":
            _load_rows(opened, batch, done, atomic=atomic)
            return
        data = joint.join(record.data for record in batch.records)
        if subject.kind == "space":
            done.count += opened.space.admin.load_some(data)
        else:
            done.count += opened.space.entities.load_some(subject.name, data, atomic=atomic)
    except BadDump as error:
        if error.number is not None:
            error.number = batch.records[min(error.number, len(batch.records)) - 1].number
        done.count += error.loaded or 0
        raise


def _load_rows(opened: Opened, batch: RecordBatch, done: LoadProgress, *, atomic: bool) -> None:
    lines = [record.data.decode(errors="surrogateescape") for record in batch.records]
    report = opened.space.tables.import_rows(done.subject.name, lines, atomic=atomic)
    done.count += report.rows
    done.refuse(
        [
            {
                "line": batch.records[each.line - 1].number,
                "code": each.code,
                "message": each.message,
            }
            for each in report.refusals
        ]
    )


def _with_position(error: "BadDump", done: LoadProgress, unit: str, *, atomic: bool) -> "BadDump":
    """Returns the error with its place in the whole file, and with the counts of what was loaded
    before."""
    if error.number is None:
        return error
    loaded = 0 if atomic else done.count
    were = "was" if loaded == 1 else "were"
    what = f"{counted(loaded, done.subject.noun)} {were} loaded before it"
    return type(error).at(
        error.number,
        error.reason,
        unit=unit,
        loaded=loaded,
        what=what if loaded else "Nothing was loaded",
        hint=error.hint,
    )
