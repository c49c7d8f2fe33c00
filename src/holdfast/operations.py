"""The list of all operations, collected from the layers' declarations.

Both protocols of the server, the generated client, the reference and the permissions are derived
from it: a new method of a layer is served, documented and protected without another line.
"""

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
from holdfast.declarations import Declaration, declared, public_name
from holdfast.entities import Entities, StoreEntities
from holdfast.error_text import nearest
from holdfast.errors import BadInput, HoldfastError, UnknownOperation
from holdfast.events import AnyEvent, Events, StoreEvents
from holdfast.jobs import Jobs, StoreJobs
from holdfast.metrics import Metrics, StoreMetrics
from holdfast.tables import StoreTables, Tables

__all__ = ["LAYER_CLASSES", "OPERATIONS", "Operation", "find"]

Kind = Literal["read", "write", "long", "wait"]

LAYER_CLASSES: Final[dict[str, tuple[type[Any], type[Any]]]] = {
    "admin": (object, StoreAdmin),
    "entities": (Entities, StoreEntities),
    "events": (Events, StoreEvents),
    "jobs": (Jobs, StoreJobs),
    "metrics": (Metrics, StoreMetrics),
    "tables": (Tables, StoreTables),
}

_UNSET: Final = msgspec.UNSET
_values: Final = msgspec.structs.astuple
_COST: Final = re.compile(
    r"^(Reads|Writes|Deletes|Costs|Scans)\b|\b(reads?|writes?|deletes?)\b.*\bkeys?\b", re.I
)
_INT64: Final = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that can be called from outside."""

    layer: str
    name: str
    method: str
    kind: Kind  # a view; one transaction; several; a wait for something to happen
    declaration: Declaration
    summary: str
    doc: str
    arguments: type[msgspec.Struct]
    result: Any
    positional: tuple[str, ...]  # the arguments in front of *values, in the method's order
    star: str | None  # the argument that the method takes as *values
    single: str | None  # its name in the singular, under which a call may send one value
    in_order: int  # how many arguments, from the first on, the method takes by position
    defaults: tuple[Any, ...]  # of these
    full_name: str = ""  # `layer.name`
    is_rare: bool = False  # its arguments are converted, or become *values

    def __post_init__(self) -> None:
        is_rare = self.star is not None or self.declaration.convert is not None
        msgspec.structs.force_setattr(self, "full_name", f"{self.layer}.{self.name}")
        msgspec.structs.force_setattr(self, "is_rare", is_rare)

    @property
    def only_reads(self) -> bool:
        """Returns whether a call can be repeated without an effect."""
        return self.declaration.reads

    @property
    def cost(self) -> str:
        """The sentences of the docstring that say which keys it touches."""
        sentences = re.split(r"(?<=\.)\s+(?=[A-Z`])", " ".join(self.doc.split()))
        return " ".join(each for each in sentences[1:] or sentences if _COST.search(each))

    def refusal(self, argument: str, *, is_beyond: bool) -> type[HoldfastError]:
        """Returns the error for an argument of the wrong type: the layer's own, if it has one."""
        own = getattr(LAYER_CLASSES[self.layer][0], "_error_for_argument", None)
        return (own and own(self.name, argument, is_beyond=is_beyond)) or BadInput

    def call(self, layer: Any, arguments: msgspec.Struct) -> Any:
        """Calls the method on a layer of a transaction (`read`, `write`) or of a store (`long`)."""
        method = getattr(layer, self.method)
        if self.is_rare:
            return self._call_with_conversion(method, arguments)
        values = _values(arguments)
        # Usually only the first few are given. Passed by position they cost a third, and so do
        # the checks of the layer.
        missing, in_order = values.count(_UNSET), self.in_order
        given = len(values) - missing
        first = values[:given]
        if given <= in_order and _UNSET not in first:
            return method(*first)
        if values[in_order:].count(_UNSET) == len(values) - in_order:
            pairs = zip(values, self.defaults)  # noqa: B905  # the arguments in order come first
            return method(*[default if value is _UNSET else value for value, default in pairs])
        given = min((*values, _UNSET).index(_UNSET), in_order)
        named = zip(arguments.__struct_fields__[given:], values[given:], strict=False)
        return method(
            *values[:given], **{name: value for name, value in named if value is not _UNSET}
        )

    def _call_with_conversion(self, method: Callable[..., Any], arguments: msgspec.Struct) -> Any:
        fields = msgspec.structs.asdict(arguments)
        given = {name: value for name, value in fields.items() if value is not _UNSET}
        if self.declaration.convert is not None:
            argument, convert = self.declaration.convert
            given[argument] = [convert(each) for each in given[argument]]
        if self.star is None:
            return method(**given)
        starred = given.pop(self.star, ())
        before = [given.pop(name) for name in self.positional]
        return method(*before, *starred, **given)


def refuse_in_batch(operation: Operation) -> None:
    """Refuses an operation that can't be part of a batch, with the reason and what to do
    instead."""
    if operation.kind == "wait":
        raise BadInput(
            f"{operation.full_name} can't be part of a batch: it waits for something to happen",
            hint="Call it alone, before or after the batch.",
        )
    if operation.kind == "long":
        raise BadInput(
            f"{operation.full_name} can't be part of a batch: it is more than one transaction",
            hint="It works in several steps, so that nobody waits for all of them: call it alone, "
            "before or after the batch.",
        )


def find(layer: str, name: str) -> Operation:
    """Returns the operation of that name, or raises an error that names the nearest one.

    An operation with another public name is also found by the method's own name:
    `entities.put_raw`.
    """
    operation = OPERATIONS.get(f"{layer}.{name}") or OPERATIONS_BY_METHOD.get(f"{layer}.{name}")
    if operation is not None:
        return operation
    near = nearest(f"{layer}.{name}", OPERATIONS)
    hint = f"Did you mean {near}?" if near else f"The layers are {', '.join(LAYER_CLASSES)}."
    raise UnknownOperation(f"there is no operation {layer}.{name}", hint=hint)


def _operations() -> dict[str, Operation]:
    found = {}
    for layer, (on_transaction, on_store) in LAYER_CLASSES.items():
        for method in _methods(on_transaction):
            # Operations of several steps are called on the store.
            if method in vars(on_store):
                continue
            kind: Kind = "read" if declared(getattr(on_transaction, method)).reads else "write"
            operation = _operation(layer, on_transaction, method, kind)
            found[operation.full_name] = operation
        for method in _methods(on_store):
            if method in vars(on_store) or not hasattr(on_transaction, method):
                kind = "wait" if declared(getattr(on_store, method)).waits else "long"
                operation = _operation(layer, on_store, method, kind)
                found[operation.full_name] = operation
    return dict(sorted(found.items()))


def _methods(layer: type[Any]) -> list[str]:
    """Returns the names of the public methods that are not for Python only."""
    return [
        name
        for name in dir(layer)
        if not name.startswith("_")
        and inspect.isfunction(function := inspect.getattr_static(layer, name))
        and not declared(function).local
    ]


def _summary(doc: str) -> str:
    """Returns the first line of a docstring, or all of a first sentence that goes on behind it.

    >>> _summary("Puts a job.\\n\\nMore."), _summary("Puts a job,\\nor moves it.")
    ('Puts a job.', 'Puts a job, or moves it.')
    """
    first, _, rest = doc.partition("\n\n")[0].partition("\n")
    if not rest or first.endswith("."):
        return first
    return " ".join(f"{first} {rest.partition('. ')[0]}".rstrip(".").split()) + "."


def _operation(layer: str, owner: type[Any], method: str, kind: Kind) -> Operation:
    function = getattr(owner, method)
    hints = typing.get_type_hints(inspect.unwrap(function))
    declaration = declared(function)
    name = declaration.name or method
    doc = inspect.getdoc(function) or ""
    fields: list[Any] = []
    positional: list[str] = []
    star = None
    defaults: list[Any] = []
    for position, parameter in enumerate(list(inspect.signature(function).parameters.values())[1:]):
        expected = _wire_type(hints.get(parameter.name, Any))
        if declaration.judged_alone and typing.get_origin(expected) is list:
            expected = list[Any]
        if expected in (None, type(None)):
            continue  # a callback, or no annotation
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = parameter.name
            positional = [each[0] for each in fields]
            fields.append((parameter.name, list[expected], msgspec.field(default_factory=list)))  # type: ignore[valid-type]
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, expected))
        else:
            fields.append((parameter.name, expected | msgspec.UnsetType, msgspec.UNSET))
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and len(defaults) == position:
            defaults.append(parameter.default)
    arguments = msgspec.defstruct(
        f"{layer}_{name}".title().replace("_", ""),
        fields,
        kw_only=True,
        forbid_unknown_fields=True,
        rename=public_name,
    )
    return Operation(
        layer=layer,
        name=name,
        method=method,
        kind=kind,
        declaration=declaration,
        summary=_summary(doc),
        doc=doc,
        arguments=arguments,
        result=hints.get("return"),
        positional=tuple(positional),
        star=star,
        single=_singular(star, [each[0] for each in fields]),
        in_order=len(defaults),
        defaults=tuple(defaults),
    )


def _singular(star: str | None, names: Collection[str]) -> str | None:
    """Returns the singular of a list's name, unless another argument has that name.

    >>> _singular("queues", ["queues"]), _singular("ids", ["id", "ids"])
    ('queue', None)
    """
    if star is None or star.removesuffix("s") in names:
        return None
    return star.removesuffix("s")


# --- types on the wire ---------------------------------------------------------------------------


def _wire_type(expected: Any) -> Any:
    """Returns the type to decode an argument into.

    A method may accept a record or a dict, a string or a datetime. Outside Python both look alike,
    so the more general one is decoded, and the method converts it.
    """
    origin = typing.get_origin(expected)
    if expected == AnyEvent:
        return Any  # the layer refuses each invalid event alone
    if expected is int:
        return _INT64  # no layer counts beyond it, and no engine stores more
    if origin in (Union, types.UnionType):
        return _union([_wire_type(each) for each in typing.get_args(expected)])
    if origin is Literal or expected in (Any, None, type(None)):
        return expected
    if origin is not None and issubclass(origin, Mapping):
        return dict[str, Any]
    if origin is not None and issubclass(origin, Collection | Iterable) and origin is not tuple:
        [element] = typing.get_args(expected) or (Any,)
        return list[_wire_type(element)]  # type: ignore[misc]
    if isinstance(expected, typing.TypeVar):
        return Any
    return expected


def _union(members: list[Any]) -> Any:
    """Returns a union with at most one member for each form that a value can have outside
    Python."""
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
    """Returns whether a record names its own type, so that several may form a union."""
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
OPERATIONS_BY_METHOD: Final[dict[str, Operation]] = {
    f"{operation.layer}.{operation.method}": operation
    for operation in OPERATIONS.values()
    if operation.method != operation.name
}
