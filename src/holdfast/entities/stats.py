"""Statistics of tables: their sizes, and the state of their indexes."""

from typing import Final, Literal

import msgspec

from holdfast.engine.contract import Reader
from holdfast.entities.deploys import stored_tables
from holdfast.entities.index_builds import pending_work
from holdfast.entities.index_counts import count_stretch
from holdfast.entities.layout import END_OF_INDEX
from holdfast.entities.records import IndexWork
from holdfast.entities.selections import live_size
from holdfast.entities.table_access import IndexAccess, TableAccess, access_to
from holdfast.keys import prefix_range
from holdfast.limits import SAMPLED_ENTITIES


class IndexStats(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an index; `indexed` is the number of its entries."""

    state: Literal["ready", "pending", "removing"]
    indexed: int = 0
    conflicts: int = 0  # entities that violate the uniqueness of the index
    conflict: str = ""  # the id of the first of them


class TableStats(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a table; sizes in bytes are extrapolated from a sample."""

    num_rows: int
    data_size: int
    keys_size: int
    indexes: dict[str, IndexStats]


_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")


def in_words(table: TableStats) -> dict[str, str]:
    """Returns the figures as Meduza's `/stats` writes them.

    >>> in_words(TableStats(num_rows=1234, data_size=12_345, keys_size=134, indexes={}))
    {'num_rows': '1,234', 'data_size': '12 kB', 'keys_size': '134 B'}
    """
    return {
        "num_rows": f"{table.num_rows:,}",
        "data_size": _size(table.data_size),
        "keys_size": _size(table.keys_size),
    }


def _size(number: float) -> str:
    for unit in _UNITS:
        if number < 999.5 or unit == _UNITS[-1]:
            break
        number /= 1000
    return f"{number:.1f} {unit}" if number < 9.95 and unit != "B" else f"{number:.0f} {unit}"


def all_tables(
    reader: Reader, after: str | None = None, limit: int | None = None
) -> dict[str, TableStats]:
    """Returns the figures of all tables, or of up to `limit` after `after`, then by name."""
    names = [stored.table.full_name for stored in stored_tables(reader)]
    if after is not None or limit is not None:
        names.sort()
    wanted = [name for name in names if after is None or name > after][:limit]
    work = pending_work(reader)
    return {name: _table(reader, access_to(reader, name), work) for name in wanted}


def _table(reader: Reader, access: TableAccess, work: list[tuple[int, IndexWork]]) -> TableStats:
    rows = live_size(reader, access)
    sample = list(reader.scan(*prefix_range(access.entities), limit=SAMPLED_ENTITIES))
    scale = rows / len(sample) if sample else 0.0
    in_progress = dict(work)
    indexes = {
        index.name: _index(reader, index, in_progress.get(index.number)) for index in access.indexes
    }
    for _, task in work:
        if task.kind == "clear" and task.table == access.name and task.name:
            indexes.setdefault(task.name, IndexStats(state="removing"))
    return TableStats(
        num_rows=rows,
        data_size=round(scale * sum(len(value) for _, value in sample)),
        keys_size=round(scale * sum(len(key) for key, _ in sample)),
        indexes=indexes,
    )


def _index(reader: Reader, index: IndexAccess, work: IndexWork | None) -> IndexStats:
    return IndexStats(
        state="ready" if index.ready else "pending",
        indexed=count_stretch(reader, index, b"", END_OF_INDEX),
        conflicts=work.conflicts if work else 0,
        conflict=work.conflict if work else "",
    )
