"""The operations of the entities layer on one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.call_time import CallTimer
from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.entities import deploys, selections, stats
from holdfast.entities.answer_meters import AnswerMeter
from holdfast.entities.entity_writer import EntityWriter
from holdfast.entities.index_choice import ByIndex, ByPrimary, Selection, choose, only_id
from holdfast.entities.mapper import StoredModelCalls
from holdfast.entities.messages import (
    ALL,
    ID,
    Change,
    Del,
    Entity,
    Filter,
    Get,
    Ordering,
    Page,
    Ping,
    Put,
    PutEntity,
    PutMode,
    Query,
    Reply,
    Update,
    Updated,
    whole_entity,
)
from holdfast.entities.plan import Plan, plan
from holdfast.entities.puts import check_version, put
from holdfast.entities.query_checks import check_filters, check_paging, check_queries
from holdfast.entities.records import Stored
from holdfast.entities.schema import Schema
from holdfast.entities.schema_records import check_records
from holdfast.entities.selections import FoundEntities
from holdfast.entities.table_access import TableAccess, access_to
from holdfast.entities.updates import check_changes, takes_long, update_entity
from holdfast.error_text import shown
from holdfast.errors import BadInput, BadQuery, IndexNotReady, InvalidTable
from holdfast.keys import pack_str
from holdfast.limits import (
    DEFAULT_PAGE_ENTITIES,
    MAX_BATCH_SECONDS,
    MAX_NOTICE_CHANGES,
    SECONDS_PER_CHANGED_ENTITY,
    SECONDS_PER_ITEM,
)

_EVERYTHING: Final = (Filter(ID, ALL),)
_SPLIT_HINT: Final = "Split it: fewer queries, entities or changes in one call."


class Entities(StoredModelCalls):
    """Schemaless objects with ids, expiry, versions and indexes, in tables that a schema names."""

    def __init__(self, tx: Transaction, meter: AnswerMeter | None = None) -> None:
        """`meter` bounds the answers of several calls together."""
        self._tx = tx
        self._meter = meter

    # --- entities -----------------------------------------------------------------------------

    @operation(name="put", holds_entities=True, convert=("entities", whole_entity))
    def put_raw(
        self,
        table: str,
        entities: Iterable[PutEntity | Mapping[str, Any]],
        *,
        mode: PutMode = "merge",
    ) -> list[str]:
        """Writes entities and returns their ids, in the order given.

        An entity is a `PutEntity`, or a dict of its properties with its id as `id`. The mode
        "merge" sets the given properties and keeps the others; "replace" keeps no others; "insert"
        raises if the id exists. If one entity is refused, none is written.

        Reads 1 key and 1 per given id; writes 1 per entity, 1 per index entry, and the counters.
        """
        if not table:
            raise BadQuery("No table for PUT query")
        if type(entities) is not list and not isinstance(entities, Iterable):
            raise BadQuery(f"entities must be a list, not {entities!r}")
        listed = [e if type(e) is PutEntity else _put_entity(e) for e in entities]
        if not listed:
            raise BadQuery("PUT query does not contain entities")
        return put(self._tx, access_to(self._tx, table), listed, mode)

    @operation(name="get", reads=True, holds_entities=True, holds_values=True)
    def get_raw(
        self, table: str, ids: Iterable[str], *, properties: Sequence[str] = ()
    ) -> list[Entity]:
        """Returns the entities with these ids, in this order; missing ones are left out.

        It takes up to 100,000 ids. Reads 1 key, and 1 per id.
        """
        return _entities(self._fetched(table, ids, kept=False), properties)

    @operation(name="select", reads=True, holds_entities=True, holds_values=True)
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
        """Returns a page of the entities that match all `filters`, and with `count` how many match.

        The filters must name the first columns of an index, or `id`, or all columns of the primary
        key. Raises `IndexNotReady` while the index is being built, unless `partial` is set: then
        the answer has the entities that are indexed already. A limit of -1 asks for all, if these
        are at most 100,000.

        Reads 1 key, and 2 per entity of the page. Counting, or skipping by an index, reads a few
        hundred entries more. An offset over several values of IN, or over ids, reads every entry
        that it skips; counting a range of ids reads all of it.
        """
        found = self._page(table, filters, order, offset, limit, count, partial)
        return Page(_entities(found, properties), found.total, found.partial)

    @operation(name="count", reads=True, holds_entities=True)
    def count_raw(self, table: str, filters: Sequence[Filter] = _EVERYTHING) -> int:
        """Returns how many entities match; without filters, how many the table holds.

        Reads 2 keys for a table, and a few hundred entries for a selection, however many match; a
        filter on ids reads every one.
        """
        if not table:
            raise BadQuery("No table for GET query")
        access, selection = self._choose_ready(table, filters)
        return selections.count_all(self._tx, access, selection)

    @operation(name="update", holds_entities=True)
    def update_raw(
        self,
        table: str,
        filters: Sequence[Filter],
        changes: Sequence[Change],
        *,
        if_version: int | None = None,
    ) -> Updated:
        """Applies `changes`, in order, to every entity that matches all `filters`.

        Returns how many entities were selected. Reads and writes the keys of these entities.
        """
        if not table:
            raise BadQuery("No table for UPDATE query")
        if not filters:
            raise BadQuery("No selection filters for Update query")
        if not changes:
            raise BadQuery("No changes in update query")
        if not isinstance(changes, Iterable):
            raise BadQuery(f"changes must be a list, not {shown(changes)}")
        steps = check_changes(changes)
        tx, only = self._tx, only_id(filters)
        if only is not None:
            access, id_part = access_to(tx, table), pack_str(only)
            old = selections.load_one(tx, access, id_part, access.kept)
            selected = [] if old is None else [(only, id_part, old)]
        else:
            access, selection = self._choose_ready(table, filters)
            found = selections.find_all(tx, access, selection)
            selected = [(id, pack_str(id), old) for id, old in found.pairs()]
        writer, skipped = EntityWriter(tx, access), 0
        timer = None
        if takes_long(steps):
            seconds = MAX_BATCH_SECONDS + len(selected) * SECONDS_PER_CHANGED_ENTITY
            timer = CallTimer("the update", _SPLIT_HINT, seconds)
        for id, id_part, old in selected:
            if if_version is not None:
                check_version(access, id, old, if_version)
            skipped += update_entity(writer, id, id_part, old, steps, timer)
        writer.finish()
        return Updated(len(selected), skipped)

    @operation(name="delete", holds_entities=True)
    def delete_raw(
        self, table: str, filters: Sequence[Filter], *, if_version: int | None = None
    ) -> int:
        """Deletes the entities that match all `filters`, and returns how many there were.

        Reads and deletes the keys of these entities; deleting all of a table costs as `drop` does.
        """
        if not table:
            raise BadQuery("DelQuery has no table")
        access, selection = self._choose_ready(table, filters)
        if isinstance(selection, ByPrimary) and selection.is_all and if_version is None:
            held = selections.live_size(self._tx, access)
            if held > MAX_NOTICE_CHANGES:
                return deploys.drop(self._tx, table)
        selected = selections.find_all(self._tx, access, selection)
        writer = EntityWriter(self._tx, access)
        for id, old in selected.pairs():
            check_version(access, id, old, if_version)
            writer.remove(id, pack_str(id), old, op="delete")
        writer.finish()
        return len(selected.ids)

    @operation(holds_values=True)
    def execute(self, queries: Sequence[Query]) -> list[Reply]:
        """Runs queries on any tables in order, all or none, and returns a reply for each.

        Costs what each query does alone, and one commit.
        """
        check_queries(len(queries))
        together = self if self._meter is not None else Entities(self._tx, AnswerMeter())
        seconds = MAX_BATCH_SECONDS + len(queries) * SECONDS_PER_ITEM
        timer = CallTimer("the queries", _SPLIT_HINT, seconds)
        replies: list[Reply] = []
        for query in queries:
            if replies:
                timer.check()
            replies.append(together._execute(query))
        return replies

    # --- for mappers --------------------------------------------------------------------------

    @operation(reads=True, local=True)
    def fetch(
        self, table: str, ids: Iterable[str], *, kept: bool = False
    ) -> list[tuple[str, Stored]]:
        """Like `get_raw`, but returns ids with stored entities; `kept` leaves Sets as stored."""
        return list(self._fetched(table, ids, kept).pairs())

    def _fetched(self, table: str, ids: Iterable[str], kept: bool) -> FoundEntities:
        if not table:
            raise BadQuery("No table for GET query")
        access = access_to(self._tx, table)
        if type(ids) is not list:
            ids = _listed(ids, "ids")
        meter = self._meter
        if meter is None and len(ids) > 1:  # a single entity is never too large
            meter = AnswerMeter()
        if meter is not None:
            meter.expect(len(ids))
        return selections.load(self._tx, access, ids, access.kept if kept else access.plain, meter)

    @operation(reads=True, local=True)
    def fetch_page(
        self,
        table: str,
        filters: Sequence[Filter],
        *,
        order: Ordering | None = None,
        offset: int = 0,
        limit: int = DEFAULT_PAGE_ENTITIES,
        count: bool = True,
        partial: bool = False,
        kept: bool = False,
    ) -> FoundEntities:
        """Like `select_raw`, but returns ids with stored entities; `kept` leaves Sets as stored."""
        return self._page(table, filters, order, offset, limit, count, partial, kept)

    def _page(
        self,
        table: str,
        filters: Sequence[Filter],
        order: Ordering | None,
        offset: int,
        limit: int,
        count: bool,
        partial: bool,
        kept: bool = False,
    ) -> FoundEntities:
        if not table:
            raise BadQuery("No table for GET query")
        if not filters:
            raise BadQuery("No filters for GET query")
        check_paging(offset, limit)
        if order is not None and not isinstance(order, Ordering):
            raise BadQuery(f"{order!r} is not an ordering", hint='One is Ordering("name").')
        access = self._access_for(table, filters)
        selection = choose(access, filters, order)
        if not partial and isinstance(selection, ByIndex) and not selection.index.ready:
            _check_ready(selection)
        meter = self._meter or AnswerMeter()
        readers = access.kept if kept else access.plain
        return selections.find(self._tx, access, selection, readers, offset, limit, count, meter)

    # --- schemas ------------------------------------------------------------------------------

    @operation(reads=True)
    def schema(self, name: str) -> Schema | None:
        """Returns the schema as it is deployed, or None. Reads 1 key per table."""
        return deploys.deployed(self._tx, name)

    @operation(reads=True)
    def schemas(self) -> list[str]:
        """Returns the names of all deployed schemas. Reads 1 key per table."""
        return deploys.schema_names(self._tx)

    @operation(reads=True)
    def plan(self, schema: Schema, *, prune: bool = False) -> Plan:
        """Returns what `deploy` would change. Reads 1 key per table."""
        return plan(deploys.deployed(self._tx, schema.name), schema, prune=prune)

    @operation(role="admin")
    def apply(self, schema: Schema, *, prune: bool = False, force: bool = False) -> Plan:
        """Deploys the tables of `schema` and returns what changed; indexes are built later.

        The schema is checked as a file is. Tables that it does not mention stay. With `prune` they
        are removed if they are empty, or with `force` in any case.
        Reads 1 key per table, writes 1, and 2 for each index that is to be built or cleared.
        """
        check_records(schema)
        return deploys.deploy(self._tx, schema, prune=prune, force=force)

    @operation(role="admin")
    def drop(self, table: str) -> int:
        """Empties a table at once and returns how many entities it held; it stays deployed.

        Writes 2 keys, and 2 per index; the entities are cleared in the background.
        """
        return deploys.drop(self._tx, table)

    @operation(reads=True)
    def stats(
        self, *, after: str | None = None, limit: int | None = None
    ) -> dict[str, stats.TableStats]:
        """Returns size and index states of every table, or of up to `limit` after `after`.

        Reads 1 key for each table, and about 100 entities of those that it returns.
        """
        if limit is not None and limit < 1:
            raise BadInput(f"limit is {limit}, but must be at least 1")
        return stats.all_tables(self._tx, after, limit)

    def _choose_ready(self, table: str, filters: Sequence[Filter]) -> tuple[TableAccess, Selection]:
        """Returns the selection of the filters; raises if its index is still being built."""
        access = self._access_for(table, filters)
        selection = choose(access, filters, None)
        _check_ready(selection)
        return access, selection

    def _access_for(self, table: str, filters: Sequence[Filter]) -> TableAccess:
        try:
            return access_to(self._tx, table)
        except InvalidTable:
            check_filters(filters)  # an error in the query itself is reported first
            raise

    def _execute(self, query: Query) -> Reply:
        match query:
            case Put(table, entities, mode):
                return self.put_raw(table, entities, mode=mode)
            case Get():
                page = self.select_raw(
                    query.table,
                    query.filters,
                    order=query.order,
                    offset=query.paging.offset,
                    limit=query.paging.limit,
                    properties=query.properties,
                    count=query.count,
                    partial=True,
                )
                return page
            case Update(table, filters, changes, if_version):
                return self.update_raw(table, filters, changes, if_version=if_version)
            case Del(table, filters, if_version):
                return self.delete_raw(table, filters, if_version=if_version)
            case Ping():
                return None


def _check_ready(selection: Selection) -> None:
    if isinstance(selection, ByIndex) and not selection.index.ready:
        raise IndexNotReady(f"index {selection.index.name} is still being built")


def _put_entity(entity: PutEntity | Mapping[str, Any]) -> PutEntity:
    if isinstance(entity, PutEntity):
        return entity
    if type(entity) is not dict and not isinstance(entity, Mapping):
        raise BadQuery(
            f"an entity must be a dict of its properties or a PutEntity, not {shown(entity)}",
            hint="put_raw takes a list of entities.",
        )
    return PutEntity(dict(entity), entity.get(ID))


def _entities(found: FoundEntities, properties: Sequence[str]) -> list[Entity]:
    if not properties:
        return [Entity(id, stored.properties, 0, stored.version) for id, stored in found.pairs()]
    names = positions(properties)
    return [
        Entity(id, project(stored.properties, names), 0, stored.version)
        for id, stored in found.pairs()
    ]


def _listed(given: Iterable[str], what: str) -> list[str]:
    """Returns a list of the texts; one text alone, whose letters Python would list, is refused."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise BadQuery(f"{what} must be a list of texts, not {shown(given)}")
    return list(given)


def positions(names: Iterable[str]) -> dict[str, int]:
    """Returns the distinct names with their positions: the argument of `project`."""
    if type(names) is not list:
        names = _listed(names, "properties")
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def project(properties: dict[str, Any], names: Mapping[str, int]) -> dict[str, Any]:
    """Returns the named properties that exist, in the order of their positions."""
    if len(names) > len(properties):  # a call may name many for entities that have few
        names = dict.fromkeys(sorted(names.keys() & properties.keys(), key=names.__getitem__), 0)
    return {name: properties[name] for name in names if name in properties}
