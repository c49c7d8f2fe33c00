"""The public Meduza client's API, so that old programs need one changed import line.

    from holdfast import meduza
    from holdfast.meduza.columns import Int, Text

    class User(meduza.Model):
        _schema, _table = "test", "Users"
        name = Text("name", required=True)
        score = Int("score", default=0)

    meduza.setup(meduza.customConnector("localhost", 9977))
    meduza.put(User(name="ann"))

`storeConnector(store)` serves the same calls from a store in this process, without a network. New
programs should use `holdfast.entities`.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from holdfast.compat.meduza.client.client import (
    Connector,
    RedisClient,
    customConnector,
    defaultConnector,
    ping,
    storeConnector,
)
from holdfast.compat.meduza.client.columns import (
    Binary,
    Bool,
    Float,
    Int,
    Key,
    List,
    Map,
    Set,
    Text,
    Timestamp,
    Uint,
)
from holdfast.compat.meduza.client.errors import (
    ColumnValueError,
    MeduzaError,
    ModelError,
    RequestError,
)
from holdfast.compat.meduza.client.model import Model
from holdfast.compat.meduza.client.queries import (
    Change,
    Condition,
    DelQuery,
    Entity,
    Filter,
    GetQuery,
    Ordering,
    Paging,
    PingQuery,
    PutQuery,
    UpdateQuery,
)
from holdfast.compat.meduza.client.session import Session

M = TypeVar("M", bound=Model)


class _Default:
    """The session of the module's functions; `setup` replaces it."""

    session = Session()


def setup(
    masterConnector: Connector = defaultConnector, slaveConnector: Connector = defaultConnector
) -> None:
    """Makes the default session: writes go through the first connector, reads the second."""
    _Default.session = Session(masterConnector, slaveConnector)


def put(*objects: Model) -> list[str]:
    """Puts objects of one model, sets their ids and returns them."""
    return _Default.session.put(*objects)


def putExpiring(ttl: float, *objects: Model) -> list[str]:
    """Puts objects that live for `ttl` seconds; 0 or less means for ever."""
    return _Default.session.putExpiring(ttl, *objects)


def get(model: type[M], *ids: str, properties: Iterable[Any] = (), withTotal: bool = False) -> Any:
    """Returns the objects with these ids in their order, missing ones left out."""
    return _Default.session.get(model, *ids, properties=properties, withTotal=withTotal)


def select(model: type[M], *given: Any, **options: Any) -> Any:
    """Returns the objects that match all filters: a list, or with `withTotal` a list and the
    total."""
    return _Default.session.select(model, *given, **options)


def update(model: type[Model], *filters_and_changes: Any, **changes: Any) -> int:
    """Changes the entities that match all filters, and returns how many there were."""
    return _Default.session.update(model, *filters_and_changes, **changes)


def delete(model: type[Model], *given: Any, filters: Any = ()) -> int:
    """Deletes the entities that match all filters, and returns how many there were."""
    return _Default.session.delete(model, *given, filters=filters)


def count(model: type[Model], *given: Any, filters: Any = ()) -> int:
    """Returns how many entities match all filters; without filters, how many the table holds."""
    return _Default.session.count(model, *given, filters=filters)


__all__ = [
    "Binary",
    "Bool",
    "Change",
    "ColumnValueError",
    "Condition",
    "DelQuery",
    "Entity",
    "Filter",
    "Float",
    "GetQuery",
    "Int",
    "Key",
    "List",
    "Map",
    "MeduzaError",
    "Model",
    "ModelError",
    "Ordering",
    "Paging",
    "PingQuery",
    "PutQuery",
    "RedisClient",
    "RequestError",
    "Session",
    "Set",
    "Text",
    "Timestamp",
    "Uint",
    "UpdateQuery",
    "count",
    "customConnector",
    "defaultConnector",
    "delete",
    "get",
    "ping",
    "put",
    "putExpiring",
    "select",
    "setup",
    "storeConnector",
    "update",
]
