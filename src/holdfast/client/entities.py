"""Entities of a server: the operations, and the calls with models on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from holdfast.client import conversions
from holdfast.client.batches import Handle
from holdfast.client.generated.entities import CalledEntities, RecordedEntities
from holdfast.entities import mapper
from holdfast.entities.columns import EVERYTHING
from holdfast.entities.mapper import ModelCalls, Seconds
from holdfast.entities.messages import (
    CHANGED,
    Change,
    ChangeNotice,
    PutMode,
    Query,
    Reply,
    changed_topic,
)
from holdfast.entities.models import Model
from holdfast.entities.statements import (
    Order,
    Page,
    Select,
    Where,
    check_ids,
    flatten,
    select_options,
    stored_names,
    table_and_filters,
    to_select,
)
from holdfast.limits import DEFAULT_PAGE_ENTITIES

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.client.subscriptions import ClientSubscription

M = TypeVar("M", bound=Model)

decode_notice = msgspec.msgpack.Decoder(ChangeNotice).decode


def topic_of(table: str) -> str:
    """Returns the prefix of a table's change topics, or of all tables' without a name."""
    return changed_topic(table) if table else CHANGED


class ClientEntities(CalledEntities, ModelCalls):
    """The entities of one space of a server."""

    _space: "ClientSpace"

    def execute(self, queries: Sequence[Query]) -> list[Reply]:
        """Runs queries on any tables in order, all or none; returns a reply for each."""
        listed = list(queries)
        return conversions.replies(listed, super().execute(listed))

    def subscribe(self, table: str = "") -> "ClientSubscription":
        """Returns the change notices of one table, or of all, from now on; `read_notice` reads
        them."""
        return self._space.subscribe(topic_of(table))

    @staticmethod
    def read_notice(payload: bytes) -> ChangeNotice:
        """Decodes a change notice."""
        return decode_notice(payload)


class BatchEntities(RecordedEntities):
    """Operations on entities that are recorded to be sent together; also with models."""

    def execute(self, queries: Sequence[Query]) -> Handle[list[Reply]]:
        """Runs queries on any tables in order; returns a reply for each."""
        listed = list(queries)
        handle = super().execute(listed)
        return handle._map(lambda found: conversions.replies(listed, found))

    def put(
        self, *objects: Model, ttl: Seconds | None = None, mode: PutMode = "merge"
    ) -> Handle[list[str]]:
        """Puts objects; each gets its id once the batch has been sent."""
        puts = mapper.to_put(objects, ttl, mode)
        if len(puts) == 1:
            handle = self.put_raw(puts[0].table, puts[0].entities, mode=mode)
            return handle._map(lambda ids: mapper.set_ids(objects, ids))

        def done(found: Sequence[Any]) -> list[str]:
            return mapper.set_ids(objects, [id for reply in found for id in reply])

        return super().execute(puts)._map(done)

    def get(self, model: type[M], *ids: str, properties: Sequence[Any] = ()) -> Handle[list[M]]:
        """Returns the objects with these ids, in their order, without missing ones."""
        columns = stored_names(model, properties)
        handle = self.get_raw(mapper.table_of(model), check_ids(ids), properties=columns)
        return handle._map(lambda found: mapper.load(model, found))

    def get_one(
        self, model: type[M], id: str, *, properties: Sequence[Any] = ()
    ) -> Handle[M | None]:
        """Returns the object with this id, or None."""
        handle = self.get(model, id, properties=properties)
        return handle._map(lambda found: next(iter(found), None))

    @overload
    def select(self, model: Select[M], *filters: Where) -> Handle[Page[M]]: ...

    @overload
    def select(
        self,
        model: type[M],
        *filters: Where,
        order: Order | None = None,
        limit: int = DEFAULT_PAGE_ENTITIES,
        offset: int = 0,
        properties: Sequence[Any] = (),
        count: bool = True,
    ) -> Handle[Page[M]]: ...

    def select(
        self, model: type[M] | Select[M], *filters: Where, **options: Any
    ) -> Handle[Page[M]]:
        """Returns a page of the objects that all filters match; without a filter, of all
        objects."""
        chosen = to_select(model, filters, options)
        handle = self.select_raw(*table_and_filters(chosen), **select_options(chosen))
        return handle._map(lambda found: mapper.page(chosen.model, found))

    def count(self, model: type[Model], *filters: Where) -> Handle[int]:
        """Returns how many objects match; without a filter, how many there are."""
        return self.count_raw(mapper.table_of(model), flatten(filters) or (EVERYTHING,))

    def update(
        self,
        model: type[Model],
        *filters_and_changes: Where | Change,
        expire: Seconds | None = None,
        **changed: Any,
    ) -> Handle[int]:
        """Changes the entities that the filters select, and returns how many."""
        filters, changes = mapper.to_update(model, filters_and_changes, expire, changed)
        handle = self.update_raw(mapper.table_of(model), filters, changes)
        return handle._map(lambda updated: updated.num)

    def delete(self, model: type[Model], *filters: Where) -> Handle[int]:
        """Deletes the entities that the filters select, and returns how many."""
        return self.delete_raw(mapper.table_of(model), flatten(filters))
