"""The operations of tables, for a client. Made by `make client` from operations.py."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.client.calls import Call, as_text
from holdfast.client.faces import AwaitFace, CallFace, Handle, RecordFace
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

_ADD_INDEX: Final[Call[None]] = Call("tables.add_index", "write", only_reads=False, result=None)

_BATCH: Final[Call[BatchResult]] = Call(
    "tables.batch", "write", only_reads=False, result=BatchResult
)

_BUILD_INDEX: Final[Call[IndexProgress]] = Call(
    "tables.build_index", "long", only_reads=False, result=IndexProgress
)

_CREATE: Final[Call[CreateResult]] = Call(
    "tables.create", "write", only_reads=False, result=CreateResult
)

_DELETE: Final[Call[DeleteResult]] = Call(
    "tables.delete", "write", only_reads=False, result=DeleteResult
)

_DROP: Final[Call[bool]] = Call("tables.drop", "write", only_reads=False, result=bool)

_FACTS: Final[Call[Facts]] = Call("tables.facts", "read", only_reads=True, result=Facts)

_GET: Final[Call[Page]] = Call("tables.get", "read", only_reads=True, result=Page)

_IMPORT_ROWS: Final[Call[ImportReport]] = Call(
    "tables.import_rows", "long", only_reads=False, result=ImportReport
)

_INDEX_PROGRESS: Final[Call[IndexProgress]] = Call(
    "tables.index_progress", "read", only_reads=True, result=IndexProgress
)

_NAMES: Final[Call[list[str]]] = Call("tables.names", "read", only_reads=True, result=list[str])

_PUT: Final[Call[PutResult]] = Call("tables.put", "write", only_reads=False, result=PutResult)

_SCHEMA: Final[Call[Schema]] = Call("tables.schema", "read", only_reads=True, result=Schema)

_SCHEMA_ETAG: Final[Call[str]] = Call("tables.schema_etag", "read", only_reads=True, result=str)


def _add_index(table: str, index: str, elements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"table": table, "index": index, "elements": elements}


def _batch(operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"operations": operations}


def _build_index(table: str, index: str) -> dict[str, Any]:
    return {"table": table, "index": index}


def _create(schema: Mapping[str, Any], *, table: str | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"schema": schema}
    if table is not None:
        given["table"] = table
    return given


def _delete(
    table: str,
    attributes: Mapping[str, Any],
    *,
    if_: str | Mapping[str, Any] | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "attributes": attributes}
    if if_ is not None:
        given["if"] = if_
    if if_match is not None:
        given["if_match"] = if_match
    if if_none_match is not None:
        given["if_none_match"] = if_none_match
    return given


def _drop(table: str) -> dict[str, Any]:
    return {"table": table}


def _facts(table: str) -> dict[str, Any]:
    return {"table": table}


def _get(
    table: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    proj: str | Sequence[str] | None = None,
    order: Mapping[str, str] | None = None,
    limit: int | None = None,
    next: str | None = None,
    index: str | None = None,
    with_ttl: bool = False,
    distinct: bool = False,
    count_only: bool = False,
    form: Form = "python",
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table}
    if attributes is not None:
        given["attributes"] = attributes
    if proj is not None:
        given["proj"] = proj
    if order is not None:
        given["order"] = order
    if limit is not None:
        given["limit"] = limit
    if next is not None:
        given["next"] = next
    if index is not None:
        given["index"] = index
    if with_ttl is not False:
        given["with_ttl"] = with_ttl
    if distinct is not False:
        given["distinct"] = distinct
    if count_only is not False:
        given["count_only"] = count_only
    if form != "python":
        given["form"] = form
    return given


def _import_rows(
    table: str, lines: Iterable[bytes | str], *, atomic: bool = False
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "lines": as_text(lines)}
    if atomic is not False:
        given["atomic"] = atomic
    return given


def _index_progress(table: str, index: str) -> dict[str, Any]:
    return {"table": table, "index": index}


def _names(*, after: str | None = None, limit: int = DEFAULT_PAGE_ROWS) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if after is not None:
        given["after"] = after
    if limit != DEFAULT_PAGE_ROWS:
        given["limit"] = limit
    return given


def _put(
    table: str,
    attributes: Mapping[str, Any],
    *,
    if_: str | Mapping[str, Any] | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
    return_old: bool = False,
    form: Form = "python",
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "attributes": attributes}
    if if_ is not None:
        given["if"] = if_
    if if_match is not None:
        given["if_match"] = if_match
    if if_none_match is not None:
        given["if_none_match"] = if_none_match
    if return_old is not False:
        given["return_old"] = return_old
    if form != "python":
        given["form"] = form
    return given


def _schema(table: str) -> dict[str, Any]:
    return {"table": table}


def _schema_etag(table: str) -> dict[str, Any]:
    return {"table": table}


class CalledTables(CallFace):
    """The operations of `Tables`, each a call to a server."""

    def add_index(self, table: str, index: str, elements: Sequence[Mapping[str, Any]]) -> None:
        """Adds a secondary index to a table that has rows; it is built in bounded steps."""
        return self._call(_ADD_INDEX, _add_index(table, index, elements))

    def batch(self, operations: Sequence[Mapping[str, Any]]) -> BatchResult:
        """Up to 1,000 puts and deletes on any tables of the space, all or nothing."""
        return self._call(_BATCH, _batch(operations))

    def build_index(self, table: str, index: str) -> IndexProgress:
        """Builds an index that `add_index` has begun, step by step, and returns when it is
        complete.
        """
        return self._call(_BUILD_INDEX, _build_index(table, index))

    def create(self, schema: Mapping[str, Any], *, table: str | None = None) -> CreateResult:
        """Creates a table, or migrates it if there is one with another schema."""
        return self._call(_CREATE, _create(schema, table=table))

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
        return self._call(
            _DELETE,
            _delete(table, attributes, if_=if_, if_match=if_match, if_none_match=if_none_match),
        )

    def drop(self, table: str) -> bool:
        """Drops a table with all its rows and says whether there was one."""
        return self._call(_DROP, _drop(table))

    def facts(self, table: str) -> Facts:
        """How many rows, bytes, index entries and rows that will expire a table has."""
        return self._call(_FACTS, _facts(table))

    def get(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        proj: str | Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        limit: int | None = None,
        next: str | None = None,
        index: str | None = None,
        with_ttl: bool = False,
        distinct: bool = False,
        count_only: bool = False,
        form: Form = "python",
    ) -> Page:
        """One page of rows: a slice of the primary index, or of a secondary one."""
        return self._call(
            _GET,
            _get(
                table,
                attributes,
                proj=proj,
                order=order,
                limit=limit,
                next=next,
                index=index,
                with_ttl=with_ttl,
                distinct=distinct,
                count_only=count_only,
                form=form,
            ),
        )

    def import_rows(
        self, table: str, lines: Iterable[bytes | str], *, atomic: bool = False
    ) -> ImportReport:
        """Puts the rows of NDJSON lines, 1,000 in a transaction, and reports the refused ones."""
        return self._call(_IMPORT_ROWS, _import_rows(table, lines, atomic=atomic))

    def index_progress(self, table: str, index: str) -> IndexProgress:
        """How far the building of an index has come."""
        return self._call(_INDEX_PROGRESS, _index_progress(table, index))

    def names(self, *, after: str | None = None, limit: int = DEFAULT_PAGE_ROWS) -> list[str]:
        """The names of the tables, in order: at most `limit`, those behind `after`."""
        return self._call(_NAMES, _names(after=after, limit=limit))

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
        """Writes one row: what is named replaces what is stored, None removes it, the rest
        stays.
        """
        return self._call(
            _PUT,
            _put(
                table,
                attributes,
                if_=if_,
                if_match=if_match,
                if_none_match=if_none_match,
                return_old=return_old,
                form=form,
            ),
        )

    def schema(self, table: str) -> Schema:
        """The schema of a table, normalised: what was submitted, with the defaults filled in."""
        return self._call(_SCHEMA, _schema(table))

    def schema_etag(self, table: str) -> str:
        """The entity tag of a table's schema: its version and a digest."""
        return self._call(_SCHEMA_ETAG, _schema_etag(table))


class AwaitedTables(AwaitFace):
    """The operations of `Tables`, each a coroutine."""

    async def add_index(
        self, table: str, index: str, elements: Sequence[Mapping[str, Any]]
    ) -> None:
        """Adds a secondary index to a table that has rows; it is built in bounded steps."""
        return await self._call(_ADD_INDEX, _add_index(table, index, elements))

    async def batch(self, operations: Sequence[Mapping[str, Any]]) -> BatchResult:
        """Up to 1,000 puts and deletes on any tables of the space, all or nothing."""
        return await self._call(_BATCH, _batch(operations))

    async def build_index(self, table: str, index: str) -> IndexProgress:
        """Builds an index that `add_index` has begun, step by step, and returns when it is
        complete.
        """
        return await self._call(_BUILD_INDEX, _build_index(table, index))

    async def create(self, schema: Mapping[str, Any], *, table: str | None = None) -> CreateResult:
        """Creates a table, or migrates it if there is one with another schema."""
        return await self._call(_CREATE, _create(schema, table=table))

    async def delete(
        self,
        table: str,
        attributes: Mapping[str, Any],
        *,
        if_: str | Mapping[str, Any] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> DeleteResult:
        """Deletes all rows of a slice of the primary index, with their index entries."""
        return await self._call(
            _DELETE,
            _delete(table, attributes, if_=if_, if_match=if_match, if_none_match=if_none_match),
        )

    async def drop(self, table: str) -> bool:
        """Drops a table with all its rows and says whether there was one."""
        return await self._call(_DROP, _drop(table))

    async def facts(self, table: str) -> Facts:
        """How many rows, bytes, index entries and rows that will expire a table has."""
        return await self._call(_FACTS, _facts(table))

    async def get(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        proj: str | Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        limit: int | None = None,
        next: str | None = None,
        index: str | None = None,
        with_ttl: bool = False,
        distinct: bool = False,
        count_only: bool = False,
        form: Form = "python",
    ) -> Page:
        """One page of rows: a slice of the primary index, or of a secondary one."""
        return await self._call(
            _GET,
            _get(
                table,
                attributes,
                proj=proj,
                order=order,
                limit=limit,
                next=next,
                index=index,
                with_ttl=with_ttl,
                distinct=distinct,
                count_only=count_only,
                form=form,
            ),
        )

    async def import_rows(
        self, table: str, lines: Iterable[bytes | str], *, atomic: bool = False
    ) -> ImportReport:
        """Puts the rows of NDJSON lines, 1,000 in a transaction, and reports the refused ones."""
        return await self._call(_IMPORT_ROWS, _import_rows(table, lines, atomic=atomic))

    async def index_progress(self, table: str, index: str) -> IndexProgress:
        """How far the building of an index has come."""
        return await self._call(_INDEX_PROGRESS, _index_progress(table, index))

    async def names(self, *, after: str | None = None, limit: int = DEFAULT_PAGE_ROWS) -> list[str]:
        """The names of the tables, in order: at most `limit`, those behind `after`."""
        return await self._call(_NAMES, _names(after=after, limit=limit))

    async def put(
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
        """Writes one row: what is named replaces what is stored, None removes it, the rest
        stays.
        """
        return await self._call(
            _PUT,
            _put(
                table,
                attributes,
                if_=if_,
                if_match=if_match,
                if_none_match=if_none_match,
                return_old=return_old,
                form=form,
            ),
        )

    async def schema(self, table: str) -> Schema:
        """The schema of a table, normalised: what was submitted, with the defaults filled in."""
        return await self._call(_SCHEMA, _schema(table))

    async def schema_etag(self, table: str) -> str:
        """The entity tag of a table's schema: its version and a digest."""
        return await self._call(_SCHEMA_ETAG, _schema_etag(table))


class RecordedTables(RecordFace):
    """The operations of `Tables`, kept to be sent together."""

    def add_index(
        self, table: str, index: str, elements: Sequence[Mapping[str, Any]]
    ) -> Handle[None]:
        """Adds a secondary index to a table that has rows; it is built in bounded steps."""
        return self._record(_ADD_INDEX, _add_index(table, index, elements))

    def batch(self, operations: Sequence[Mapping[str, Any]]) -> Handle[BatchResult]:
        """Up to 1,000 puts and deletes on any tables of the space, all or nothing."""
        return self._record(_BATCH, _batch(operations))

    def create(
        self, schema: Mapping[str, Any], *, table: str | None = None
    ) -> Handle[CreateResult]:
        """Creates a table, or migrates it if there is one with another schema."""
        return self._record(_CREATE, _create(schema, table=table))

    def delete(
        self,
        table: str,
        attributes: Mapping[str, Any],
        *,
        if_: str | Mapping[str, Any] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> Handle[DeleteResult]:
        """Deletes all rows of a slice of the primary index, with their index entries."""
        return self._record(
            _DELETE,
            _delete(table, attributes, if_=if_, if_match=if_match, if_none_match=if_none_match),
        )

    def drop(self, table: str) -> Handle[bool]:
        """Drops a table with all its rows and says whether there was one."""
        return self._record(_DROP, _drop(table))

    def facts(self, table: str) -> Handle[Facts]:
        """How many rows, bytes, index entries and rows that will expire a table has."""
        return self._record(_FACTS, _facts(table))

    def get(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        proj: str | Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        limit: int | None = None,
        next: str | None = None,
        index: str | None = None,
        with_ttl: bool = False,
        distinct: bool = False,
        count_only: bool = False,
        form: Form = "python",
    ) -> Handle[Page]:
        """One page of rows: a slice of the primary index, or of a secondary one."""
        return self._record(
            _GET,
            _get(
                table,
                attributes,
                proj=proj,
                order=order,
                limit=limit,
                next=next,
                index=index,
                with_ttl=with_ttl,
                distinct=distinct,
                count_only=count_only,
                form=form,
            ),
        )

    def index_progress(self, table: str, index: str) -> Handle[IndexProgress]:
        """How far the building of an index has come."""
        return self._record(_INDEX_PROGRESS, _index_progress(table, index))

    def names(
        self, *, after: str | None = None, limit: int = DEFAULT_PAGE_ROWS
    ) -> Handle[list[str]]:
        """The names of the tables, in order: at most `limit`, those behind `after`."""
        return self._record(_NAMES, _names(after=after, limit=limit))

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
    ) -> Handle[PutResult]:
        """Writes one row: what is named replaces what is stored, None removes it, the rest
        stays.
        """
        return self._record(
            _PUT,
            _put(
                table,
                attributes,
                if_=if_,
                if_match=if_match,
                if_none_match=if_none_match,
                return_old=return_old,
                form=form,
            ),
        )

    def schema(self, table: str) -> Handle[Schema]:
        """The schema of a table, normalised: what was submitted, with the defaults filled in."""
        return self._record(_SCHEMA, _schema(table))

    def schema_etag(self, table: str) -> Handle[str]:
        """The entity tag of a table's schema: its version and a digest."""
        return self._record(_SCHEMA_ETAG, _schema_etag(table))
