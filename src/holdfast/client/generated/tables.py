"""The operations of tables, for a client. Made by `make client` from operations.py."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.client.calls import Call, as_text
from holdfast.client.layers import AwaitedLayer, CalledLayer, RecordedLayer, awaited, recorded
from holdfast.limits import DEFAULT_PAGE_ROWS
from holdfast.tables.reads import Form
from holdfast.tables.records import (
    BatchResult,
    CreateResult,
    DeleteResult,
    Facts,
    ImportReport,
    IndexProgress,
    Page,
    PutResult,
)
from holdfast.tables.schema import Schema


class CalledTables(CalledLayer):
    """The operations of `Tables`, called."""

    def add_index(self, table: str, index: str, elements: Sequence[Mapping[str, Any]]) -> None:
        """Adds a secondary index to a table that has rows; it is built in bounded steps."""
        return self._call(_ADD_INDEX, table, index, elements)

    def batch(self, operations: Sequence[Mapping[str, Any]]) -> BatchResult:
        """Runs up to 1,000 puts and deletes on any tables of the space, all or nothing."""
        return self._call(_BATCH, operations)

    def build_index(self, table: str, index: str) -> IndexProgress:
        """Builds an index that `add_index` has added, step by step, and returns when it is
        complete.
        """
        return self._call(_BUILD_INDEX, table, index)

    def create(self, schema: Mapping[str, Any], *, table: str | None = None) -> CreateResult:
        """Creates a table, or migrates an existing one to the new schema."""
        return self._call(_CREATE, schema, table)

    def delete(
        self,
        table: str,
        attributes: Mapping[str, Any],
        *,
        if_: str | Mapping[str, Any] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> DeleteResult:
        """Deletes all rows of a slice of the primary index, with their index entries."""
        return self._call(_DELETE, table, attributes, if_, if_match, if_none_match)

    def drop(self, table: str) -> bool:
        """Drops a table with all its rows and returns whether it existed."""
        return self._call(_DROP, table)

    def facts(self, table: str) -> Facts:
        """Returns the size of a table: its rows, bytes, index entries, and rows that will
        expire.
        """
        return self._call(_FACTS, table)

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
        """Returns one page of rows: a slice of the primary index, or of a secondary one."""
        return self._call(
            _GET,
            table,
            attributes,
            proj,
            order,
            limit,
            next,
            index,
            with_ttl,
            distinct,
            count_only,
            form,
        )

    def get_by_url(
        self,
        table: str,
        values: Sequence[str],
        query_string: str = "",
        *,
        index: str | None = None,
        form: Form = "json",
    ) -> Page:
        """Returns the page of a URL, given the decoded values of its path and its raw query
        string.
        """
        return self._call(_GET_BY_URL, table, values, query_string, index, form)

    def import_rows(
        self, table: str, lines: Iterable[bytes | str], *, atomic: bool = False
    ) -> ImportReport:
        """Puts the rows of NDJSON lines, 1,000 in a transaction, and reports the refused ones."""
        return self._call(_IMPORT_ROWS, table, as_text(lines), atomic)

    def index_progress(self, table: str, index: str) -> IndexProgress:
        """Returns the progress of an index build. Reads 3 keys."""
        return self._call(_INDEX_PROGRESS, table, index)

    def names(self, *, after: str | None = None, limit: int = DEFAULT_PAGE_ROWS) -> list[str]:
        """Returns the names of the tables, in order: at most `limit`, beginning after `after`."""
        return self._call(_NAMES, after, limit)

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
        """Writes one row: sets the given attributes, None removes one, all others stay."""
        return self._call(_PUT, table, attributes, if_, if_match, if_none_match, return_old, form)

    def schema(self, table: str) -> Schema:
        """Returns the normalised schema of a table: as submitted, with the defaults filled in."""
        return self._call(_SCHEMA, table)

    def schema_etag(self, table: str) -> str:
        """Returns the entity tag of a table's schema: its version and a digest. Reads 1 key."""
        return self._call(_SCHEMA_ETAG, table)


class AwaitedTables(AwaitedLayer):
    """The operations of `Tables`, each a coroutine."""

    add_index = awaited(CalledTables.add_index)
    batch = awaited(CalledTables.batch)
    build_index = awaited(CalledTables.build_index)
    create = awaited(CalledTables.create)
    delete = awaited(CalledTables.delete)
    drop = awaited(CalledTables.drop)
    facts = awaited(CalledTables.facts)
    get = awaited(CalledTables.get)
    get_by_url = awaited(CalledTables.get_by_url)
    import_rows = awaited(CalledTables.import_rows)
    index_progress = awaited(CalledTables.index_progress)
    names = awaited(CalledTables.names)
    put = awaited(CalledTables.put)
    schema = awaited(CalledTables.schema)
    schema_etag = awaited(CalledTables.schema_etag)


class RecordedTables(RecordedLayer):
    """The operations of `Tables`, kept to be sent together."""

    add_index = recorded(CalledTables.add_index)
    batch = recorded(CalledTables.batch)
    create = recorded(CalledTables.create)
    delete = recorded(CalledTables.delete)
    drop = recorded(CalledTables.drop)
    facts = recorded(CalledTables.facts)
    get = recorded(CalledTables.get)
    get_by_url = recorded(CalledTables.get_by_url)
    index_progress = recorded(CalledTables.index_progress)
    names = recorded(CalledTables.names)
    put = recorded(CalledTables.put)
    schema = recorded(CalledTables.schema)
    schema_etag = recorded(CalledTables.schema_etag)


_ADD_INDEX: Final = Call("tables.add_index", "write", CalledTables.add_index)
_BATCH: Final = Call("tables.batch", "write", CalledTables.batch)
_BUILD_INDEX: Final = Call("tables.build_index", "long", CalledTables.build_index)
_CREATE: Final = Call("tables.create", "write", CalledTables.create)
_DELETE: Final = Call("tables.delete", "write", CalledTables.delete)
_DROP: Final = Call("tables.drop", "write", CalledTables.drop)
_FACTS: Final = Call("tables.facts", "read", CalledTables.facts)
_GET: Final = Call("tables.get", "read", CalledTables.get)
_GET_BY_URL: Final = Call("tables.get_by_url", "read", CalledTables.get_by_url)
_IMPORT_ROWS: Final = Call("tables.import_rows", "long", CalledTables.import_rows)
_INDEX_PROGRESS: Final = Call("tables.index_progress", "read", CalledTables.index_progress)
_NAMES: Final = Call("tables.names", "read", CalledTables.names)
_PUT: Final = Call("tables.put", "write", CalledTables.put)
_SCHEMA: Final = Call("tables.schema", "read", CalledTables.schema)
_SCHEMA_ETAG: Final = Call("tables.schema_etag", "read", CalledTables.schema_etag)
