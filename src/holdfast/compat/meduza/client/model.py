"""Models of the public Meduza client."""

import logging
from typing import Any, ClassVar, Self

from holdfast.compat.meduza.client.columns import Column, Key
from holdfast.compat.meduza.client.errors import ColumnValueError
from holdfast.compat.meduza.client.queries import Condition, Entity, Filter

_log = logging.getLogger("holdfast.compat.meduza.client")


class ModelType(type):
    """Collects the columns of a model, those of its bases included."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> "ModelType":
        columns: dict[str, Column] = {}
        for base in reversed(bases):
            columns |= getattr(base, "__columns__", {})
        model = super().__new__(cls, name, bases, body)  # calls __set_name__ of each column
        columns |= {each.name: each for each in body.values() if isinstance(each, Column)}
        model.__columns__ = columns  # type: ignore[attr-defined]  # an attribute of each model
        model.__primary__ = next(  # type: ignore[attr-defined]  # the same
            column.name for column in columns.values() if column.primary
        )
        return model


class Model(metaclass=ModelType):
    """The base of all models: `_table`, `_schema` and columns as attributes."""

    _table: ClassVar[str | None] = None
    _schema: ClassVar[str | None] = None
    __columns__: ClassVar[dict[str, Column]]
    __primary__: ClassVar[str]

    id: Any = Key("id")

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)
        if self.__primary__ not in values:
            self.setPrimary(None)
        for column in self.__columns__.values():
            if column.name != self.__primary__ and column.modelName not in values:
                default = column.default()
                if default is not Column.Undefined:
                    self.__dict__[column.modelName] = default

    @classmethod
    def all(cls) -> Filter:
        """Returns the filter that matches every entity."""
        return Filter(cls.__primary__, Condition.ALL)

    @classmethod
    def primary(cls) -> str:
        """Returns the name of the primary column."""
        return cls.__primary__

    @classmethod
    def tableName(cls) -> str:
        """Returns the full name of the table."""
        return f"{cls._schema}.{cls._table}"

    def setPrimary(self, value: Any) -> None:
        self.__dict__[self.__primary__] = self.__columns__[self.__primary__].decode(value)

    def encode(self) -> Entity:
        """Returns an entity with the columns that are set."""
        entity = Entity(self.__columns__[self.__primary__].encode(self.id))
        for name, column in self.__columns__.items():
            if name == self.__primary__:
                continue
            if column.modelName in self.__dict__:
                entity.properties[name] = column.encode(self.__dict__[column.modelName])
            elif column.required:
                raise ColumnValueError(
                    f"Required column {column.modelName} not set in {self._table}"
                )
        return entity

    @classmethod
    def decode(cls, entity: Entity, strict: bool = True) -> Self:
        """Returns an object with the stored values, without defaults."""
        loaded = object.__new__(cls)
        loaded.setPrimary(entity.id)
        for name, value in entity.properties.items():
            column = cls.__columns__.get(name)
            if column is not None and name != cls.__primary__:
                loaded.__dict__[column.modelName] = column.decode(value)
            elif column is None and strict:
                _log.warning("Could not map %s to object - not in model", name)
        return loaded

    def __repr__(self) -> str:
        return f"{self._table}<{self.id}> {self.__dict__}"
