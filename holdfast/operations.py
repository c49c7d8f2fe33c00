"""The one list of what can be called from outside, made from the layers' typed methods.

The doors (RESP, HTTP), the generated client, the reference and the permissions are all made from
it: a method that a layer gains is served, described and guarded without another line.
"""

import difflib
import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, Union

import msgspec

from holdfast.admin import StoreAdmin
from holdfast.binding import is_read
from holdfast.entities import Entities, StoreEntities
from holdfast.entities.messages import PutEntity
from holdfast.errors import BadInput, HoldfastError, UnknownOperation
from holdfast.events import AnyEvent, Events, StoreEvents
from holdfast.jobs import Jobs, StoreJobs
from holdfast.metrics import Metrics, StoreMetrics
from holdfast.metrics.refusals import refusal_of
from holdfast.tables import StoreTables, Tables

__all__ = ["LAYERS", "OPERATIONS", "Operation", "find"]

Kind = Literal["read", "write", "long", "wait"]

LAYERS: Final[dict[str, tuple[type[Any], type[Any]]]] = {
    "admin": (object, StoreAdmin),
    "entities": (Entities, StoreEntities),
    "events": (Events, StoreEvents),
    "jobs": (Jobs, StoreJobs),
    "metrics": (Metrics, StoreMetrics),
    "tables": (Tables, StoreTables),
}

_ENTITY_MEMBERS: Final = frozenset(PutEntity.__struct_fields__)
_UNSET: Final = msgspec.UNSET
_values: Final = msgspec.structs.astuple
_INT64: Final = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

# Methods for Python alone: they take or give objects that do not travel (models, handles, streams).
LOCAL: Final[dict[str, frozenset[str]]] = {
    "entities": frozenset(
        {"count", "delete", "dump", "fetch", "fetch_page", "get", "get_one", "load", "put"}
        | {"read_notice", "select", "subscribe", "update"}
    ),
    "events": frozenset({"send_stream", "subscribe"}),
    "jobs": frozenset(
        {"v1", "queue", "next_wake", "put_all", "retry_step", "erase_some", "waiting"}
    ),
    "metrics": frozenset({"foreign_windows", "limiter", "reader", "writer"}),
    "tables": frozenset({"delete_by_url", "export", "get_by_url", "put_by_url", "scan"}),
}

# Methods that wait for something to happen.
WAITING: Final[dict[str, frozenset[str]]] = {"jobs": frozenset({"pop_wait", "result_wait"})}

# What takes several steps or its time, and yet changes nothing that anyone could notice.
LOOKING: Final = frozenset(
    {"admin.check", "admin.inspect", "admin.spaces", "admin.status", "admin.users"}
    | {"entities.check", "entities.dump_some"}
    | {"jobs.counts", "jobs.jobs", "jobs.peek", "jobs.queues", "jobs.workers"}
    | {"jobs.result_wait"}
)

# What a method is called outside, where its own name would only mean something in Python.
RENAMED: Final[dict[str, dict[str, str]]] = {
    "entities": {
        "put_raw": "put",
        "get_raw": "get",
        "select_raw": "select",
        "update_raw": "update",
        "delete_raw": "delete",
        "count_raw": "count",
    }
}


# Lists whose elements are judged one by one: a bad one fails alone, and must reach the method.
JUDGED_ALONE: Final = frozenset({"events.send_many"})

# Layers that have names of their own for arguments of the wrong type.
REFUSALS: Final = {"metrics": refusal_of}


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be called from outside."""

    layer: str
    name: str
    method: str
    kind: Kind  # on a view; one transaction; in several steps; until something happens
    summary: str
    doc: str
    arguments: type[msgspec.Struct]
    result: Any
    positional: tuple[str, ...]  # the arguments in front of *values, in the method's order
    star: str | None  # the argument that the method takes as *values
    in_order: int  # how many arguments, from the first on, the method takes by position
    full_name: str = ""  # `layer.name`

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "full_name", f"{self.layer}.{self.name}")

    @property
    def only_reads(self) -> bool:
        """Whether it can be called again as if it had not been called before."""
        return self.kind == "read" or self.full_name in LOOKING

    @property
    def cost(self) -> str:
        """The sentences of the docstring that say what it touches."""
        sentences = re.split(r"(?<=[.;])\s+", self.doc)
        return " ".join(
            s for s in sentences if re.search(r"\b(reads?|writes?|deletes?)\b.*\bkey", s, re.I)
        )

    def refusal(self, argument: str, *, is_beyond: bool) -> type[HoldfastError]:
        """The error for an argument of the wrong type: the layer's own, if it has one."""
        own = REFUSALS.get(self.layer)
        return (own and own(self.name, argument, is_beyond=is_beyond)) or BadInput

    def call(self, face: Any, arguments: msgspec.Struct) -> Any:
        """Calls the method on a layer (`read`, `write`) or on a store's face of it (`long`)."""
        method = getattr(face, self.method)
        if self.star is not None or self.method == "put_raw":
            return self._call_rare(method, arguments)
        values = (*_values(arguments), _UNSET)
        # Mostly the first few are given and no others. By position they cost a third, and so do
        # the checks of the layer.
        given = values.index(_UNSET)
        if given <= self.in_order and given + values.count(_UNSET) == len(values):
            return method(*values[:given])
        given = min(given, self.in_order)
        named = zip(arguments.__struct_fields__[given:], values[given:], strict=False)
        return method(
            *values[:given], **{name: value for name, value in named if value is not _UNSET}
        )

    def _call_rare(self, method: Callable[..., Any], arguments: msgspec.Struct) -> Any:
        fields = msgspec.structs.asdict(arguments)
        given = {name: value for name, value in fields.items() if value is not _UNSET}
        if self.method == "put_raw":
            given["entities"] = [_entity(each) for each in given["entities"]]
        if self.star is None:
            return method(**given)
        starred = given.pop(self.star, ())
        before = [given.pop(name) for name in self.positional]
        return method(*before, *starred, **given)


def _entity(given: dict[str, Any]) -> PutEntity | dict[str, Any]:
    """An entity is a dict of its properties; or, if it has `properties` and at most `id`, `ttl`
    and `if_version` beside them, the whole record."""
    if "properties" in given and given.keys() <= _ENTITY_MEMBERS:
        return msgspec.convert(given, PutEntity, builtin_types=(bytes, datetime))
    return given


def find(layer: str, name: str) -> Operation:
    """The operation of that name, or an error that names the nearest one.

    What has another name outside is found by the method's own name too: `entities.put_raw`.
    """
    name = RENAMED.get(layer, {}).get(name, name)
    operation = OPERATIONS.get(f"{layer}.{name}")
    if operation is not None:
        return operation
    near = difflib.get_close_matches(f"{layer}.{name}", OPERATIONS, 1)
    hint = f"Did you mean {near[0]}?" if near else f"The layers are {', '.join(LAYERS)}."
    raise UnknownOperation(f"there is no operation {layer}.{name}", hint=hint)


def _operations() -> dict[str, Operation]:
    found = {}
    for layer, (on_transaction, on_store) in LAYERS.items():
        for method in _methods(on_transaction, layer):
            kind: Kind = "read" if is_read(getattr(on_transaction, method)) else "write"
            # What a store does in several steps of its own is called there.
            if method in vars(on_store):
                kind = "long"
            operation = _operation(
                layer, on_store if kind == "long" else on_transaction, method, kind
            )
            found[operation.full_name] = operation
        for method in _methods(on_store, layer):
            if not hasattr(on_transaction, method):
                kind = "wait" if method in WAITING.get(layer, ()) else "long"
                operation = _operation(layer, on_store, method, kind)
                found[operation.full_name] = operation
    return dict(sorted(found.items()))


def _methods(face: type[Any], layer: str) -> list[str]:
    return [
        name
        for name in dir(face)
        if not name.startswith("_")
        and name not in LOCAL.get(layer, ())
        and inspect.isfunction(inspect.getattr_static(face, name))
    ]


def _operation(layer: str, face: type[Any], method: str, kind: Kind) -> Operation:
    function = getattr(face, method)
    hints = typing.get_type_hints(inspect.unwrap(function))
    name = RENAMED.get(layer, {}).get(method, method)
    doc = inspect.getdoc(function) or ""
    fields: list[Any] = []
    positional: list[str] = []
    star = None
    in_order = 0
    for position, parameter in enumerate(list(inspect.signature(function).parameters.values())[1:]):
        expected = _travelling(hints.get(parameter.name, Any))
        if f"{layer}.{name}" in JUDGED_ALONE and typing.get_origin(expected) is list:
            expected = list[Any]
        if expected in (None, type(None)):
            continue  # a function to be called back, or nothing
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = parameter.name
            positional = [each[0] for each in fields]
            fields.append((parameter.name, list[expected], msgspec.field(default_factory=list)))  # type: ignore[valid-type]
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, expected))
        else:
            fields.append((parameter.name, expected | msgspec.UnsetType, msgspec.UNSET))
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and in_order == position:
            in_order += 1
    arguments = msgspec.defstruct(
        f"{layer}_{name}".title().replace("_", ""),
        fields,
        kw_only=True,
        forbid_unknown_fields=True,
        rename=_outside,
    )
    return Operation(
        layer=layer,
        name=name,
        method=method,
        kind=kind,
        summary=doc.partition("\n")[0],
        doc=doc,
        arguments=arguments,
        result=hints.get("return"),
        positional=tuple(positional),
        star=star,
        in_order=in_order,
    )


def _outside(name: str) -> str:
    """A name that Python reserves, `from_`, is written without its underscore."""
    return name.removesuffix("_")


# --- types that travel ---------------------------------------------------------------------------


def _travelling(expected: Any) -> Any:
    """The type to decode an argument into.

    A method may be generous: a record or a dict, a string or a datetime. Outside, both look alike,
    so the more general one is decoded and the method makes of it what it needs.
    """
    origin = typing.get_origin(expected)
    if expected == AnyEvent:
        return Any  # what is no event is refused alone, by the layer
    if expected is int:
        return _INT64  # what is beyond no layer counts, and no engine stores
    if origin in (Union, types.UnionType):
        return _union([_travelling(each) for each in typing.get_args(expected)])
    if origin is Literal or expected in (Any, None, type(None)):
        return expected
    if origin is not None and issubclass(origin, Mapping):
        return dict[str, Any]
    if origin is not None and issubclass(origin, Collection | Iterable) and origin is not tuple:
        [element] = typing.get_args(expected) or (Any,)
        return list[_travelling(element)]  # type: ignore[misc]
    if isinstance(expected, typing.TypeVar):
        return Any
    return expected


def _union(members: list[Any]) -> Any:
    """At most one member for each form that a value can have outside."""
    if Any in members:
        return Any
    by_form: dict[str, Any] = {}
    for member in members:
        form = str(member) if _is_tagged(member) else _form(member)
        if form == "python":
            continue
        if form not in by_form or member in (str, dict[str, Any]):
            by_form[form] = member
    return functools.reduce(operator.or_, by_form.values()) if by_form else Any


def _is_tagged(member: Any) -> bool:
    """Whether a record says by itself which one it is, so that several may stand for each other."""
    config = getattr(member, "__struct_config__", None)
    return config is not None and config.tag is not None


def _form(member: Any) -> str:
    origin = typing.get_origin(member) or member
    if member is _INT64:
        return str(int)
    if origin in (str, bytes, datetime, timedelta) or origin is Literal:
        return "text"
    if origin in (int, float, bool, type(None), None):
        return str(origin)
    if isinstance(origin, type) and issubclass(origin, dict | msgspec.Struct):
        return "object"
    if isinstance(origin, type) and issubclass(origin, list | tuple | AbstractSet):
        return "list"
    return "python"  # a class that only Python code can make


OPERATIONS: Final[dict[str, Operation]] = _operations()
