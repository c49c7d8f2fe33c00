"""Statements: selections that are composed first and executed later.

select(User).where(User.name == "ann").order_by(User.rank.desc()).limit(10)
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

import msgspec

from holdfast.entities import messages
from holdfast.entities.columns import EVERYTHING, Col
from holdfast.entities.messages import Change, Filter, Ordering
from holdfast.entities.models import Model, shape_of
from holdfast.errors import BadQuery, UnknownColumn
from holdfast.limits import DEFAULT_PAGE_ENTITIES

M = TypeVar("M", bound=Model)

# A filter, several joined by `&`, or a bool: the type of `User.name == "x"` for a type checker.
Where = Filter | Iterable[Filter] | bool
Order = Ordering | Col[Any] | str


class Page(msgspec.Struct, Generic[M], frozen=True):
    """A page of objects, and the `total` of all matches: -1 if they were not counted."""

    items: list[M]
    total: int = 0
    partial: bool = False  # an index that is still being built answered: more may match

    def __iter__(self) -> Iterator[M]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at: int) -> M:
        return self.items[at]


class Select(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """A selection to be executed later. Each method returns a new one."""

    model: type[M]
    filters: tuple[Filter, ...] = ()
    order: Ordering | None = None
    first: int = 0
    most: int = DEFAULT_PAGE_ENTITIES
    properties: tuple[str, ...] = ()
    counted: bool = True

    def where(self, *filters: Where) -> Self:
        """Adds filters, all of which must match."""
        return msgspec.structs.replace(self, filters=self.filters + flatten(filters))

    def order_by(self, order: Order) -> Self:
        return msgspec.structs.replace(self, order=ordering(order))

    def limit(self, limit: int) -> Self:
        """Limits the answer to this many objects; -1 for all."""
        return msgspec.structs.replace(self, most=limit)

    def offset(self, offset: int) -> Self:
        return msgspec.structs.replace(self, first=offset)

    def only(self, *columns: Any) -> Self:
        """Selects only these columns; the others of the objects stay unset."""
        return msgspec.structs.replace(self, properties=stored_names(self.model, columns))

    def uncounted(self) -> Self:
        """Leaves out `total`, which is then -1."""
        return msgspec.structs.replace(self, counted=False)


def select(model: type[M]) -> Select[M]:
    """Returns the selection of all objects of a model, to be narrowed:
    `select(User).where(...)`."""
    return Select(model=model)


def flatten(filters: Iterable[Where | Change]) -> tuple[Filter, ...]:
    """Returns the filters in one tuple, however they were joined."""
    found: list[Filter] = []
    for each in filters:
        if isinstance(each, Filter):
            found.append(each)
        elif isinstance(each, Iterable) and not isinstance(each, str):
            found += flatten(each)
        else:
            raise BadQuery(f"{each!r} is not a filter", hint='A filter is User.name == "ann".')
    return tuple(found)


def stored_names(model: type[Model], columns: Sequence[Any]) -> tuple[str, ...]:
    """Returns the names in the store of columns, attributes, or names in the store."""
    if not columns:
        return ()
    shape = shape_of(model)
    wanted = []
    for each in columns:
        if isinstance(each, Col):
            wanted.append(each.name)
        elif each in shape.columns:
            wanted.append(shape.columns[each].name)
        elif each in shape.names or each == messages.ID:
            wanted.append(each)
        else:
            raise UnknownColumn.among(model.__name__, str(each), shape.columns)
    return tuple(wanted)


def ordering(order: Order | None) -> Ordering | None:
    if isinstance(order, Col):
        return order.asc()
    return Ordering(order) if isinstance(order, str) else order


def to_select(
    model: type[M] | Select[M], filters: tuple[Where, ...], options: dict[str, Any]
) -> Select[M]:
    if isinstance(model, Select):
        return model.where(*filters) if filters else model
    return Select(
        model=model,
        filters=flatten(filters),
        order=ordering(options.pop("order", None)),
        first=options.pop("offset", 0),
        most=options.pop("limit", DEFAULT_PAGE_ENTITIES),
        properties=stored_names(model, options.pop("properties", ())),
        counted=options.pop("count", True),
        **options,
    )


def table_and_filters(chosen: Select[M]) -> tuple[str, Sequence[Filter]]:
    return shape_of(chosen.model).name, chosen.filters or (EVERYTHING,)


def select_options(chosen: Select[M]) -> dict[str, Any]:
    return {
        "order": chosen.order,
        "offset": chosen.first,
        "limit": chosen.most,
        "properties": chosen.properties,
        "count": chosen.counted,
    }


def check_ids(ids: tuple[str, ...]) -> tuple[str, ...]:
    """Returns `ids`; raises unless each is text."""
    for id in ids:
        if not isinstance(id, str):
            raise BadQuery(
                f"an id must be text, not {id!r}", hint="Unpack a list of ids: get(User, *ids)."
            )
    return ids
