"""Turns a layer's operations on a transaction into calls on a store, one transaction each.

A layer is a class of operations on a transaction: `Jobs(tx).put(...)`. `per_call(Jobs)` is a class
with the same methods that is given a `Runner` in place of a transaction and opens a view (what is
declared to read) or a transaction (all else) around each call. A layer that offers more than single
transactions (a wait, a long job in bounded steps) derives from it:

    if TYPE_CHECKING:
        _PerCall = Jobs
    else:
        _PerCall = per_call(Jobs)

    class StoreJobs(_PerCall):
        def pop_waiting(self, ...): ...  # uses self._runner
"""

import functools
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

import msgspec

from holdfast.declarations import declared
from holdfast.engine.contract import Reader, Subscription, Transaction
from holdfast.limits import MAX_ARGUMENT_DEPTH

__all__ = ["EVERY_SPACE", "Runner", "can_run_again", "per_call"]

T = TypeVar("T")

EVERY_SPACE: Final = "*"  # all spaces: its tables are the defaults of every other

# The usual types of arguments: one check of all of them costs less than a check of each.
_SCALARS: Final = frozenset({bool, bytes, float, int, str, type(None)})
_are_scalars: Final = _SCALARS.issuperset
_are_plain: Final = (_SCALARS | {dict, list, tuple}).issuperset


class Runner(Protocol):
    """One space of a store, as the layers see it."""

    @property
    def is_remote(self) -> bool:
        """Returns whether all work runs more than once, first on guesses about what it reads."""
        ...

    def transact(self, work: Callable[[Transaction], T], kind: str = "") -> T:
        """Runs `work` as a transaction; works of the same `kind` read similar keys."""
        ...

    def view(self) -> AbstractContextManager[Reader]:
        """Opens one consistent snapshot."""

    def read(self, work: Callable[[Reader], T], kind: str = "") -> T:
        """Runs `work` on a view, more than once if that saves round trips; works of the same `kind`
        read similar keys."""
        ...

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        """Subscribes to notices of this space whose topics begin with `topic_prefix`."""

    def read_clock(self) -> float:
        """Returns the time by the store's clock, in seconds since 1970."""


def per_call(layer: type[Any]) -> type[Any]:
    """Returns a class with the public methods of `layer`, each one transaction of a `Runner`."""

    def init(self: Any, runner: Runner, make: Callable[[Any], Any] = layer) -> None:
        self._runner = runner
        self._make = make

    members: dict[str, Any] = {"__init__": init, "__doc__": layer.__doc__}
    for name in dir(layer):
        method = getattr(layer, name)
        if not name.startswith("_") and callable(method):
            members[name] = _viewed(method) if declared(method).reads else _transacted(method)
    return type(f"PerCall{layer.__name__}", (), members)


def _viewed(method: Callable[..., Any]) -> Callable[..., Any]:
    kind = method.__qualname__

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        runner, make = self._runner, self._make
        if runner.is_remote and _can_be_read_again((*args, *kwargs.values())):
            return runner.read(lambda reader: method(make(reader), *args, **kwargs), kind)
        with runner.view() as reader:
            return method(make(reader), *args, **kwargs)

    return call


def _transacted(method: Callable[..., Any]) -> Callable[..., Any]:
    kind = method.__qualname__

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        make = self._make
        if self._runner.is_remote:
            plain = _can_be_read_again(args) and _can_be_read_again(kwargs.values())
            if plain:
                return self._runner.transact(lambda tx: method(make(tx), *args, **kwargs), kind)
        else:  # work usually runs once, so nested iterators are not searched here
            plain = _are_plain(map(type, args)) and (
                not kwargs or _are_plain(map(type, kwargs.values()))
            )
        if plain and not kwargs:
            return self._runner.transact(lambda tx: method(make(tx), *args))
        if plain:
            return self._runner.transact(lambda tx: method(make(tx), *args, **kwargs))
        given = [_replayable(each) for each in args]
        named = {name: _replayable(each) for name, each in kwargs.items()}
        return self._runner.transact(
            lambda tx: method(
                make(tx),
                *[each() for each in given],
                **{name: each() for name, each in named.items()},
            )
        )

    return call


# --- arguments that are read more than once -------------------------------------------------------


def _can_be_read_again(values: Collection[Any], depth: int = MAX_ARGUMENT_DEPTH) -> bool:
    """Returns whether these values neither are nor contain iterators."""
    if _are_scalars(map(type, values)):
        return True
    for each in values:
        kind = type(each)
        if kind in _SCALARS:
            continue
        if depth and isinstance(each, list | tuple):
            if not _can_be_read_again(each, depth - 1):
                return False
        elif depth and isinstance(each, dict):
            if not _can_be_read_again(each.values(), depth - 1):
                return False
        elif depth and isinstance(each, msgspec.Struct):
            held = [getattr(each, name) for name in each.__struct_fields__]
            if not _can_be_read_again(held, depth - 1):
                return False
        elif isinstance(each, Iterator):
            return False
    return True


def can_run_again(work: Callable[..., Any]) -> bool:
    """Returns whether the arguments of the call that `work` was made for can be read once more.

    Other work is up to its author, who knows that it may run twice.
    """
    if getattr(work, "__module__", None) != __name__:
        return True
    cells = getattr(work, "__closure__", None) or ()
    return _can_be_read_again([cell.cell_contents for cell in cells])


def _replayable(argument: Any, depth: int = MAX_ARGUMENT_DEPTH) -> Callable[[], Any]:
    """Returns a function that gives each run of the work its own copy of the argument.

    An iterator can be read only once, so each run gets its own, which yields the same items and
    fails where the first one failed. The same holds for iterators in lists, tuples, dicts and
    records.
    """
    if isinstance(argument, Iterator):
        return _replayed(argument, depth)
    if not depth or _can_be_read_again((argument,), depth):
        return lambda: argument
    if isinstance(argument, dict):
        values = {key: _replayable(each, depth - 1) for key, each in argument.items()}
        return lambda: {key: each() for key, each in values.items()}
    if isinstance(argument, msgspec.Struct):
        fields = {
            name: _replayable(getattr(argument, name), depth - 1)
            for name in argument.__struct_fields__
        }
        return lambda: type(argument)(**{name: each() for name, each in fields.items()})
    items = [_replayable(each, depth - 1) for each in argument]
    if isinstance(argument, list):
        return lambda: [each() for each in items]
    make = getattr(argument, "_make", tuple)  # a named tuple stays one
    return lambda: make(each() for each in items)


def _replayed(iterator: Iterator[Any], depth: int) -> Callable[[], Iterator[Any]]:
    taken: list[Callable[[], Any]] = []
    failed: list[Exception] = []

    def walk() -> Iterator[Any]:
        for each in taken:
            yield each()
        while not failed:
            try:
                item = _replayable(next(iterator), max(depth - 1, 0))
            except StopIteration:
                return
            except Exception as error:
                failed.append(error)
            else:
                taken.append(item)
                yield item()
        raise failed[0]

    return walk
