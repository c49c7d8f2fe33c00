"""Models: classes whose objects are entities.

    class User(Model, schema="test", table="Users", primary=("email",)):
        name: Col[str] = column(required=True)
        email: Col[str] = column(default="")
        registered: Col[datetime] = column("time", default=now)

On the class, `User.name` is a column to filter and order by; on an object it is the value. Type
checkers see both. With plain annotations (`name: str = column()`) everything works the same, but
checkers see only the value; `col(User.name)` is the column for them.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, dataclass_transform

from holdfast.entities.columns import EVERYTHING, UNSET, Col, Condition
from holdfast.entities.messages import Entity
from holdfast.entities.model_shapes import Shape
from holdfast.entities.model_types import own_annotations, read_annotation
from holdfast.entities.schema import Index, Primary, Table
from holdfast.entities.types import COLUMN_TYPES
from holdfast.errors import BadModel, UnknownColumn


@dataclass_transform(kw_only_default=True, eq_default=True)
class _Base:
    """Tells type checkers that a model is made with its columns as keywords."""


class Model(_Base):
    """The base class of all models; the docstring of the module shows an example."""

    id: Col[str | None] = Col("id", default=None)

    __shape__: ClassVar[Shape]
    __indexes__: ClassVar[Sequence[Index]] = ()
    __columns__: ClassVar[dict[str, Col[Any]]] = {}  # the columns of a class by attribute
    # For __init__: the keywords, and (attribute, default, function that makes the default).
    __keywords__: ClassVar[frozenset[str]] = frozenset({"id"})
    __defaults__: ClassVar[tuple[tuple[str, Any, Callable[[], Any] | None], ...]] = ()

    def __init_subclass__(
        cls,
        *,
        schema: str | None = None,
        table: str | None = None,
        primary: str | Sequence[str] = (),
        hashed: bool = False,
        indexes: Sequence[Index] = (),
        strict: bool = False,
    ) -> None:
        super().__init_subclass__()
        primary = (primary,) if isinstance(primary, str) else tuple(primary)
        names = vars(sys.modules[cls.__module__]) | sys._getframe(1).f_locals
        cls.__columns__ = _collect(cls, names)
        cls.__keywords__ = frozenset({"id", *cls.__columns__})
        cls.__defaults__ = tuple(_defaults(cls.__columns__))
        inherited = getattr(cls, "__shape__", None)
        if table is None and inherited is not None:
            schema, table = inherited.table.schema, inherited.table.name
            primary = primary or inherited.table.primary.columns
            hashed = hashed or inherited.table.primary.hashed
            indexes = indexes or inherited.table.indexes
        if table is None or schema is None:
            if table is not None or schema is not None:
                raise BadModel(f"{cls.__name__} needs both class keywords, `schema` and `table`")
            return  # a base for other models, without its own table
        named = Primary(type="compound", columns=primary, hashed=hashed)
        indexes = tuple(indexes or cls.__indexes__)
        _check_keys(cls, primary, indexes)
        cls.__shape__ = Shape(
            cls.__columns__.values(),
            Table(
                schema=schema,
                name=table,
                comment=(cls.__doc__ or "").strip() if "__doc__" in cls.__dict__ else "",
                class_name="" if cls.__name__ == table else cls.__name__,
                strict=strict,
                primary=named if primary else Primary(),
                indexes=indexes,
            ),
        )

    def __init__(self, **values: Any) -> None:
        mine = self.__dict__
        mine["id"] = None
        for attribute, default, make in self.__defaults__:
            if attribute not in values:
                mine[attribute] = default if make is None else make()
        if not values.keys() <= self.__keywords__:
            unknown = next(name for name in values if name not in self.__keywords__)
            raise UnknownColumn.among(type(self).__name__, unknown, self.__columns__)
        mine.update(values)

    @classmethod
    def all(cls) -> Condition:
        """Returns the filter that matches every entity."""
        return EVERYTHING

    @classmethod
    def table_name(cls) -> str:
        """Returns the full name of the table, `schema.Table`."""
        return shape_of(cls).name

    @classmethod
    def table_record(cls) -> Table:
        """Returns the table as a schema record."""
        return shape_of(cls).table

    @classmethod
    def schema_yaml(cls) -> str:
        """Returns a schema file with the table of this model, to deploy or to compare with."""
        return schema_yaml(cls)

    def to_properties(self) -> dict[str, Any]:
        """Returns the columns that are set, by their names in the store; `BadValue` if one can't be
        put."""
        return shape_of(type(self)).encode(self.__dict__)

    @classmethod
    def from_entity(cls, entity: Entity) -> Self:
        """Returns an object made from a stored entity, without properties that have no column."""
        return shape_of(cls).load(cls, [(entity.id, entity)])[0]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            getattr(self, attribute) == getattr(other, attribute)
            for attribute in ("id", *self.__columns__)
        )

    __hash__ = None  # type: ignore[assignment]  # objects change, as those of a dataclass do

    def __repr__(self) -> str:
        shown = [
            f"{name}={self.__dict__[name]!r}" for name in self.__columns__ if name in self.__dict__
        ]
        return f"{type(self).__name__}({', '.join([f'id={self.id!r}', *shown])})"


def shape_of(model: type[Model]) -> Shape:
    """Returns the shape of a model, or raises `BadModel` if it has no table."""
    try:
        return model.__shape__
    except AttributeError:
        raise BadModel(
            f"{model.__name__} has no table",
            hint='Give it one: class User(Model, schema="test", table="Users").',
        ) from None


def schema_yaml(*models: type[Model]) -> str:
    """Returns one schema file with the tables of these models, which must share their schema."""
    from holdfast.entities.schema import Schema
    from holdfast.entities.schema_dump import dump_schema  # loads the YAML library

    tables = [shape_of(model).table for model in models]
    names = {table.schema for table in tables}
    if len(names) != 1:
        raise BadModel(f"one schema file holds one schema, not {sorted(names)}")
    return dump_schema(Schema(name=names.pop(), tables=tuple(tables)), filled=False)


def _defaults(
    columns: Mapping[str, Col[Any]],
) -> Iterator[tuple[str, Any, Callable[[], Any] | None]]:
    for attribute, column in columns.items():
        default = column.given_default
        if callable(default):
            yield attribute, None, default
        elif isinstance(default, (list, set, dict)):
            yield attribute, None, default.copy  # or all objects would share it
        elif default is not UNSET:
            yield attribute, default, None


def _check_keys(cls: type[Model], primary: Sequence[str], indexes: Sequence[Index]) -> None:
    """Raises if the model lacks a column of its keys: every object would be put without it."""
    known = {column.name for column in cls.__columns__.values()}
    for name in [*primary, *(name for index in indexes for name in index.columns)]:
        if name not in known:
            raise BadModel(
                f"{cls.__name__} has no column {name!r} for its keys",
                hint=f"Use the names in the store: {', '.join(sorted(known))}.",
            )


def _collect(cls: type[Model], names: Mapping[str, Any]) -> dict[str, Col[Any]]:
    """Returns the columns of `cls`, inherited ones first, each completed from its annotation."""
    columns = dict(cls.__columns__)
    annotations = own_annotations(cls, names)
    for attribute, given in cls.__dict__.items():
        if isinstance(given, Col) and attribute not in annotations:
            raise BadModel(
                f"{cls.__name__}.{attribute} has no type",
                hint=f"Annotate it: {attribute}: str = column().",
            )
    for attribute, annotation in annotations.items():
        where = f"{cls.__name__}.{attribute}"
        if attribute == "id":
            raise BadModel(f"{where} can't be a column: every entity has its own id")
        parsed = read_annotation(annotation, where)
        given = cls.__dict__.get(attribute, UNSET)
        column: Col[Any] = given if isinstance(given, Col) else Col(default=given)
        if given is UNSET:
            column.required = (
                not parsed.optional
            )  # an annotation without a value, as in a dataclass
        column.type = column.type or parsed.type
        if column.type is None:
            raise BadModel(f"{where} has no type", hint='Write column(type="List").')
        if column.type not in COLUMN_TYPES:
            raise BadModel(
                f"{where} is of type {column.type!r}", hint=f"There are {', '.join(COLUMN_TYPES)}."
            )
        column.subtype = column.subtype or parsed.subtype
        column.choices = column.choices or parsed.choices
        column.__set_name__(cls, attribute)
        setattr(cls, attribute, column)
        columns[attribute] = column
    by_name: dict[str, str] = {}
    for attribute, column in columns.items():
        other = by_name.setdefault(column.name, attribute)
        if other != attribute:
            raise BadModel(f"{cls.__name__} has two columns {column.name!r}: {other}, {attribute}")
    return columns
