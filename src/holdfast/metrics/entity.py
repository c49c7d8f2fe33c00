"""Entity keys identify the instances of a metric: one count for each user, for example."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from holdfast.bounded_cache import BoundedCache
from holdfast.error_text import shown
from holdfast.errors import BadMetricKey, EmptyPrefix
from holdfast.keys import pack
from holdfast.limits import MAX_ENTITY_COMPONENTS

GLOBAL: Final = 0  # the scope of global entities in keys; a namespace is a str, so none collides

_NOT_PACKED: Final = ("", b"")  # no namespace is empty


class EntityKey:
    """An instance of a metric; a component is a string, or an integer in decimal.

    A map of components is flattened to name, value, name, value:

    >>> LocalEntityKey({"user_id": 1}) == LocalEntityKey(["user_id", "1"])
    True
    >>> LocalEntityKey(["user_id", 1]) == GlobalEntityKey(["user_id", 1])
    False
    """

    __slots__ = ("_hash", "components", "packed")

    is_global = False

    def __init__(self, components: "Components" = ()) -> None:
        self.components: Final = _flat(components)
        self._hash: Final = hash((self.is_global, self.components))
        self.packed = _NOT_PACKED  # the namespace of the last call, and the suffix there

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EntityKey):
            return NotImplemented
        return self.components == other.components and self.is_global == other.is_global

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.components)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.components,)


class LocalEntityKey(EntityKey):
    """An entity of one namespace."""

    __slots__ = ()


class GlobalEntityKey(EntityKey):
    """An entity that all namespaces of a space share."""

    __slots__ = ()

    is_global = True


# Components are strings and integers. The server lets others pass: the layer's error is better.
Components: TypeAlias = Iterable[Any] | Mapping[str, Any]
EntityLike: TypeAlias = EntityKey | Components | None
Prefix: TypeAlias = str | Iterable[Any]
Scoped: TypeAlias = tuple[int | str, tuple[str, ...]]  # scope and components, as keys hold them


def as_entity(entity: Any) -> EntityKey:
    """Returns the entity of None, a list, a map, or a JSON object with `components`.

    >>> as_entity({"global": True, "components": ["ip", "192.0.2.7"]})
    GlobalEntityKey(['ip', '192.0.2.7'])
    """
    if isinstance(entity, EntityKey):
        return entity
    if entity is None:
        return NO_ENTITY
    if type(entity) is list:
        return LocalEntityKey(entity)
    if isinstance(entity, Mapping) and ("components" in entity or "global" in entity):
        return _from_object(entity)
    return LocalEntityKey(entity)


def entity_object(entity: EntityKey) -> Any:
    """Returns the entity as plain data: a list, or an object if it is global."""
    components = list(entity.components)
    return {"global": True, "components": components} if entity.is_global else components


def as_prefix(prefix: Any) -> tuple[str, ...]:
    """Returns the prefix as a tuple of strings; a single string is a list of one."""
    if isinstance(prefix, str):
        return (prefix,)
    if isinstance(prefix, bytes | Mapping) or not isinstance(prefix, Iterable):
        raise BadMetricKey(f"a prefix must be a string or a list of strings, not {shown(prefix)}")
    parts = tuple(prefix)
    if not parts:
        raise EmptyPrefix("the prefix has no component")
    for part in parts:
        if not isinstance(part, str):
            raise BadMetricKey(f"a prefix component must be a string, not {shown(part)}")
    return parts


def as_namespace(namespace: Any) -> str:
    if not isinstance(namespace, str) or not namespace:
        raise BadMetricKey(f"a namespace must be a non-empty string, not {shown(namespace)}")
    return namespace


def suffix_of(entity: EntityKey, namespace: str) -> bytes:
    """Returns the end of every key of `entity`: its scope and its components."""
    known, suffix = entity.packed
    if known != namespace:
        suffix = _suffixes[GLOBAL if entity.is_global else namespace, entity.components]
        entity.packed = (namespace, suffix)  # in one step, as other threads may have their own
    return suffix


def suffix_of_list(components: list[Any], namespace: str) -> bytes:
    """Like `suffix_of`, for a local entity that is given as a list and needs no object."""
    return _suffixes[namespace, _flat(components)]


def _suffix(scope_and_components: tuple[int | str, tuple[str, ...]]) -> bytes:
    return pack(*scope_and_components)


_suffixes: Final = BoundedCache(_suffix, entries=8_192)


def entity_of(scope: int | str, components: tuple[str, ...]) -> EntityKey:
    """Returns the entity of a scope and components, as a key holds them."""
    return GlobalEntityKey(components) if scope == GLOBAL else LocalEntityKey(components)


def readable(*components: object) -> str:
    """Returns the components as people see them: `%` and `:` escaped, joined by colons.

    >>> readable("enwiki", "app", "a:b", "", 100)
    'enwiki:app:a%3Ab::100'
    """
    return ":".join([str(part).replace("%", "%25").replace(":", "%3A") for part in components])


def readable_scope(scope: int | str) -> str:
    return "global" if scope == GLOBAL else str(scope)


def _from_object(entity: Mapping[str, Any]) -> EntityKey:
    unknown = set(entity) - {"global", "components"}
    is_global = entity.get("global", False)
    if unknown or not isinstance(is_global, bool):
        raise BadMetricKey(
            f"an entity must have `global` (a boolean) and `components`, not {shown(entity)}"
        )
    components = entity.get("components", ())
    return GlobalEntityKey(components) if is_global else LocalEntityKey(components)


def _flat(components: Any) -> tuple[str, ...]:
    if type(components) is list:
        pass  # by far the most frequent, and the checks below take longer than all the rest
    elif isinstance(components, Mapping):
        components = [part for item in components.items() for part in item]
    elif not isinstance(components, Iterable) or isinstance(components, str | bytes):
        raise BadMetricKey(f"the components of an entity must be a list, not {shown(components)}")
    flat = tuple([part if type(part) is str else _as_text(part) for part in components])
    if len(flat) > MAX_ENTITY_COMPONENTS:
        raise BadMetricKey(
            f"an entity has {len(flat)} components, at most {MAX_ENTITY_COMPONENTS} fit"
        )
    return flat


def _as_text(component: Any) -> str:
    if isinstance(component, bool) or not isinstance(component, str | int):
        raise BadMetricKey(
            f"a component of an entity must be a string or an integer, not {shown(component)}"
        )
    if isinstance(component, str):  # a member of an Enum is its value, not its name
        return str.__str__(component)
    return int.__repr__(component)


NO_ENTITY: Final = LocalEntityKey()
