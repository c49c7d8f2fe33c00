"""The parameters of a task: which are stored with its job, and which are injected when it runs.

Stored ones are encoded by their annotations and kept by name; injected ones are found by their
annotations and never part of the data.
"""

import hashlib
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, Union

import msgspec

from holdfast.error_text import WRONG_TYPE
from holdfast.errors import BadTask, BadTaskArgument
from holdfast.json_data import json_problem_in
from holdfast.store import Tx
from holdfast.tasks.run import HEADER, Run
from holdfast.tasks.values import UNFIT, from_plain, to_plain

__all__ = ["TaskParameters", "provided"]

Kind: TypeAlias = Literal["data", "run", "tx", "batch", "provided"]
_BATCH: Final = ("holdfast.client.batches", "Batch")
_encode_json: Final = msgspec.json.Encoder().encode
_SCALARS: Final = frozenset({str, int, bool, type(None)})
_P: Final = inspect.Parameter


class _Provided:
    """Marks a parameter for an object that `Tasks.provide` makes."""

    def __repr__(self) -> str:
        return "provided"


# Marks a parameter, as its default, whose object the worker injects: `mailer: Mailer = provided`.
# For type checkers, `put` then does not need it.
provided: Final[Any] = _Provided()


class Parameter(NamedTuple):
    """One parameter of a task."""

    name: str
    kind: Kind
    annotation: Any
    given: inspect.Parameter
    classes: tuple[type, ...] = ()  # what its values must be instances of; () if that is not enough


class TaskParameters:
    """The parameters of one function."""

    def __init__(self, function: Callable[..., Any], name: str, provides: Collection[Any]) -> None:
        self._task = name
        signature = _signature_of(function, name)
        hints = _hints_of(function, name)
        self.all = [
            _parameter(each, hints.get(each.name, Any), provides)
            for each in signature.parameters.values()
        ]
        self.data = [each for each in self.all if each.kind == "data"]
        self.kinds = {each.kind for each in self.all}
        self.result = hints.get("return", Any)
        self._names = frozenset(each.name for each in self.data)
        self._signature = inspect.Signature([each.given for each in self.data])
        self._check_injected(function)

    def _check_injected(self, function: Callable[..., Any]) -> None:
        if {"tx", "batch"} <= self.kinds:
            raise BadTask(f"task {self._task} takes both Tx and Batch; a run has only one of them")
        if "tx" in self.kinds and inspect.iscoroutinefunction(function):
            raise BadTask(
                f"task {self._task} is async and takes a Tx",
                hint="All other writers wait for a transaction, so it can't contain an await: make "
                "the task a plain function, or take a Batch.",
            )
        for each in self.all:
            if each.kind != "data" and each.given.kind in (_P.VAR_POSITIONAL, _P.VAR_KEYWORD):
                raise BadTask(f"task {self._task}: *{each.name} can't be injected")

    # --- putting ----------------------------------------------------------------------------------

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a call by name, as plain data; raises if they don't fit."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadTaskArgument(
                f"the arguments of {self._task} don't fit: {error}",
                hint=f"It takes {self._signature}.",
            ) from None
        bound.apply_defaults()
        return {
            each.name: self._encoded(each, bound.arguments[each.name])
            for each in self.data
            if each.name in bound.arguments
        }

    def digest(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Returns a text that is the same for calls with equal arguments."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        plain = to_plain(bound.arguments, in_order=True)
        return hashlib.sha256(_encode_json(plain)).hexdigest()[:32]

    def _encoded(self, parameter: Parameter, value: Any) -> Any:
        if parameter.classes and not isinstance(value, parameter.classes):
            names = " or ".join(_name_of(each) for each in parameter.classes)
            raise self._refusal(parameter.name, f"is {_kind_of(value)}, expected {names}")
        if type(value) in _SCALARS and type(value) in parameter.classes:
            return value
        if parameter.annotation is Any:
            unfit = json_problem_in(value, parameter.name)
            if unfit is not None:
                raise BadTaskArgument(
                    f"{self._task}: {unfit}, and has no annotation",
                    hint="Annotate the parameter, or pass plain data: dicts, lists, texts, "
                    "numbers, booleans and None.",
                )
            return value
        try:
            plain = to_plain(value)
            from_plain(plain, parameter.annotation)  # or its run would fail
        except UNFIT as error:
            raise self._refusal(parameter.name, _msgspec_reason(error, parameter.name)) from None
        unfit = json_problem_in(plain, parameter.name)
        if unfit is not None:
            raise BadTaskArgument(f"{self._task}: {unfit}", hint=unfit.advice)
        return plain

    def _refusal(self, name: str, why: str) -> BadTaskArgument:
        return BadTaskArgument(f"the argument {name} of {self._task} {why}")

    # --- running ----------------------------------------------------------------------------------

    def decode(self, data: Any) -> dict[str, Any]:
        """Returns the arguments in a job's data by name; `BadTaskArgument` says what is wrong."""
        if data is None:
            data = {}
        if not isinstance(data, dict):
            raise BadTaskArgument(
                f"the data of a job of {self._task} is not an object of its arguments by name"
            )
        for name in data:
            if name not in self._names and not name.startswith(HEADER):
                raise BadTaskArgument(f"{name}: {self._task} has no such parameter")
        decoded = {}
        for each in self.data:
            if each.name in data:
                decoded[each.name] = self._decoded(each, data[each.name])
            elif each.given.default is not _P.empty:
                decoded[each.name] = each.given.default
            elif each.given.kind not in (_P.VAR_POSITIONAL, _P.VAR_KEYWORD):
                raise BadTaskArgument(f"{each.name}: {self._task} needs it, and it is missing")
        return decoded

    def _decoded(self, parameter: Parameter, value: Any) -> Any:
        kind = type(value)
        if parameter.annotation is Any or (kind in _SCALARS and kind in parameter.classes):
            return value
        try:
            return from_plain(value, parameter.annotation)
        except UNFIT as error:
            raise BadTaskArgument(_msgspec_reason(error, parameter.name, path_first=True)) from None

    def call(
        self,
        function: Callable[..., Any],
        decoded: Mapping[str, Any],
        inject: Callable[[Parameter], Any],
    ) -> Any:
        """Calls the function with its stored arguments and with what `inject` gives."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for each in self.all:
            kind = each.given.kind
            if kind is _P.VAR_POSITIONAL:
                args += decoded.get(each.name, ())
            elif kind is _P.VAR_KEYWORD:
                kwargs |= decoded.get(each.name, {})
            else:
                value = decoded[each.name] if each.kind == "data" else inject(each)
                if kind is _P.KEYWORD_ONLY:
                    kwargs[each.name] = value
                else:
                    args.append(value)
        return function(*args, **kwargs)


# --- annotations ----------------------------------------------------------------------------------


def _signature_of(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some C functions have no signature
        raise BadTask(
            f"the parameters of task {name} can't be read: {function!r:.100} has no signature",
            hint="Write a function around it.",
        ) from None


def _hints_of(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise BadTask(f"the annotations of task {name} can't be read: {error}") from None


def _parameter(given: inspect.Parameter, hint: Any, provides: Collection[Any]) -> Parameter:
    annotation = hint
    if given.default is provided or _is_provided(annotation, provides):
        return Parameter(given.name, "provided", annotation, given)
    if isinstance(annotation, type) and issubclass(annotation, Run):
        return Parameter(given.name, "run", annotation, given)
    if annotation is Tx:
        return Parameter(given.name, "tx", annotation, given)
    if (getattr(annotation, "__module__", ""), getattr(annotation, "__name__", "")) == _BATCH:
        return Parameter(given.name, "batch", annotation, given)
    if given.kind is _P.VAR_POSITIONAL and annotation is not Any:
        annotation = types.GenericAlias(tuple, (annotation, ...))
    elif given.kind is _P.VAR_KEYWORD and annotation is not Any:
        annotation = types.GenericAlias(dict, (str, annotation))
    if annotation is object:
        annotation = Any
    return Parameter(given.name, "data", annotation, given, _classes_of(annotation))


def _is_provided(annotation: Any, provides: Collection[Any]) -> bool:
    try:
        return annotation in provides
    except TypeError:  # an annotation that can't be hashed
        return False


def _classes_of(annotation: Any) -> tuple[type, ...]:
    """Returns the classes that a value must be an instance of; () if that is not enough."""
    origin = typing.get_origin(annotation)
    if annotation is Any:
        return ()
    if origin is Annotated:
        return _classes_of(typing.get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        found = [_classes_of(each) for each in typing.get_args(annotation)]
        return tuple(each for classes in found for each in classes) if all(found) else ()
    if annotation is float:
        return (float, int)
    if annotation is None:
        return (type(None),)
    if not isinstance(annotation, type) or origin is not None or typing.is_typeddict(annotation):
        return ()
    return (annotation,)


def _name_of(kind: type) -> str:
    return "None" if kind is type(None) else kind.__name__


def _kind_of(value: Any) -> str:
    return _with_article(type(value).__name__)


def _with_article(name: str) -> str:
    return f"an {name}" if name[:1] in "aeiouAEIO" else f"a {name}"


def _msgspec_reason(error: Exception, name: str, *, path_first: bool = False) -> str:
    """Returns msgspec's message about a value, with the parameter in place of its `$`."""
    text = str(error)
    message, _, path = text.partition(" - at ")
    where = path.strip("`").replace("$", name, 1) if path else name
    if (found := WRONG_TYPE.fullmatch(message)) is not None:
        said = f"{where} is {_with_article(found['found'])}, expected {found['expected']}"
        return said if path_first else f"does not fit: {said}"
    if isinstance(error, msgspec.ValidationError) and path_first:
        return f"{where}: {message}"
    return f"does not fit: {message}" + (f" at {where}" if path else "")
