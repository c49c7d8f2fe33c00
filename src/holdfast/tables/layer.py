"""The operations on tables, each on one transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.limits import DEFAULT_PAGE_ROWS
from holdfast.tables import batches, catalogue, deletes, index_build, puts, urls
from holdfast.tables.argument_errors import error_for_argument
from holdfast.tables.queries import Query
from holdfast.tables.read_fast_path import fast_page
from holdfast.tables.reads import Form, check_form, get_page
from holdfast.tables.records import (
    BatchResult,
    CreateResult,
    DeleteResult,
    Facts,
    IndexProgress,
    Page,
    PutResult,
)
from holdfast.tables.row_writer import RowWriter
from holdfast.tables.schema import Schema
from holdfast.tables.versions import Versions


class Tables:
    """Typed rows with hash, range and static keys, secondary indexes, retention and TTL.

    Rows are dicts. Values are plain Python (`str`, `bytes`, `bool`, `int`, `Decimal`, `float`,
    `UUID`, aware `datetime`, lists for sets); their JSON forms are accepted too.
    """

    # Called by the server; see operations.py.
    _error_for_argument = staticmethod(error_for_argument)

    def __init__(self, tx: Transaction, versions: Versions | None = None) -> None:
        self._tx = tx
        self._versions = versions

    # --- schemas ---------------------------------------------------------------------------------

    @operation(role="admin")
    def create(self, schema: Mapping[str, Any], *, table: str | None = None) -> CreateResult:
        """Creates a table, or migrates an existing one to the new schema.

        The table's name is `table`, by default `schema["table"]`. Raises `InvalidTableSchema` if
        the schema is invalid, and `SchemaUpgradeRejected` if the table can't be changed to it; then
        nothing changes. Reads 2 keys, writes 4.
        """
        return catalogue.create(self._tx, schema, table)

    @operation(reads=True)
    def schema(self, table: str) -> Schema:
        """Returns the normalised schema of a table: as submitted, with the defaults filled in.

        Reads 1 key.
        """
        return catalogue.find(self._tx, table).copy_of_schema()

    @operation(reads=True)
    def schema_etag(self, table: str) -> str:
        """Returns the entity tag of a table's schema: its version and a digest. Reads 1 key."""
        plan = catalogue.find(self._tx, table)
        return f"{plan.schema['version']}-{plan.digest}"

    @operation(role="admin")
    def drop(self, table: str) -> bool:
        """Drops a table with all its rows and returns whether it existed.

        The table is gone at once; its rows are removed in bounded steps. Reads 2 keys, writes 3.
        """
        return catalogue.drop(self._tx, table)

    @operation(reads=True)
    def names(self, *, after: str | None = None, limit: int = DEFAULT_PAGE_ROWS) -> list[str]:
        """Returns the names of the tables, in order: at most `limit`, beginning after `after`.

        Reads 1 key for each.
        """
        return catalogue.names(self._tx, after=after, limit=limit)

    @operation(reads=True)
    def facts(self, table: str) -> Facts:
        """Returns the size of a table: its rows, bytes, index entries, and rows that will expire.

        Rows that have expired count until they are removed. Every write maintains these figures, so
        it reads 5 keys, however large the table is.
        """
        return catalogue.facts(self._tx, catalogue.find(self._tx, table))

    @operation(role="admin")
    def add_index(self, table: str, index: str, elements: Sequence[Mapping[str, Any]]) -> None:
        """Adds a secondary index to a table that has rows; it is built in bounded steps.

        Writes maintain it from now on; queries on it raise `IndexBuilding` until it is complete.
        The schema's version grows by one. Writes 3 keys.
        """
        plan = catalogue.find_to_write(self._tx, table)
        index_build.add_index(self._tx, plan, index, elements)

    @operation(reads=True)
    def index_progress(self, table: str, index: str) -> IndexProgress:
        """Returns the progress of an index build. Reads 3 keys."""
        return index_build.progress(self._tx, catalogue.find(self._tx, table), index)

    # --- rows ------------------------------------------------------------------------------------

    @operation(holds_values=True)
    def put(
        self,
        table: str,
        attributes: Mapping[str, Any],
        *,
        if_: str | Mapping[str, Any] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
        return_old: bool = False,
        form: Form = "python",
    ) -> PutResult:
        """Writes one row: sets the given attributes, None removes one, all others stay.

        Every key attribute must be given, except a version attribute, which defaults to the time of
        this write. `_ttl` is the row's time to live in seconds. `{"incr": 1}` adds to a number,
        `{"add": [...], "remove": [...]}` changes a set. `if_` is "not exists", "exists" or an
        object of predicates; if it does not hold, nothing is written and `applied` is False.
        `if_match` and `if_none_match` compare etags and raise `PreconditionFailed`.

        Reads the table and the row (unless its version is new), writes 1 key and 2 counters, and
        what statics, indexes and the retention policy need.
        """
        plan = catalogue.find_to_write(self._tx, table)
        if if_ is None and if_match is None and if_none_match is None and not return_old:
            put = puts.prepare(plan, attributes, self._make_version)
            writer = RowWriter(self._tx, plan)
            tid = puts.write(writer, put)
            writer.finish()
            return PutResult(applied=True, tid=tid)
        put = puts.prepare(
            plan,
            attributes,
            self._make_version,
            condition=if_,
            if_match=if_match,
            if_none_match=if_none_match,
            return_old=return_old,
        )
        writer = RowWriter(self._tx, plan)
        found = puts.find(writer, put)
        if not puts.is_met(writer, put, found):
            return PutResult(applied=False)
        result = puts.apply(writer, put, found)
        writer.finish()
        if form == "json" and result.old is not None:
            plan.item_as_json(result.old)
        return result

    @operation(reads=True, holds_values=True)
    def get(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        proj: str | Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        limit: float | None = None,
        next: str | None = None,
        index: str | None = None,
        with_ttl: bool = False,
        distinct: bool = False,
        count_only: bool = False,
        form: Form = "python",
    ) -> Page:
        """Returns one page of rows: a slice of the primary index, or of a secondary one.

        `attributes` gives the hash key, then any number of range elements in order; the last one
        may have bounds: `lt le gt ge between`. None selects the whole table. `next` continues an
        earlier page. `form="json"` returns every value in its JSON form. Reads the table and the
        rows returned.
        """
        plan = catalogue.find(self._tx, table)
        if (
            proj is None
            and order is None
            and next is None
            and with_ttl is distinct is count_only is False
        ):
            page = fast_page(self._tx, plan, index, attributes, limit)
            if page is not None:
                if form != "python":
                    check_form(form)
                    list(map(plan.item_as_json, page.items))
                return page
        query = Query(
            attributes=attributes,
            proj=proj,
            order=order,
            limit=limit,
            next=next,
            index=index,
            with_ttl=with_ttl,
            distinct=distinct,
            count_only=count_only,
        )
        return get_page(self._tx, plan, query, form)

    @operation()
    def delete(
        self,
        table: str,
        attributes: Mapping[str, Any],
        *,
        if_: str | Mapping[str, Any] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> DeleteResult:
        """Deletes all rows of a slice of the primary index, with their index entries.

        If only the hash key is given, its static values are deleted too. Rows and index entries
        are at most 200,000 together. `if_`, `if_match` and `if_none_match` are those of `put`; a
        condition on a row needs its whole primary key.

        Reads the table and 1 key for each row; deletes 1, and 1 for each index entry, and writes
        3 counters.
        """
        plan = catalogue.find_to_write(self._tx, table)
        delete = deletes.prepare(
            plan,
            self._tx.space,
            attributes,
            condition=if_,
            if_match=if_match,
            if_none_match=if_none_match,
        )
        writer = RowWriter(self._tx, plan)
        if not deletes.is_met(writer, delete):
            return DeleteResult(applied=False)
        result = deletes.apply(writer, delete, deletes.DeletedRows())
        writer.finish()
        return result

    @operation(holds_values=True)
    def batch(self, operations: Sequence[Mapping[str, Any]]) -> BatchResult:
        """Runs up to 1,000 puts and deletes on any tables of the space, all or nothing.

        Each is `{"op": "put" | "delete", "table": ..., "attributes": ..., "if": ...}`. Conditions
        apply to what was stored before the batch; if one does not hold, nothing is written and
        `failed` is the number of its operation. Costs what each operation does alone, but reads the
        table and writes the counters once.
        """
        return batches.run(self._tx, operations, self._make_version)

    # --- by URL ----------------------------------------------------------------------------------

    @operation(reads=True, holds_values=True)
    def get_by_url(
        self,
        table: str,
        values: Sequence[str],
        query_string: str = "",
        *,
        index: str | None = None,
        form: Form = "json",
    ) -> Page:
        """Returns the page of a URL, given the decoded values of its path and its raw query string.

        `get_by_url("revisions", ["Main_Page"], "rev.gt=7&limit=20")` is a query of RESTBase:
        the path gives the first elements of the index, the query the rest. Reads the table and the
        rows returned.
        """
        plan = catalogue.find(self._tx, table)
        urls.check_types(values, query_string)
        query = urls.query_of(self._tx, plan, index, list(values), query_string)
        return get_page(self._tx, plan, query, form)

    @operation(local=True)
    def put_by_url(
        self,
        table: str,
        values: Sequence[str],
        attributes: Mapping[str, Any],
        *,
        if_: str | Mapping[str, Any] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
        return_old: bool = False,
    ) -> PutResult:
        """Puts a row, with key attributes from the path of a URL."""
        plan = catalogue.find(self._tx, table)
        urls.check_types(values)
        return self.put(
            table,
            urls.attributes_of(plan, list(values), attributes),
            if_=if_,
            if_match=if_match,
            if_none_match=if_none_match,
            return_old=return_old,
            form="json",
        )

    @operation(local=True)
    def delete_by_url(
        self,
        table: str,
        values: Sequence[str],
        query_string: str = "",
        *,
        if_: str | Mapping[str, Any] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> DeleteResult:
        """Deletes the slice that a URL names."""
        plan = catalogue.find(self._tx, table)
        urls.check_types(values, query_string)
        attributes = urls.slice_attributes(self._tx, plan, list(values), query_string)
        return self.delete(
            table, attributes, if_=if_, if_match=if_match, if_none_match=if_none_match
        )

    def _make_version(self) -> Any:
        if self._versions is None:
            self._versions = Versions()
        return self._versions.make(self._tx.now)
