"""How a layer's operations on one transaction become calls on a store, one transaction each.

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
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

from holdfast.declarations import declared
from holdfast.engine.contract import Reader, Subscription, Transaction

__all__ = ["EVERY_SPACE", "Runner", "per_call"]

T = TypeVar("T")

EVERY_SPACE: Final = "*"  # the space that stands for all: its tables are every other's defaults

# What most arguments are, and no iterator is: all types at once cost less than a look at each.
_are_plain: Final = frozenset(
    {bool, bytes, dict, float, int, list, str, tuple, type(None)}
).issuperset


class Runner(Protocol):
    """One space of a store, as the layers see it."""

    def transact(self, work: Callable[[Transaction], T]) -> T: ...

    def view(self) -> AbstractContextManager[Reader]: ...

    def subscribe(self, topic_prefix: str = "") -> Subscription: ...

    def read_clock(self) -> float: ...


def per_call(layer: type[Any]) -> type[Any]:
    """A class with the public methods of `layer`, each one transaction of a `Runner`."""

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
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._runner.view() as reader:
            return method(self._make(reader), *args, **kwargs)

    return call


def _transacted(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        make = self._make
        if _are_plain(map(type, args)) and (not kwargs or _are_plain(map(type, kwargs.values()))):
            return self._runner.transact(lambda tx: method(make(tx), *args, **kwargs))
        given = [_again(each) for each in args]
        named = {name: _again(each) for name, each in kwargs.items()}
        return self._runner.transact(
            lambda tx: method(
                make(tx),
                *[each() for each in given],
                **{name: each() for name, each in named.items()},
            )
        )

    return call


def _again(argument: Any) -> Callable[[], Any]:
    """Gives an argument as often as work runs. An iterator can be walked once only, so each run
    gets one of its own, which gives the same items, and fails where the first has failed."""
    if not isinstance(argument, Iterator):
        return lambda: argument
    walked: list[Any] = []
    failed: list[Exception] = []

    def walk() -> Iterator[Any]:
        yield from walked
        while not failed:
            try:
                item = next(argument)
            except StopIteration:
                return
            except Exception as error:
                failed.append(error)
            else:
                walked.append(item)
                yield item
        raise failed[0]

    return walk
