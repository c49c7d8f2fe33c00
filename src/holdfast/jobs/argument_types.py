"""Checks arguments against the types in their method's signature, and raises `BadArgument`.

The server decodes requests into these types, but a caller in the same process can pass anything:
without this check `count="3"` would raise a `TypeError` deep inside, and `klass=None` would store a
record that can't be read. `check_argument_types` decorates a class of operations. The check of a
method is built from its signature on the first call, and costs at most a microsecond from then on.

The hottest methods are marked with `checks_own_arguments`: their first lines accept the usual
arguments and pass all others to `check`.
"""

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar, Union

import msgspec
from msgspec.structs import astuple, fields

from holdfast.errors import BadArgument
from holdfast.jobs.arguments import shortened

Layer = TypeVar("Layer", bound=type[Any])
Method = TypeVar("Method", bound=Callable[..., Any])
Fits = Callable[[Any], bool]

_LARGEST: Final = sys.float_info.max
# Two defaults, for methods that check themselves: `is` recognizes them without a further check.
ZERO: Final = 0
EMPTY: Final = ()
LARGEST_INT: Final = 2**63 - 1  # what a record can hold, and what a server accepts


class ArgumentKind(NamedTuple):
    """The values that an argument may have: a test, words for it, and types that need no test.

    Without a test it may be anything.
    """

    fits: Fits | None
    words: str
    always_fitting: frozenset[type] = frozenset()


class _Checks(NamedTuple):
    """The kinds of a method's arguments."""

    in_order: tuple[tuple[str, ArgumentKind], ...]
    by_name: dict[str, ArgumentKind]
    star: tuple[str, ArgumentKind] | None


def check_argument_types(layer: Layer) -> Layer:
    """Makes the public methods of `layer`, inherited ones included, check their arguments.

    Methods that a store runs in a transaction are checked in their layer, not here.
    """
    found: dict[str, Any] = {}  # in the order of the reference
    for base in layer.__mro__:
        for name, method in vars(base).items():
            found.setdefault(name, method)
    for name, method in found.items():
        if (
            not name.startswith("_")
            and inspect.isfunction(method)
            and (name in vars(layer) or not hasattr(method, "__wrapped__"))
        ):
            itself = hasattr(method, "__checks_own_arguments__")
            setattr(layer, name, method if itself else _checked(method))
    return layer


def checks_own_arguments(method: Method) -> Method:
    """Marks a method that calls `check` for all but its usual arguments."""
    method.__checks_own_arguments__ = True  # type: ignore[attr-defined]  # a mark on the function
    return method


def check(method: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raises `BadArgument` for an argument of `method` that has the wrong type.

    `given` holds all arguments by name, in order: `locals()` at the start of the method.
    """
    for name, fits in _arguments_to_check(method, tuple(map(type, given.values()))):
        if not fits(given[name]):
            raise _bad_argument(name, _checks_of(method).by_name[name], given[name])


@functools.lru_cache(maxsize=1024)
def _arguments_to_check(
    method: Callable[..., Any], types_: tuple[type, ...]
) -> tuple[tuple[str, Fits], ...]:
    """Returns the arguments to check in calls with arguments of these types."""
    by_name = _checks_of(method).by_name
    named = zip(by_name.items(), types_[1:], strict=True)  # all but `self`
    return tuple(
        (name, fits)
        for (name, (fits, _, always_fitting)), type_ in named
        if fits is not None and type_ not in always_fitting
    )


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    checks: _Checks | None = None
    always_fitting: tuple[frozenset[type] | None, ...] = ()

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal checks, always_fitting
        if checks is None:
            checks = _checks_of(method)
            always_fitting = tuple(
                kind.always_fitting if kind.fits else None for _, kind in checks.in_order
            )
        if kwargs or len(args) > len(always_fitting):
            _check(checks, args, kwargs)
        else:  # mostly names, whose types need no further check
            for value, types_ in zip(args, always_fitting, strict=False):
                if types_ is not None and type(value) not in types_:
                    _check(checks, args, kwargs)
                    break
        return method(self, *args, **kwargs)

    return call


def _check(checks: _Checks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    in_order, by_name, star = checks
    for (name, (fits, _, always_fitting)), value in zip(in_order, args, strict=False):
        if fits is not None and type(value) not in always_fitting and not fits(value):
            raise _bad_argument(name, by_name[name], value)
    for name, value in kwargs.items():
        found = by_name.get(name)
        if found is not None:
            fits, _, always_fitting = found
            if fits is not None and type(value) not in always_fitting and not fits(value):
                raise _bad_argument(name, found, value)
    if star is not None and star[1].fits is not None:
        for value in args[len(in_order) :]:
            if not star[1].fits(value):
                raise _bad_argument(star[0], star[1], value)


_DURATIONS: Final = {"delay", "interval", "lock_seconds", "offset", "timeout", "unique_for"}
_IN_SECONDS: Final = "Durations are numbers of seconds: 60, or timedelta(...).total_seconds()."


def _bad_argument(name: str, kind: ArgumentKind, value: Any) -> BadArgument:
    hint = _IN_SECONDS if name in _DURATIONS else None
    return BadArgument.named(name, f"must be {kind.words}, not {_printable(value)}", hint=hint)


def _printable(value: Any) -> str:
    try:
        return shortened(ascii(value))
    except Exception:  # an integer of too many digits, or a `__repr__` that raises
        return f"something of type {type(value).__name__}"


@functools.cache
def _checks_of(method: Callable[..., Any]) -> _Checks:
    hints = typing.get_type_hints(method)
    in_order: list[tuple[str, ArgumentKind]] = []
    by_name: dict[str, ArgumentKind] = {}
    star = None
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        kind = kind_of(hints.get(parameter.name, Any))
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = (parameter.name, kind)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            by_name[parameter.name] = kind
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                in_order.append((parameter.name, kind))
    return _Checks(tuple(in_order), by_name, star)


# --- kinds -------------------------------------------------------------------------------------


@functools.cache
def kind_of(hint: Any) -> ArgumentKind:
    """Returns the kind of values that a type means.

    >>> kind_of(int).fits(3), kind_of(int).fits("3"), kind_of(float | None).words
    (True, False, 'a number or None')
    """
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _either([kind_of(each) for each in arguments])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return ArgumentKind(_is_object, "a dict with names as its keys")
    if isinstance(origin, type) and issubclass(origin, Collection):
        return _list_of(kind_of(arguments[0]))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _record(hint)
    return ArgumentKind(None, "anything")


def _is_text(value: Any) -> bool:
    return type(value) is str or (isinstance(value, str) and isinstance(value, Enum))


def _is_whole(value: Any) -> bool:
    return type(value) is int and -LARGEST_INT <= value <= LARGEST_INT


def _is_number(value: Any) -> bool:
    return (type(value) is float and -_LARGEST <= value <= _LARGEST) or _is_whole(value)


def _is_object(value: Any) -> bool:
    return type(value) is dict and all(map(_is_text, value))


_PLAIN: Final[dict[Any, ArgumentKind]] = {
    str: ArgumentKind(_is_text, "text", frozenset({str})),
    int: ArgumentKind(_is_whole, "a whole number of 64 bits"),
    float: ArgumentKind(_is_number, "a number"),
    bool: ArgumentKind(lambda value: type(value) is bool, "True or False", frozenset({bool})),
    type(None): ArgumentKind(lambda value: value is None, "None", frozenset({type(None)})),
}


def _either(kinds: list[ArgumentKind]) -> ArgumentKind:
    known = [kind.fits for kind in kinds if kind.fits is not None]
    words = " or ".join(dict.fromkeys(kind.words for kind in kinds))
    if len(known) < len(kinds):
        return ArgumentKind(None, words)

    def is_either(value: Any) -> bool:
        for fits in known:  # noqa: SIM110  # `any` would take twice as long
            if fits(value):
                return True
        return False

    return ArgumentKind(
        is_either, words, frozenset().union(*(kind.always_fitting for kind in kinds))
    )


def _list_of(element: ArgumentKind) -> ArgumentKind:
    words = f"a list, each of them {element.words}"
    fits = element.fits

    def is_list(value: Any) -> bool:
        return (
            isinstance(value, Collection)
            and not isinstance(value, str | bytes | bytearray | Mapping)
            and (fits is None or all(map(fits, value)))
        )

    return ArgumentKind(is_list, words)


def _record(record: type[msgspec.Struct]) -> ArgumentKind:
    """Returns the kind of a record with fields of the right types, which msgspec does not check."""
    hints = typing.get_type_hints(record)
    checks = [(each.default, *kind_of(hints[each.name])) for each in fields(record)]

    def is_record(value: Any) -> bool:
        if not isinstance(value, record):
            return False
        for field, (default, fits, _, always_fitting) in zip(astuple(value), checks, strict=True):
            if field is default:  # as most fields of most records are
                continue
            if type(field) not in always_fitting and fits is not None and not fits(field):
                return False
        return True

    return ArgumentKind(is_record, f"a {record.__name__} with fields of its types")
