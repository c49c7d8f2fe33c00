"""The operations of entities in terms of models, for programs that `await`.

Made by `make client` from holdfast.entities.mapper.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from holdfast.entities.columns import EVERYTHING
from holdfast.entities.mapper import M, Seconds, load, page, set_ids, table_of, to_put, to_update
from holdfast.entities.messages import Change, PutMode
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


class AsyncModelCalls:
    """Put, get, select, update and delete objects of models."""

    if TYPE_CHECKING:
        put_raw: Any
        get_raw: Any
        select_raw: Any
        update_raw: Any
        delete_raw: Any
        count_raw: Any
        execute: Any

    async def put(
        self, *objects: Model, ttl: Seconds | None = None, mode: PutMode = "merge"
    ) -> list[str]:
        """Puts objects, all or none, sets the id of each, and returns the ids.

        Raises `VersionMismatch` if an object that was loaded has been changed in the store since.
        `ttl` is how long they live from now: a timedelta, or seconds.

        Reads and writes what `put_raw` does.
        """
        puts = to_put(objects, ttl, mode)
        if len(puts) == 1:
            ids = await self.put_raw(puts[0].table, puts[0].entities, mode=mode)
        else:
            ids = [id for reply in await self.execute(puts) for id in reply]
        return set_ids(objects, ids)

    async def get(self, model: type[M], *ids: str, properties: Sequence[Any] = ()) -> list[M]:
        """Returns the objects with these ids, in their order; those that are missing are left out.

        Reads what `get_raw` does.
        """
        return (
            await self._load_objects(model, check_ids(ids), stored_names(model, properties))
            if ids
            else []
        )

    async def get_one(self, model: type[M], id: str, *, properties: Sequence[Any] = ()) -> M | None:
        """Returns the object with this id, or None.

        Reads what `get_raw` does.
        """
        found = await self._load_objects(model, check_ids((id,)), stored_names(model, properties))
        return found[0] if found else None

    @overload
    async def select(self, model: Select[M], *filters: Where) -> Page[M]: ...

    @overload
    async def select(
        self,
        model: type[M],
        *filters: Where,
        order: Order | None = None,
        limit: int = DEFAULT_PAGE_ENTITIES,
        offset: int = 0,
        properties: Sequence[Any] = (),
        count: bool = True,
    ) -> Page[M]: ...

    async def select(self, model: type[M] | Select[M], *filters: Where, **options: Any) -> Page[M]:
        """Returns a page of the objects that match all filters; without a filter, of all objects.

        Reads what `select_raw` does.
        """
        return await self._load_objects_page(to_select(model, filters, options))

    async def count(self, model: type[Model], *filters: Where) -> int:
        """Returns how many objects match; without a filter, how many there are.

        Reads what `count_raw` does.
        """
        number: int = await self.count_raw(table_of(model), flatten(filters) or (EVERYTHING,))
        return number

    async def update(
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
        number: int = (await self.update_raw(table_of(model), filters, changes)).num
        return number

    async def delete(self, model: type[Model], *filters: Where) -> int:
        """Deletes the entities that match all filters, and returns how many there were.

        Reads and writes what `delete_raw` does.
        """
        number: int = await self.delete_raw(table_of(model), flatten(filters))
        return number

    # A class that reads the stored bytes itself overrides these:

    async def _load_objects(
        self, model: type[M], ids: Sequence[str], properties: Sequence[str]
    ) -> list[M]:
        return load(model, await self.get_raw(table_of(model), ids, properties=properties))

    async def _load_objects_page(self, chosen: Select[M]) -> Page[M]:
        return page(
            chosen.model,
            await self.select_raw(*table_and_filters(chosen), **select_options(chosen)),
        )
