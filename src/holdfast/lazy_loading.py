"""Layers and attributes that are created when they are first used."""

import importlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


@cache
def layer_package(name: str) -> ModuleType:
    """Returns the package of a layer.

    An `import` statement in its place would take a microsecond each time.
    """
    return importlib.import_module(f"holdfast.{name}")


class Once(Generic[T]):
    """Decorates a method whose result becomes an attribute when it is first used.

    Before Python 3.12 `cached_property` takes a lock, which costs more than creating most layers.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T | Self:
        if instance is None:
            return self
        # If two threads come at the same time, both get the one that is kept.
        made: T = instance.__dict__.setdefault(self._name, self._make(instance))
        return made
