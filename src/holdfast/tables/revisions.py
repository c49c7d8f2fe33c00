"""The current revision of a record, and the revisions that become current when newer ones expire.

An index of current revisions must find a record by its current values, even when its newest
revision has just expired and nothing has been written since. So it has an entry for the newest
stored revision and for each of its *fallbacks*: older revisions that outlive all newer ones. The
newest row stores the list of fallbacks, newest first, each with a later expiry than the one before;
a row that never expires ends the list. Most records have none, and cost nothing extra.

The list holds the first `MAX_FALLBACKS`, so that a put does not read a whole record. When all of
them have expired, the record is missing from the index until the first of them is removed.

An entry that belongs to a fallback is marked as uncertain: a reader must check the record, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain as concatenated
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.engine.contract import Reader
from holdfast.keys import after, prefix_range
from holdfast.limits import MAX_FALLBACKS
from holdfast.tables import row_codec
from holdfast.tables.layout import keys_of
from holdfast.tables.plan import VERSION_BYTES, Index, TablePlan, Values
from holdfast.tables.row_codec import StoredRow

NEVER: Final = 2**63 - 1
_ITEM_BYTES: Final = VERSION_BYTES + 8


class ChainMember(NamedTuple):
    """A revision that is current until a newer one is written or it expires, at `until` in ms."""

    key: bytes
    until: int


class ChainEntry(NamedTuple):
    """A revision of a record that has an entry in an index."""

    key: bytes  # the row's
    row: StoredRow
    values: Values


def until(row: StoredRow) -> int:
    """Returns when a row expires, in ms; `NEVER` if it does not."""
    return row.expires_ms or NEVER


def chain_of(key: bytes, newest: StoredRow) -> list[ChainMember]:
    """Returns the newest row of a record and its fallbacks."""
    record, stored = key[:-VERSION_BYTES], newest.fallbacks
    chain = [ChainMember(key, until(newest))]
    for at in range(0, len(stored), _ITEM_BYTES):
        item = stored[at : at + _ITEM_BYTES]
        chain.append(
            ChainMember(record + item[:VERSION_BYTES], int.from_bytes(item[VERSION_BYTES:]))
        )
    return chain


def encode_fallbacks(fallbacks: Sequence[ChainMember]) -> bytes:
    """Returns a list of fallbacks in its stored form."""
    return b"".join(each.key[-VERSION_BYTES:] + each.until.to_bytes(8) for each in fallbacks)


def chain_with(
    reader: Reader, before: Sequence[ChainMember], key: bytes, ends: int
) -> Sequence[ChainMember]:
    """Returns the chain after a row was put at `key` that expires at `ends`."""
    newer = [member for member in before if member.key < key]
    older = [member for member in before if member.key > key]
    was = next((member for member in before if member.key == key), None)
    longest = newer[-1].until if newer else -1
    own = [ChainMember(key, ends)] if ends > longest else []
    longest = max(longest, ends)
    if was is not None and was.until > ends:
        # The old row hid rows that outlive the new one.
        return _first([*newer, *own], outliving(reader, key, longest))
    found = [*newer, *own, *(member for member in older if member.until > longest)]
    return _first(found) if len(before) <= MAX_FALLBACKS else extended(reader, found)


def extended(reader: Reader, chain: Sequence[ChainMember]) -> Sequence[ChainMember]:
    """Returns a chain with the rows that outlive its last member, as many as it may have."""
    return _first(chain, outliving(reader, *chain[-1]))


def _first(*members: Iterable[ChainMember]) -> Sequence[ChainMember]:
    return list(islice(concatenated(*members), MAX_FALLBACKS + 1))


def outliving(reader: Reader, key: bytes, longest: int) -> Iterator[ChainMember]:
    """Yields later rows of the same record that outlive `longest` and those yielded before."""
    if longest == NEVER:
        return
    end = prefix_range(key[:-VERSION_BYTES])[1]
    for found, value in reader.scan(after(key), end):
        ends = until(row_codec.decode(value))
        if ends > longest:
            yield ChainMember(found, ends)
            longest = ends
            if ends == NEVER:
                return


def entries_of(index: Index, chain: Sequence[ChainEntry]) -> Mapping[bytes, bytes]:
    """Returns the entries of a chain in an index: keys below the table's entries, and values."""
    found: dict[bytes, tuple[bytes, int, bool]] = {}
    for place, member in enumerate(chain):
        entry = index.entry(member.values)
        if entry is not None:
            body = found[entry[0]][0] if entry[0] in found else entry[1]
            found[entry[0]] = body, member.row.expires_ms, place > 0
    return {
        key: row_codec.encode(body, expires_ms=expires_ms, uncertain=uncertain).value
        for key, (body, expires_ms, uncertain) in found.items()
    }


def resolve(
    reader: Reader, plan: TablePlan, index: Index, key: bytes, entry: StoredRow, now_ms: int
) -> tuple[bytes, int] | None:
    """Returns body and expiry of an uncertain entry as of now; None if it is not current.

    Reads the record to its first live row.
    """
    keys = keys_of(reader.space)
    row_key = plan.primary.key(values_of(plan, index, entry.body))
    record = keys.rows + plan.number_bytes + row_key[:-VERSION_BYTES]
    for _, value in reader.scan(*prefix_range(record)):
        row = row_codec.decode(value)
        if row.is_live(now_ms):
            found = index.entry(plan.values(row.body))
            if found is None or keys.entries + plan.number_bytes + found[0] != key:
                return None
            return found[1], row.expires_ms
    return None


def values_of(plan: TablePlan, index: Index, body: bytes) -> list[Any]:
    """Returns the values that a row or an index entry holds, by attribute id."""
    if index.id is None:
        return plan.values(body)
    values: list[Any] = [None] * plan.width
    found = msgspec.structs.astuple(index.decoder.decode(body))
    for attribute, value in zip(index.carried, found, strict=True):
        values[attribute.id] = value
    return values
