"""The operations of the store in terms of models.

    store.entities.put(User(name="ann"))
    store.entities.select(select(User).where(User.name == "ann").order_by(User.rank.desc()))

`ModelCalls` extends any class with the `_raw` operations: the store, a transaction, a client.
The client generator makes `AsyncModelCalls` from it; what they share is in the functions below.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.declarations import operation
from holdfast.entities import messages
from holdfast.entities.columns import EVERYTHING
from holdfast.entities.messages import Change, Entity, Filter, Put, PutEntity, PutMode
from holdfast.entities.model_shapes import VERSION
from holdfast.entities.models import Model, shape_of
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
from holdfast.errors import BadChange, BadModel, BadQuery, BadValue, UnknownColumn
from holdfast.limits import DEFAULT_PAGE_ENTITIES

M = TypeVar("M", bound=Model)
Seconds = timedelta | float


class ModelCalls:
    """Put, get, select, update and delete objects of models."""

    if TYPE_CHECKING:
        put_raw: Any
        get_raw: Any
        select_raw: Any
        update_raw: Any
        delete_raw: Any
        count_raw: Any
        execute: Any

    @operation(local=True)
    def put(
        self, *objects: Model, ttl: Seconds | None = None, mode: PutMode = "merge"
    ) -> list[str]:
        """Puts objects, all or none, sets the id of each, and returns the ids.

        Raises `VersionMismatch` if an object that was loaded has been changed in the store since.
        `ttl` is how long they live from now: a timedelta, or seconds.

        Reads and writes what `put_raw` does.
        """
        puts = to_put(objects, ttl, mode)
        if len(puts) == 1:
            ids = self.put_raw(puts[0].table, puts[0].entities, mode=mode)
        else:
            ids = [id for reply in self.execute(puts) for id in reply]
        return set_ids(objects, ids)

    @operation(reads=True, local=True)
    def get(self, model: type[M], *ids: str, properties: Sequence[Any] = ()) -> list[M]:
        """Returns the objects with these ids, in their order; those that are missing are left out.

        Reads what `get_raw` does.
        """
        return (
            self._load_objects(model, check_ids(ids), stored_names(model, properties))
            if ids
            else []
        )

    @operation(reads=True, local=True)
    def get_one(self, model: type[M], id: str, *, properties: Sequence[Any] = ()) -> M | None:
        """Returns the object with this id, or None.

        Reads what `get_raw` does.
        """
        found = self._load_objects(model, check_ids((id,)), stored_names(model, properties))
        return found[0] if found else None

    @overload
    def select(self, model: Select[M], *filters: Where) -> Page[M]: ...

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
    ) -> Page[M]: ...

    @operation(reads=True, local=True)
    def select(self, model: type[M] | Select[M], *filters: Where, **options: Any) -> Page[M]:
        """Returns a page of the objects that match all filters; without a filter, of all objects.

        Reads what `select_raw` does.
        """
        return self._load_objects_page(to_select(model, filters, options))

    @operation(reads=True, local=True)
    def count(self, model: type[Model], *filters: Where) -> int:
        """Returns how many objects match; without a filter, how many there are.

        Reads what `count_raw` does.
        """
        number: int = self.count_raw(table_of(model), flatten(filters) or (EVERYTHING,))
        return number

    @operation(local=True)
    def update(
        self,
        model: type[Model],
        *filters_and_changes: Where | Change,
        expire: Seconds | None = None,
        **values: Any,
    ) -> int:
        """Changes the entities that match all filters, and returns how many there were.

        A keyword is a column: a value sets it, a change such as `User.score + 3` is applied.
        `expire` sets how long the entities live from now.

        Reads and writes what `update_raw` does.
        """
        filters, changes = to_update(model, filters_and_changes, expire, values)
        number: int = self.update_raw(table_of(model), filters, changes).num
        return number

    @operation(local=True)
    def delete(self, model: type[Model], *filters: Where) -> int:
        """Deletes the entities that match all filters, and returns how many there were.

        Reads and writes what `delete_raw` does.
        """
        number: int = self.delete_raw(table_of(model), flatten(filters))
        return number

    # A class that reads the stored bytes itself overrides these:

    def _load_objects(
        self, model: type[M], ids: Sequence[str], properties: Sequence[str]
    ) -> list[M]:
        return load(model, self.get_raw(table_of(model), ids, properties=properties))

    def _load_objects_page(self, chosen: Select[M]) -> Page[M]:
        return page(
            chosen.model, self.select_raw(*table_and_filters(chosen), **select_options(chosen))
        )


class StoredModelCalls(ModelCalls):
    """`ModelCalls` on a store or a transaction: decodes stored bytes directly into objects."""

    if TYPE_CHECKING:
        fetch: Any
        fetch_page: Any

    def _load_objects(
        self, model: type[M], ids: Sequence[str], properties: Sequence[str]
    ) -> list[M]:
        if properties:
            return super()._load_objects(model, ids, properties)
        shape = shape_of(model)
        return shape.load(model, self.fetch(shape.name, ids))

    def _load_objects_page(self, chosen: Select[M]) -> Page[M]:
        if chosen.properties:
            return super()._load_objects_page(chosen)
        shape = shape_of(chosen.model)
        found = self.fetch_page(
            shape.name,
            chosen.filters or (EVERYTHING,),
            order=chosen.order,
            offset=chosen.first,
            limit=chosen.most,
            count=chosen.counted,
        )
        return Page(shape.load(chosen.model, found.pairs()), found.total, found.partial)


# --- shared with the async twin, without any I/O -------------------------------------------------


def table_of(model: type[Model]) -> str:
    return shape_of(model).name


def nanoseconds(span: Seconds) -> int:
    if not isinstance(span, timedelta):
        try:
            return round(span * 1_000_000_000)
        except (TypeError, ValueError, OverflowError):
            hint = "Give a timedelta, or a number of seconds."
            raise BadValue(f"Invalid value for TTL: {span!r}", hint=hint) from None
    return ((span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds) * 1000


def to_put(objects: Sequence[Model], ttl: Seconds | None, mode: PutMode) -> list[Put]:
    """Returns the queries that put these objects: one for each run of the same model."""
    life = 0 if ttl is None else nanoseconds(ttl)
    puts: list[Put] = []
    entities: list[PutEntity] = []
    model: type[Model] | None = None
    for each in objects:
        if type(each) is not model:
            if not isinstance(each, Model):
                raise BadModel(
                    f"{each!r} is not an object of a model", hint="Put dicts with put_raw."
                )
            model, entities = type(each), []
            shape = shape_of(model)
            puts.append(Put(shape.name, entities, mode))
        values = each.__dict__
        properties = shape.encode(values)
        seen = values.get(VERSION) or None
        if seen is not None and not shape.keeps_id(properties, values["id"]):
            seen = None  # with other key columns it is another entity, of unknown version
        entities.append(PutEntity(properties, values.get("id"), life, seen))
    if not puts:
        raise BadQuery("PUT query does not contain entities")
    return puts


def set_ids(objects: Sequence[Model], ids: list[str]) -> list[str]:
    """Sets the ids and versions of objects that were put."""
    for each, id in zip(objects, ids, strict=True):
        values = each.__dict__
        if values.get("id") == id and values.get(VERSION):
            values[VERSION] += 1
        else:
            values.pop(VERSION, None)
            values["id"] = id
    return ids


def load(model: type[M], entities: Sequence[Entity]) -> list[M]:
    return shape_of(model).load(model, ((entity.id, entity) for entity in entities))


def page(model: type[M], raw: messages.Page) -> Page[M]:
    return Page(load(model, raw.entities), raw.total, raw.partial)


def to_update(
    model: type[Model],
    filters_and_changes: Iterable[Where | Change],
    expire: Seconds | None,
    values: dict[str, Any],
) -> tuple[tuple[Filter, ...], list[Change]]:
    """Returns the filters and the changes of an update, changes by keyword first."""
    shape = shape_of(model)
    filters = flatten(each for each in filters_and_changes if not isinstance(each, Change))
    changes: list[Change] = []
    for attribute, value in values.items():
        column = shape.columns.get(attribute)
        if column is None:
            raise UnknownColumn.among(model.__name__, attribute, shape.columns)
        if not isinstance(value, Change):
            changes.append(Change(messages.SET, column.name, shape.checked_value(attribute, value)))
        elif value.property == column.name:
            changes.append(value)
        else:
            raise BadChange(f"{attribute}= is given a change of the column {value.property}")
    changes += [each for each in filters_and_changes if isinstance(each, Change)]
    if expire is not None:
        changes.append(Change(messages.EXP, "", nanoseconds(expire)))
    return filters, changes
