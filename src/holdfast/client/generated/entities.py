"""The operations of entities, for a client. Made by `make client` from operations.py."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.client.calls import Call, as_text
from holdfast.client.conversions import as_entities
from holdfast.client.layers import AwaitedLayer, CalledLayer, RecordedLayer, awaited, recorded
from holdfast.entities import stats
from holdfast.entities.layer import _EVERYTHING
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
from holdfast.entities.repairs import Repaired
from holdfast.entities.schema import Schema
from holdfast.limits import DEFAULT_PAGE_ENTITIES


class CalledEntities(CalledLayer):
    """The operations of `Entities`, called."""

    def apply(self, schema: Schema, *, prune: bool = False, force: bool = False) -> Plan:
        """Deploys the tables of `schema` and returns what changed; indexes are built later."""
        return self._call(_APPLY, schema, prune, force)

    def build(self, *, most: int | None = None) -> int:
        """Builds and clears indexes until nothing is left to do, in steps; others can write
        between them.
        """
        return self._call(_BUILD, most)

    def check(self, table: str) -> Repaired:
        """Compares every entity of a table with its index entries; returns what `repair` would
        do.
        """
        return self._call(_CHECK, table)

    def count_raw(self, table: str, filters: Sequence[Filter] = _EVERYTHING) -> int:
        """Returns how many entities match; without filters, how many the table holds."""
        return self._call(_COUNT_RAW, table, filters)

    def delete_raw(
        self, table: str, filters: Sequence[Filter], *, if_version: int | None = None
    ) -> int:
        """Deletes the entities that match all `filters`, and returns how many there were."""
        return self._call(_DELETE_RAW, table, filters, if_version)

    def deploy(
        self,
        *schemas: Schema | str | bytes,
        prune: bool = False,
        force: bool = False,
        wait: bool = True,
    ) -> list[Plan]:
        """Deploys schemas, given as records or as YAML, all or none; returns what changed."""
        return self._call(_DEPLOY, prune, force, wait, as_text(schemas))

    def drop(self, table: str) -> int:
        """Empties a table at once and returns how many entities it held; it stays deployed."""
        return self._call(_DROP, table)

    def dump_some(
        self, table: str, *, format: DumpFormat = "bson", after: str | None = None
    ) -> DumpPage:
        """Returns a page of a dump, for callers that can't hold a snapshot open: pass `next`
        back as `after`.
        """
        return self._call(_DUMP_SOME, table, format, after)

    def execute(self, queries: Sequence[Query]) -> list[Reply]:
        """Runs queries on any tables in order, all or none, and returns a reply for each."""
        return self._call(_EXECUTE, queries)

    def get_raw(
        self, table: str, ids: Iterable[str], *, properties: Sequence[str] = ()
    ) -> list[Entity]:
        """Returns the entities with these ids, in this order; missing ones are left out."""
        return self._call(_GET_RAW, table, ids, properties)

    def load_some(self, table: str, dump: bytes, *, atomic: bool = False) -> int:
        """Loads whole documents or lines of a dump, as `load` does; returns how many."""
        return self._call(_LOAD_SOME, table, dump, atomic)

    def plan(self, schema: Schema, *, prune: bool = False) -> Plan:
        """Returns what `deploy` would change. Reads 1 key per table."""
        return self._call(_PLAN, schema, prune)

    def put_raw(
        self,
        table: str,
        entities: Iterable[PutEntity | Mapping[str, Any]],
        *,
        mode: PutMode = "merge",
    ) -> list[str]:
        """Writes entities and returns their ids, in the order given."""
        return self._call(_PUT_RAW, table, as_entities(entities), mode)

    def repair(self, table: str) -> Repaired:
        """Adds missing index entries, removes wrong ones, and counts them again."""
        return self._call(_REPAIR, table)

    def schema(self, name: str) -> Schema | None:
        """Returns the schema as it is deployed, or None. Reads 1 key per table."""
        return self._call(_SCHEMA, name)

    def schemas(self) -> list[str]:
        """Returns the names of all deployed schemas. Reads 1 key per table."""
        return self._call(_SCHEMAS)

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
        """Returns a page of the entities that match all `filters`, and with `count` how many
        match.
        """
        return self._call(
            _SELECT_RAW, table, filters, order, offset, limit, properties, count, partial
        )

    def stats(
        self, *, after: str | None = None, limit: int | None = None
    ) -> dict[str, stats.TableStats]:
        """Returns size and index states of every table, or of up to `limit` after `after`."""
        return self._call(_STATS, after, limit)

    def update_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        changes: Sequence[Change],
        *,
        if_version: int | None = None,
    ) -> Updated:
        """Applies `changes`, in order, to every entity that matches all `filters`."""
        return self._call(_UPDATE_RAW, table, filters, changes, if_version)


class AwaitedEntities(AwaitedLayer):
    """The operations of `Entities`, each a coroutine."""

    apply = awaited(CalledEntities.apply)
    build = awaited(CalledEntities.build)
    check = awaited(CalledEntities.check)
    count_raw = awaited(CalledEntities.count_raw)
    delete_raw = awaited(CalledEntities.delete_raw)
    deploy = awaited(CalledEntities.deploy)
    drop = awaited(CalledEntities.drop)
    dump_some = awaited(CalledEntities.dump_some)
    execute = awaited(CalledEntities.execute)
    get_raw = awaited(CalledEntities.get_raw)
    load_some = awaited(CalledEntities.load_some)
    plan = awaited(CalledEntities.plan)
    put_raw = awaited(CalledEntities.put_raw)
    repair = awaited(CalledEntities.repair)
    schema = awaited(CalledEntities.schema)
    schemas = awaited(CalledEntities.schemas)
    select_raw = awaited(CalledEntities.select_raw)
    stats = awaited(CalledEntities.stats)
    update_raw = awaited(CalledEntities.update_raw)


class RecordedEntities(RecordedLayer):
    """The operations of `Entities`, kept to be sent together."""

    apply = recorded(CalledEntities.apply)
    count_raw = recorded(CalledEntities.count_raw)
    delete_raw = recorded(CalledEntities.delete_raw)
    drop = recorded(CalledEntities.drop)
    execute = recorded(CalledEntities.execute)
    get_raw = recorded(CalledEntities.get_raw)
    plan = recorded(CalledEntities.plan)
    put_raw = recorded(CalledEntities.put_raw)
    schema = recorded(CalledEntities.schema)
    schemas = recorded(CalledEntities.schemas)
    select_raw = recorded(CalledEntities.select_raw)
    stats = recorded(CalledEntities.stats)
    update_raw = recorded(CalledEntities.update_raw)


_APPLY: Final = Call("entities.apply", "write", CalledEntities.apply)
_BUILD: Final = Call("entities.build", "long", CalledEntities.build)
_CHECK: Final = Call("entities.check", "long", CalledEntities.check, only_reads=True)
_COUNT_RAW: Final = Call("entities.count", "read", CalledEntities.count_raw)
_DELETE_RAW: Final = Call("entities.delete", "write", CalledEntities.delete_raw)
_DEPLOY: Final = Call("entities.deploy", "long", CalledEntities.deploy)
_DROP: Final = Call("entities.drop", "write", CalledEntities.drop)
_DUMP_SOME: Final = Call("entities.dump_some", "long", CalledEntities.dump_some, only_reads=True)
_EXECUTE: Final = Call("entities.execute", "write", CalledEntities.execute, has_plain_result=True)
_GET_RAW: Final = Call("entities.get", "read", CalledEntities.get_raw)
_LOAD_SOME: Final = Call("entities.load_some", "long", CalledEntities.load_some)
_PLAN: Final = Call("entities.plan", "read", CalledEntities.plan)
_PUT_RAW: Final = Call("entities.put", "write", CalledEntities.put_raw)
_REPAIR: Final = Call("entities.repair", "long", CalledEntities.repair)
_SCHEMA: Final = Call("entities.schema", "read", CalledEntities.schema)
_SCHEMAS: Final = Call("entities.schemas", "read", CalledEntities.schemas)
_SELECT_RAW: Final = Call("entities.select", "read", CalledEntities.select_raw)
_STATS: Final = Call("entities.stats", "read", CalledEntities.stats)
_UPDATE_RAW: Final = Call("entities.update", "write", CalledEntities.update_raw)
