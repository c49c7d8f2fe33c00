"""Tables on a store: one transaction per operation, and several for long work."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.binding import Runner, per_call
from holdfast.declarations import operation
from holdfast.error_text import shown
from holdfast.errors import BadDump, IndexNotFound
from holdfast.limits import KEYS_PER_IMPORT_STEP, ROWS_PER_IMPORT_STEP
from holdfast.tables import catalogue, index_build, transfer
from holdfast.tables.layer import Tables
from holdfast.tables.queries import Query, projection_of
from holdfast.tables.reads import Form, scan_items
from holdfast.tables.records import ImportReport, IndexProgress, Item, Refusal
from holdfast.tables.versions import Versions

if TYPE_CHECKING:
    _PerCall = Tables
else:
    _PerCall = per_call(Tables)


class StoreTables(_PerCall):
    """The tables of one space. `versions` makes the automatic versions for the whole store."""

    def __init__(self, runner: Runner, versions: Versions | None = None) -> None:
        self._runner = runner
        self._versions = versions or Versions()
        self._make = lambda tx: Tables(tx, self._versions)

    @operation(local=True)
    def scan(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        proj: str | Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        index: str | None = None,
        with_ttl: bool = False,
        distinct: bool = False,
        form: Form = "python",
    ) -> Iterator[Item]:
        """Yields all rows of a slice from one snapshot, in constant memory.

        The snapshot is held until the iterator is exhausted or closed.
        """
        query = Query(
            attributes=attributes,
            proj=proj,
            order=order,
            index=index,
            with_ttl=with_ttl,
            distinct=distinct,
        )
        with self._runner.view() as reader:
            yield from scan_items(reader, catalogue.find(reader, table), query, form)

    @operation(local=True)
    def export(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        format: transfer.Format = "ndjson",
        proj: Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        index: str | None = None,
        with_ttl: bool = False,
    ) -> Iterator[bytes]:
        """Returns the rows of a slice as lines of NDJSON or CSV, in constant memory."""
        names = self._names(table, proj)
        items = self.scan(
            table,
            attributes,
            proj=names,
            order=order,
            index=index,
            with_ttl=with_ttl,
            form="json",
        )
        return transfer.lines_of(items, [*names, "_ttl"] if with_ttl else names, format)

    def _names(self, table: str, proj: Sequence[str] | None) -> list[str]:
        """Returns the attributes of an export, in order, each once."""
        with self._runner.view() as reader:
            plan = catalogue.find(reader, table)
        return projection_of(plan, proj) or list(plan.attributes)

    @operation()
    def import_rows(
        self, table: str, lines: Iterable[bytes | str], *, atomic: bool = False
    ) -> ImportReport:
        """Puts the rows of NDJSON lines, 1,000 in a transaction, and reports the refused ones.

        It reads what `export` writes. Blank lines are skipped; the report lists the first 1,000
        refused lines by number. With `atomic`, all lines are one transaction of at most 64 MiB: the
        first refused line raises `BadDump`, and nothing is imported. In a table with more than four
        indexes a transaction has fewer rows. Reads 1 key for each row; writes 1, and 1 for each
        index entry.
        """
        indexes = self.schema(table).get("secondaryIndexes", ())
        in_step = min(ROWS_PER_IMPORT_STEP, KEYS_PER_IMPORT_STEP // (1 + len(indexes)))
        numbered = transfer.numbered(lines)
        if atomic:
            return ImportReport(rows=self._import_all(table, numbered), refused=0, refusals=[])
        rows, count = 0, 0
        refused: list[Refusal] = []
        while portion := list(islice(numbered, in_step)):
            put, refusals = self._import_some(table, portion)
            rows += put
            count += len(refusals)
            refused = transfer.first_refusals(refused + refusals)
        return ImportReport(rows=rows, refused=count, refusals=refused)

    @operation(role="admin")
    def build_index(self, table: str, index: str) -> IndexProgress:
        """Builds an index that `add_index` has added, step by step, and returns when it is
        complete.

        Without this call, the server's background task or later writes do the same. Reads 1 key for
        each row, writes 1 for each index entry.
        """
        while True:
            progress = self.index_progress(table, index)
            if progress.complete or progress.problem:
                return progress
            self._runner.transact(lambda tx: _build_step(tx, table, index))

    def _import_all(self, table: str, numbered: Iterator[tuple[int, bytes]]) -> int:
        versions = self._versions or Versions()
        lines = list(transfer.bounded(numbered))

        def work(tx: Any) -> int:
            def version() -> Any:
                return versions.make(tx.now)

            rows, refusals = transfer.import_lines(tx, table, lines, version)
            for each in refusals:
                raise BadDump.at(
                    each.line, each.message, unit="line", loaded=0, what="Nothing was loaded"
                )
            return rows

        return self._runner.transact(work)

    def _import_some(self, table: str, portion: list[tuple[int, bytes]]) -> Any:
        versions = self._versions or Versions()
        return self._runner.transact(
            lambda tx: transfer.import_lines(tx, table, portion, lambda: versions.make(tx.now))
        )


def _build_step(tx: Any, table: str, index: str) -> bool:
    plan = catalogue.find(tx, table)
    found = plan.indexes.get(index)
    if found is None or found.id is None:
        raise IndexNotFound(f"{table} has no secondary index {shown(index)}")
    return index_build.build_step(tx, plan, found.id)
