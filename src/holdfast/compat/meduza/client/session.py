"""A session of the public Meduza client: the calls that take models."""

from collections.abc import Iterable
from typing import Any, TypeVar

from holdfast.compat.meduza.client.client import Connector, defaultConnector
from holdfast.compat.meduza.client.errors import MeduzaError, ModelError, RequestError
from holdfast.compat.meduza.client.model import Model
from holdfast.compat.meduza.client.queries import (
    Change,
    Condition,
    DelQuery,
    Filter,
    GetQuery,
    Ordering,
    Paging,
    PutQuery,
    Query,
    UpdateQuery,
)

M = TypeVar("M", bound=Model)


class Session:
    """The calls with models: writes use the master's connector, reads the slave's.

    Filters are given one by one, in any collection, or by the keyword of the public client.
    """

    def __init__(
        self,
        masterConnector: Connector = defaultConnector,
        slaveConnector: Connector = defaultConnector,
    ) -> None:
        self._master = masterConnector
        self._slave = slaveConnector

    def put(self, *objects: Model) -> list[str]:
        """Puts objects of one model, sets their ids and returns them."""
        return self.putExpiring(-1, *objects)

    def putExpiring(self, ttl: float, *objects: Model) -> list[str]:
        """Puts objects that live for `ttl` seconds; 0 or less means for ever."""
        if not objects:
            raise MeduzaError("PUT query does not contain entities")
        if not isinstance(ttl, (int, float)):
            raise MeduzaError(f"a time to live must be a number of seconds, not {ttl!r}")
        for each in objects:
            if not isinstance(each, Model):
                raise ModelError(f"Non model object found: {each!r}")
            if type(each) is not type(objects[0]):
                raise MeduzaError("All objects in a PUT call must be of the same class")
        query = PutQuery(objects[0].tableName())
        for each in objects:
            entity = each.encode()
            query.add(entity.expire(ttl) if ttl > 0 else entity)
        ids: list[str] = self._do(self._master, query).ids
        for each, id in zip(objects, ids, strict=True):
            each.setPrimary(id)
        return ids

    def get(
        self, model: type[M], *ids: str, properties: Iterable[Any] = (), withTotal: bool = False
    ) -> Any:
        """Returns the objects with these ids in their order, missing ones left out."""
        for id in ids:
            if not isinstance(id, str):
                raise MeduzaError(f"Invalid id type: {type(id).__name__}")
        if not ids:
            return ([], 0) if withTotal else []
        query = GetQuery(model.tableName(), _names(model, properties))
        query.filter(model.primary(), Condition.IN, *ids).limit(len(ids))
        return self._load(model, query, withTotal)

    def select(
        self,
        model: type[M],
        *given: Any,
        filters: Any = (),
        properties: Iterable[Any] = (),
        order: Ordering | None = None,
        paging: Paging | None = None,
        limit: int | None = None,
        withTotal: bool = False,
    ) -> Any:
        """Returns the objects that match all filters: a list, or with `withTotal` a list and the
        total."""
        for option, kind in ((order, Ordering), (paging, Paging)):
            if option is not None and not isinstance(option, kind):
                raise MeduzaError(f"{option!r} is not of type {kind.__name__}")
        if paging is None and limit is not None:
            paging = Paging(0, limit)
        names = _names(model, properties)
        query = GetQuery(model.tableName(), names, flatten((*given, filters)), order, paging)
        return self._load(model, query, withTotal)

    def count(self, model: type[Model], *given: Any, filters: Any = ()) -> int:
        """Returns how many entities match all filters; without filters, how many the table
        holds."""
        chosen = flatten(each for each in (*given, filters) if each is not None) or model.all()
        _, total = self.select(model, chosen, limit=1, withTotal=True)
        number: int = total
        return number

    def update(
        self, model: type[Model], *filters_and_changes: Any, filters: Any = (), **changes: Any
    ) -> int:
        """Changes the entities that match all filters, and returns how many there were.

        A keyword is an attribute: a value sets it, a change must be its own; `_` takes any change.
        """
        chosen = [each for each in filters_and_changes if not isinstance(each, Change)]
        listed = [each for each in filters_and_changes if isinstance(each, Change)]
        for attribute, value in changes.items():
            if attribute != "_":
                listed.append(_change(model, attribute, value))
            elif isinstance(value, Change):
                listed.append(value)
            else:
                raise MeduzaError(f"_ takes a Change, not {value!r}")
        query = UpdateQuery(model.tableName(), flatten((*chosen, filters)), *listed)
        number: int = self._do(self._master, query).num
        return number

    def delete(self, model: type[Model], *given: Any, filters: Any = ()) -> int:
        """Deletes the entities that match all filters, and returns how many there were."""
        query = DelQuery(model.tableName(), *flatten((*given, filters)))
        number: int = self._do(self._master, query).num
        return number

    def _load(self, model: type[M], query: GetQuery, withTotal: bool) -> Any:
        response = self._do(self._slave, query)
        objects: list[M] = response.load(model)
        return (objects, response.total) if withTotal else objects

    def _do(self, connector: Connector, query: Query) -> Any:
        with connector() as client:
            response = client.do(query)
        if response.error is not None:
            raise RequestError(response.error, response.code or "")
        return response


def _change(model: type[Model], attribute: str, value: Any) -> Change:
    column = getattr(model, attribute)  # an unknown keyword is an AttributeError
    if not isinstance(value, Change):
        return Change.set(column.name, column.encode(value))
    if value.property != column.name:
        raise AssertionError(f"Mismatching property key and name {attribute}")
    return value


def _names(model: type[Model], properties: Iterable[Any]) -> list[str]:
    """Returns the names in the store of attributes, columns, or names in the store."""
    attributes = {column.modelName: column.name for column in model.__columns__.values()}
    given = (getattr(each, "name", each) for each in properties)
    return [each if each in model.__columns__ else attributes.get(each, each) for each in given]


def flatten(filters: Iterable[Any]) -> list[Filter]:
    """Returns the filters in one list, however they were joined."""
    found: list[Filter] = []
    for each in filters:
        if isinstance(each, Filter):
            found.append(each)
        elif isinstance(each, Iterable) and not isinstance(each, (str, bytes)):
            found += flatten(each)
        else:
            raise MeduzaError(f"{each!r} is not a filter")
    return found
