"""The records of a file that is loaded, one by one, each with the line or document it came from.

Whatever the format, a record becomes one line of JSON or one BSON document: what the operations
take.
"""

import csv
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.cli.dump_subjects import Subject
from holdfast.cli.output import counted
from holdfast.error_text import did_you_mean

if TYPE_CHECKING:
    from holdfast.store import Space

_PIECE_BYTES: Final = 256 * 1024
_BLANKS: Final = b" \t\r\n"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WHOLE_SPACE: Final = b'{"holdfast"'  # how a dump of `all` begins
_ROWS_HINT: Final = "Rows are lines of JSON, an array of JSON, or CSV below a line of attributes."


class InputRecord(NamedTuple):
    """One record: a line of JSON without its end, or a BSON document."""

    number: int
    data: bytes


class InputRecords(NamedTuple):
    """The records of a file, and what their numbers count."""

    unit: str
    numbered: Iterator[InputRecord]


def read_records(
    source: IO[bytes], subject: Subject, kind: str | None, space: "Space"
) -> InputRecords:
    """Returns the records of a file, in the given format or in the one that its beginning shows."""
    if kind is not None:
        subject.format(kind)
    begin = _begin(source)
    _refuse_other_kind(begin, subject)
    if kind == "csv" or (kind is None and subject.kind == "tables" and _may_be_csv(begin)):
        types = space.tables.schema(subject.name)["attributes"]
        return InputRecords("line", _csv(_text(begin, source), types))
    if begin.strip(_BLANKS).startswith(b"[") and kind in (None, "json"):
        return _array(begin, source)
    return _lines_or_documents(begin, source, subject, kind)


def _refuse_other_kind(begin: bytes, subject: Subject) -> None:
    """Raises if a dump of a whole space is loaded into a table, or the other way round."""
    from holdfast.errors import BadDump

    first = begin.removeprefix(_BYTE_ORDER_MARK).lstrip(_BLANKS)
    is_space = first.startswith(_WHOLE_SPACE)
    if is_space and subject.kind != "space":
        hint = "Load it into an empty space: holdfast load all FILE --space NAME."
        raise BadDump("this is a dump of a whole space", hint=hint)
    if not is_space and subject.kind == "space":
        found = "the file is empty" if not first else "this is not a dump of a whole space"
        hint = "`holdfast dump all` writes one. For what is in one table, name the table."
        raise BadDump(found, hint=hint)


def _may_be_csv(begin: bytes) -> bool:
    """Returns whether the data is text that does not begin like JSON."""
    first = begin.removeprefix(_BYTE_ORDER_MARK).lstrip(_BLANKS)
    return bool(first) and first[:1] not in b"{[" and b"\0" not in first


def _begin(source: IO[bytes]) -> bytes:
    """Returns the first bytes that are not blank, with what comes before them."""
    begin = source.read(_PIECE_BYTES)
    while begin and not begin.strip(_BLANKS):
        more = source.read(_PIECE_BYTES)
        if not more:
            break
        begin += more
    return begin


def _pieces(begin: bytes, source: IO[bytes]) -> Iterator[bytes]:
    yield begin
    while more := source.read(_PIECE_BYTES):
        yield more


def _lines_or_documents(
    begin: bytes, source: IO[bytes], subject: Subject, kind: str | None
) -> InputRecords:
    from holdfast.entities.dumps import DumpRecords
    from holdfast.errors import BadDump

    dump = DumpRecords(_pieces(begin, source))
    if not dump.is_json and subject.kind != "entities":
        raise BadDump("this is not text", hint=_ROWS_HINT)
    if kind is not None and dump.is_json != (kind != "bson"):
        found = "lines of text" if dump.is_json else "BSON documents"
        raise BadDump(f"the file holds {found}, but --format says {kind}")
    return InputRecords(dump.unit, (InputRecord(*each) for each in dump))


def _array(begin: bytes, source: IO[bytes]) -> InputRecords:
    """Returns an array of JSON: line by line as `dump` writes it, otherwise as a whole."""
    first, _, rest = begin.lstrip(_BLANKS).partition(b"\n")
    if first.rstrip() == b"[" and rest.lstrip(_BLANKS)[:1] in (b"{", b"]"):
        before = begin.count(b"\n", 0, begin.index(b"[")) + 1
        if _is_record(rest.partition(b"\n")[0]):
            return InputRecords("line", _array_lines(before, rest, source))
    return InputRecords("element", _array_elements(begin + source.read()))


def _is_record(line: bytes) -> bool:
    stripped = line.strip(_BLANKS)
    return stripped.rstrip(b",").endswith(b"}") or stripped == b"]"


def _array_lines(before: int, rest: bytes, source: IO[bytes]) -> Iterator[InputRecord]:
    from holdfast.entities.dumps import DumpRecords

    for number, line in DumpRecords(_pieces(b"\n" + rest, source)):
        stripped = line.strip(_BLANKS)
        if stripped != b"]":
            yield InputRecord(before + number - 1, stripped.removesuffix(b","))


def _array_elements(text: bytes) -> Iterator[InputRecord]:
    import msgspec

    from holdfast.errors import BadDump

    try:
        elements = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDump(f"the array is not JSON: {error}") from None
    for number, element in enumerate(elements, 1):
        yield InputRecord(number, bytes(element).replace(b"\n", b" "))


def _text(begin: bytes, source: IO[bytes]) -> Iterator[str]:
    """Yields the lines of a file, each with its end."""
    decoder = getincrementaldecoder("utf-8-sig")()
    rest = ""
    for piece in _pieces(begin, source):
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from (f"{line}\n" for line in lines)
    yield rest + decoder.decode(b"", final=True)


def _csv(lines: Iterator[str], types: dict[str, str]) -> Iterator[InputRecord]:
    """Yields rows of CSV below a line of names, as lines of JSON. An empty cell is no value."""
    import msgspec

    from holdfast.errors import BadDump

    rows = csv.reader(lines)
    try:
        names = next(rows, [])
        for name in names:
            if name != "_ttl" and name not in types:
                near = did_you_mean(name, sorted(types))
                raise BadDump(
                    f"the table has no attribute {name!r}{near}", number=1, hint=_ROWS_HINT
                )
        for row in rows:
            if not row:
                continue  # a blank line
            if len(row) != len(names):
                raise BadDump(
                    f"this row has {counted(len(row), 'cell')}, but the first line has "
                    f"{counted(len(names), 'name')}",
                    number=rows.line_num,
                )
            cells = {name: cell for name, cell in zip(names, row, strict=True) if cell}
            read = {name: _cell(cell, types.get(name, "")) for name, cell in cells.items()}
            yield InputRecord(rows.line_num, msgspec.json.encode(read))
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadDump(f"line {rows.line_num}: this is not CSV: {error}") from None


def _cell(cell: str, type: str) -> Any:
    import msgspec

    from holdfast.tables.types import ATTRIBUTE_KINDS

    if type in ATTRIBUTE_KINDS and ATTRIBUTE_KINDS[type].is_text:
        return cell
    try:
        return msgspec.json.decode(cell, type=msgspec.Raw)
    except msgspec.DecodeError:
        return cell  # the table reports what is wrong with it
