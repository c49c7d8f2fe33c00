"""The operations of entities, for a client. Made by `make client` from operations.py."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.client.calls import Call, as_text
from holdfast.client.faces import AwaitFace, CallFace, Handle, RecordFace
from holdfast.client.values import as_entities
from holdfast.entities import stats
from holdfast.entities.core import _EVERYTHING
from holdfast.entities.messages import (
    Change,
    DumpFormat,
    DumpPage,
    Entity,
    Filter,
    Ordering,
    Page,
    PutEntity,
    PutMode,
    Query,
    Reply,
    Updated,
)
from holdfast.entities.plan import Plan
from holdfast.entities.repairing import Repaired
from holdfast.entities.schema import Schema
from holdfast.limits import DEFAULT_PAGE_ENTITIES

_APPLY: Final[Call[Plan]] = Call("entities.apply", "write", only_reads=False, result=Plan)

_BUILD: Final[Call[int]] = Call("entities.build", "long", only_reads=False, result=int)

_CHECK: Final[Call[Repaired]] = Call("entities.check", "long", only_reads=True, result=Repaired)

_COUNT_RAW: Final[Call[int]] = Call("entities.count", "read", only_reads=True, result=int)

_DELETE_RAW: Final[Call[int]] = Call("entities.delete", "write", only_reads=False, result=int)

_DEPLOY: Final[Call[list[Plan]]] = Call(
    "entities.deploy", "long", only_reads=False, result=list[Plan]
)

_DROP: Final[Call[int]] = Call("entities.drop", "write", only_reads=False, result=int)

_DUMP_SOME: Final[Call[DumpPage]] = Call(
    "entities.dump_some", "long", only_reads=True, result=DumpPage
)

_EXECUTE: Final[Call[list[Reply]]] = Call("entities.execute", "write", only_reads=False, result=Any)

_GET_RAW: Final[Call[list[Entity]]] = Call(
    "entities.get", "read", only_reads=True, result=list[Entity]
)

_LOAD_SOME: Final[Call[int]] = Call("entities.load_some", "long", only_reads=False, result=int)

_PLAN: Final[Call[Plan]] = Call("entities.plan", "read", only_reads=True, result=Plan)

_PUT_RAW: Final[Call[list[str]]] = Call("entities.put", "write", only_reads=False, result=list[str])

_REPAIR: Final[Call[Repaired]] = Call("entities.repair", "long", only_reads=False, result=Repaired)

_SCHEMA: Final[Call[Schema | None]] = Call(
    "entities.schema", "read", only_reads=True, result=Schema | None
)

_SCHEMAS: Final[Call[list[str]]] = Call(
    "entities.schemas", "read", only_reads=True, result=list[str]
)

_SELECT_RAW: Final[Call[Page]] = Call("entities.select", "read", only_reads=True, result=Page)

_STATS: Final[Call[dict[str, stats.TableStats]]] = Call(
    "entities.stats", "read", only_reads=True, result=dict[str, stats.TableStats]
)

_UPDATE_RAW: Final[Call[Updated]] = Call(
    "entities.update", "write", only_reads=False, result=Updated
)


def _apply(schema: Schema, *, prune: bool = False, force: bool = False) -> dict[str, Any]:
    given: dict[str, Any] = {"schema": schema}
    if prune is not False:
        given["prune"] = prune
    if force is not False:
        given["force"] = force
    return given


def _build(*, most: int | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if most is not None:
        given["most"] = most
    return given


def _check(table: str) -> dict[str, Any]:
    return {"table": table}


def _count_raw(table: str, filters: Sequence[Filter] = _EVERYTHING) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table}
    if filters != _EVERYTHING:
        given["filters"] = filters
    return given


def _delete_raw(
    table: str, filters: Sequence[Filter], *, if_version: int | None = None
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "filters": filters}
    if if_version is not None:
        given["if_version"] = if_version
    return given


def _deploy(
    *schemas: Schema | str | bytes, prune: bool = False, force: bool = False, wait: bool = True
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if schemas:
        given["schemas"] = as_text(schemas)
    if prune is not False:
        given["prune"] = prune
    if force is not False:
        given["force"] = force
    if wait is not True:
        given["wait"] = wait
    return given


def _drop(table: str) -> dict[str, Any]:
    return {"table": table}


def _dump_some(
    table: str, *, format: DumpFormat = "bson", after: str | None = None
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table}
    if format != "bson":
        given["format"] = format
    if after is not None:
        given["after"] = after
    return given


def _execute(queries: Sequence[Query]) -> dict[str, Any]:
    return {"queries": queries}


def _get_raw(table: str, ids: Iterable[str], *, properties: Sequence[str] = ()) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "ids": ids}
    if properties != ():
        given["properties"] = properties
    return given


def _load_some(table: str, dump: bytes, *, atomic: bool = False) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "dump": dump}
    if atomic is not False:
        given["atomic"] = atomic
    return given


def _plan(schema: Schema, *, prune: bool = False) -> dict[str, Any]:
    given: dict[str, Any] = {"schema": schema}
    if prune is not False:
        given["prune"] = prune
    return given


def _put_raw(
    table: str, entities: Iterable[PutEntity | Mapping[str, Any]], *, mode: PutMode = "merge"
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "entities": as_entities(entities)}
    if mode != "merge":
        given["mode"] = mode
    return given


def _repair(table: str) -> dict[str, Any]:
    return {"table": table}


def _schema(name: str) -> dict[str, Any]:
    return {"name": name}


def _select_raw(
    table: str,
    filters: Sequence[Filter],
    *,
    order: Ordering | None = None,
    offset: int = 0,
    limit: int = DEFAULT_PAGE_ENTITIES,
    properties: Sequence[str] = (),
    count: bool = True,
    partial: bool = False,
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "filters": filters}
    if order is not None:
        given["order"] = order
    if offset != 0:
        given["offset"] = offset
    if limit != DEFAULT_PAGE_ENTITIES:
        given["limit"] = limit
    if properties != ():
        given["properties"] = properties
    if count is not True:
        given["count"] = count
    if partial is not False:
        given["partial"] = partial
    return given


def _update_raw(
    table: str,
    filters: Sequence[Filter],
    changes: Sequence[Change],
    *,
    if_version: int | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"table": table, "filters": filters, "changes": changes}
    if if_version is not None:
        given["if_version"] = if_version
    return given


class CalledEntities(CallFace):
    """The operations of `Entities`, each a call to a server."""

    def apply(self, schema: Schema, *, prune: bool = False, force: bool = False) -> Plan:
        """Makes the tables of `schema` usable, and returns what changed; indexes are built
        later.
        """
        return self._call(_APPLY, _apply(schema, prune=prune, force=force))

    def build(self, *, most: int | None = None) -> int:
        """Builds and clears indexes until nothing is left to do, in steps between which others
        write.
        """
        return self._call(_BUILD, _build(most=most))

    def check(self, table: str) -> Repaired:
        """Compares every entity of a table with its index entries; says what `repair` would
        do.
        """
        return self._call(_CHECK, _check(table))

    def count_raw(self, table: str, filters: Sequence[Filter] = _EVERYTHING) -> int:
        """How many entities match; without filters, how many the table holds."""
        return self._call(_COUNT_RAW, _count_raw(table, filters))

    def delete_raw(
        self, table: str, filters: Sequence[Filter], *, if_version: int | None = None
    ) -> int:
        """Deletes the entities that match all `filters`, and returns how many there were."""
        return self._call(_DELETE_RAW, _delete_raw(table, filters, if_version=if_version))

    def deploy(
        self,
        *schemas: Schema | str | bytes,
        prune: bool = False,
        force: bool = False,
        wait: bool = True,
    ) -> list[Plan]:
        """Deploys schemas, given as records or as YAML, all or none; returns what changed."""
        return self._call(_DEPLOY, _deploy(*schemas, prune=prune, force=force, wait=wait))

    def drop(self, table: str) -> int:
        """Empties a table at once and returns how many entities it held; it stays deployed."""
        return self._call(_DROP, _drop(table))

    def dump_some(
        self, table: str, *, format: DumpFormat = "bson", after: str | None = None
    ) -> DumpPage:
        """A piece of a dump, for those who can't hold a snapshot: hand `next` back as `after`."""
        return self._call(_DUMP_SOME, _dump_some(table, format=format, after=after))

    def execute(self, queries: Sequence[Query]) -> list[Reply]:
        """Runs queries, on any tables, one after the other and all or none; a reply for each."""
        return self._call(_EXECUTE, _execute(queries))

    def get_raw(
        self, table: str, ids: Iterable[str], *, properties: Sequence[str] = ()
    ) -> list[Entity]:
        """The entities of these ids, in this order; missing ones are left out."""
        return self._call(_GET_RAW, _get_raw(table, ids, properties=properties))

    def load_some(self, table: str, dump: bytes, *, atomic: bool = False) -> int:
        """`load` of whole documents or lines that are at hand; returns how many."""
        return self._call(_LOAD_SOME, _load_some(table, dump, atomic=atomic))

    def plan(self, schema: Schema, *, prune: bool = False) -> Plan:
        """What `deploy` would change. Reads 1 key per table."""
        return self._call(_PLAN, _plan(schema, prune=prune))

    def put_raw(
        self,
        table: str,
        entities: Iterable[PutEntity | Mapping[str, Any]],
        *,
        mode: PutMode = "merge",
    ) -> list[str]:
        """Writes entities and returns their ids, in the order given."""
        return self._call(_PUT_RAW, _put_raw(table, entities, mode=mode))

    def repair(self, table: str) -> Repaired:
        """Adds the index entries that are missing, removes those that are wrong, counts anew."""
        return self._call(_REPAIR, _repair(table))

    def schema(self, name: str) -> Schema | None:
        """The schema as it is deployed, or None. Reads 1 key per table."""
        return self._call(_SCHEMA, _schema(name))

    def schemas(self) -> list[str]:
        """The names of all deployed schemas. Reads 1 key per table."""
        return self._call(_SCHEMAS, {})

    def select_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        *,
        order: Ordering | None = None,
        offset: int = 0,
        limit: int = DEFAULT_PAGE_ENTITIES,
        properties: Sequence[str] = (),
        count: bool = True,
        partial: bool = False,
    ) -> Page:
        """A page of the entities that match all `filters`, and with `count` the number of all
        of them.
        """
        return self._call(
            _SELECT_RAW,
            _select_raw(
                table,
                filters,
                order=order,
                offset=offset,
                limit=limit,
                properties=properties,
                count=count,
                partial=partial,
            ),
        )

    def stats(self) -> dict[str, stats.TableStats]:
        """Size and index states of every table. Reads about 100 entities of each."""
        return self._call(_STATS, {})

    def update_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        changes: Sequence[Change],
        *,
        if_version: int | None = None,
    ) -> Updated:
        """Applies `changes`, in order, to every entity that matches all `filters`."""
        return self._call(_UPDATE_RAW, _update_raw(table, filters, changes, if_version=if_version))


class AwaitedEntities(AwaitFace):
    """The operations of `Entities`, each a coroutine."""

    async def apply(self, schema: Schema, *, prune: bool = False, force: bool = False) -> Plan:
        """Makes the tables of `schema` usable, and returns what changed; indexes are built
        later.
        """
        return await self._call(_APPLY, _apply(schema, prune=prune, force=force))

    async def build(self, *, most: int | None = None) -> int:
        """Builds and clears indexes until nothing is left to do, in steps between which others
        write.
        """
        return await self._call(_BUILD, _build(most=most))

    async def check(self, table: str) -> Repaired:
        """Compares every entity of a table with its index entries; says what `repair` would
        do.
        """
        return await self._call(_CHECK, _check(table))

    async def count_raw(self, table: str, filters: Sequence[Filter] = _EVERYTHING) -> int:
        """How many entities match; without filters, how many the table holds."""
        return await self._call(_COUNT_RAW, _count_raw(table, filters))

    async def delete_raw(
        self, table: str, filters: Sequence[Filter], *, if_version: int | None = None
    ) -> int:
        """Deletes the entities that match all `filters`, and returns how many there were."""
        return await self._call(_DELETE_RAW, _delete_raw(table, filters, if_version=if_version))

    async def deploy(
        self,
        *schemas: Schema | str | bytes,
        prune: bool = False,
        force: bool = False,
        wait: bool = True,
    ) -> list[Plan]:
        """Deploys schemas, given as records or as YAML, all or none; returns what changed."""
        return await self._call(_DEPLOY, _deploy(*schemas, prune=prune, force=force, wait=wait))

    async def drop(self, table: str) -> int:
        """Empties a table at once and returns how many entities it held; it stays deployed."""
        return await self._call(_DROP, _drop(table))

    async def dump_some(
        self, table: str, *, format: DumpFormat = "bson", after: str | None = None
    ) -> DumpPage:
        """A piece of a dump, for those who can't hold a snapshot: hand `next` back as `after`."""
        return await self._call(_DUMP_SOME, _dump_some(table, format=format, after=after))

    async def execute(self, queries: Sequence[Query]) -> list[Reply]:
        """Runs queries, on any tables, one after the other and all or none; a reply for each."""
        return await self._call(_EXECUTE, _execute(queries))

    async def get_raw(
        self, table: str, ids: Iterable[str], *, properties: Sequence[str] = ()
    ) -> list[Entity]:
        """The entities of these ids, in this order; missing ones are left out."""
        return await self._call(_GET_RAW, _get_raw(table, ids, properties=properties))

    async def load_some(self, table: str, dump: bytes, *, atomic: bool = False) -> int:
        """`load` of whole documents or lines that are at hand; returns how many."""
        return await self._call(_LOAD_SOME, _load_some(table, dump, atomic=atomic))

    async def plan(self, schema: Schema, *, prune: bool = False) -> Plan:
        """What `deploy` would change. Reads 1 key per table."""
        return await self._call(_PLAN, _plan(schema, prune=prune))

    async def put_raw(
        self,
        table: str,
        entities: Iterable[PutEntity | Mapping[str, Any]],
        *,
        mode: PutMode = "merge",
    ) -> list[str]:
        """Writes entities and returns their ids, in the order given."""
        return await self._call(_PUT_RAW, _put_raw(table, entities, mode=mode))

    async def repair(self, table: str) -> Repaired:
        """Adds the index entries that are missing, removes those that are wrong, counts anew."""
        return await self._call(_REPAIR, _repair(table))

    async def schema(self, name: str) -> Schema | None:
        """The schema as it is deployed, or None. Reads 1 key per table."""
        return await self._call(_SCHEMA, _schema(name))

    async def schemas(self) -> list[str]:
        """The names of all deployed schemas. Reads 1 key per table."""
        return await self._call(_SCHEMAS, {})

    async def select_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        *,
        order: Ordering | None = None,
        offset: int = 0,
        limit: int = DEFAULT_PAGE_ENTITIES,
        properties: Sequence[str] = (),
        count: bool = True,
        partial: bool = False,
    ) -> Page:
        """A page of the entities that match all `filters`, and with `count` the number of all
        of them.
        """
        return await self._call(
            _SELECT_RAW,
            _select_raw(
                table,
                filters,
                order=order,
                offset=offset,
                limit=limit,
                properties=properties,
                count=count,
                partial=partial,
            ),
        )

    async def stats(self) -> dict[str, stats.TableStats]:
        """Size and index states of every table. Reads about 100 entities of each."""
        return await self._call(_STATS, {})

    async def update_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        changes: Sequence[Change],
        *,
        if_version: int | None = None,
    ) -> Updated:
        """Applies `changes`, in order, to every entity that matches all `filters`."""
        return await self._call(
            _UPDATE_RAW, _update_raw(table, filters, changes, if_version=if_version)
        )


class RecordedEntities(RecordFace):
    """The operations of `Entities`, kept to be sent together."""

    def apply(self, schema: Schema, *, prune: bool = False, force: bool = False) -> Handle[Plan]:
        """Makes the tables of `schema` usable, and returns what changed; indexes are built
        later.
        """
        return self._record(_APPLY, _apply(schema, prune=prune, force=force))

    def count_raw(self, table: str, filters: Sequence[Filter] = _EVERYTHING) -> Handle[int]:
        """How many entities match; without filters, how many the table holds."""
        return self._record(_COUNT_RAW, _count_raw(table, filters))

    def delete_raw(
        self, table: str, filters: Sequence[Filter], *, if_version: int | None = None
    ) -> Handle[int]:
        """Deletes the entities that match all `filters`, and returns how many there were."""
        return self._record(_DELETE_RAW, _delete_raw(table, filters, if_version=if_version))

    def drop(self, table: str) -> Handle[int]:
        """Empties a table at once and returns how many entities it held; it stays deployed."""
        return self._record(_DROP, _drop(table))

    def execute(self, queries: Sequence[Query]) -> Handle[list[Reply]]:
        """Runs queries, on any tables, one after the other and all or none; a reply for each."""
        return self._record(_EXECUTE, _execute(queries))

    def get_raw(
        self, table: str, ids: Iterable[str], *, properties: Sequence[str] = ()
    ) -> Handle[list[Entity]]:
        """The entities of these ids, in this order; missing ones are left out."""
        return self._record(_GET_RAW, _get_raw(table, ids, properties=properties))

    def plan(self, schema: Schema, *, prune: bool = False) -> Handle[Plan]:
        """What `deploy` would change. Reads 1 key per table."""
        return self._record(_PLAN, _plan(schema, prune=prune))

    def put_raw(
        self,
        table: str,
        entities: Iterable[PutEntity | Mapping[str, Any]],
        *,
        mode: PutMode = "merge",
    ) -> Handle[list[str]]:
        """Writes entities and returns their ids, in the order given."""
        return self._record(_PUT_RAW, _put_raw(table, entities, mode=mode))

    def schema(self, name: str) -> Handle[Schema | None]:
        """The schema as it is deployed, or None. Reads 1 key per table."""
        return self._record(_SCHEMA, _schema(name))

    def schemas(self) -> Handle[list[str]]:
        """The names of all deployed schemas. Reads 1 key per table."""
        return self._record(_SCHEMAS, {})

    def select_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        *,
        order: Ordering | None = None,
        offset: int = 0,
        limit: int = DEFAULT_PAGE_ENTITIES,
        properties: Sequence[str] = (),
        count: bool = True,
        partial: bool = False,
    ) -> Handle[Page]:
        """A page of the entities that match all `filters`, and with `count` the number of all
        of them.
        """
        return self._record(
            _SELECT_RAW,
            _select_raw(
                table,
                filters,
                order=order,
                offset=offset,
                limit=limit,
                properties=properties,
                count=count,
                partial=partial,
            ),
        )

    def stats(self) -> Handle[dict[str, stats.TableStats]]:
        """Size and index states of every table. Reads about 100 entities of each."""
        return self._record(_STATS, {})

    def update_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        changes: Sequence[Change],
        *,
        if_version: int | None = None,
    ) -> Handle[Updated]:
        """Applies `changes`, in order, to every entity that matches all `filters`."""
        return self._record(
            _UPDATE_RAW, _update_raw(table, filters, changes, if_version=if_version)
        )
