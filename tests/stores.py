"""Where the tests get a store: a fresh, empty one on the engine that the test is run on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine
from holdfast.store import Store
from holdfast.testing import Clock
from tests.servers import Servers


class Stores:
    """Fresh, empty stores on one engine.

    A test that takes the fixture `stores` runs on every engine that was chosen. It may open any
    number of them, one after another or several at once: a property opens one for each example.
    """

    def __init__(self, servers: Servers, engine: str) -> None:
        self._servers = servers
        self.engine_name = engine

    def url(self) -> str:
        """The URL of an empty store, for as long as the test runs: to open it by hand, more than
        once, or in other processes."""
        return self._servers.lend(self.engine_name)

    @contextmanager
    def open(self, *, clock: Callable[[], float] | None = None, **options: Any) -> Iterator[Store]:
        """An empty store, which is checked and emptied at the end of the block.

        Its clock does not move unless another is given, and its durability is "interval".
        """
        with self.open_engine(clock=clock, **options) as engine:
            yield Store(engine)

    @contextmanager
    def open_engine(
        self, *, clock: Callable[[], float] | None = None, **options: Any
    ) -> Iterator[Engine]:
        """An empty engine, below the layers."""
        options.setdefault("durability", "interval")
        with self._servers.lending(self.engine_name) as url:
            engine = open_engine(url, clock=clock or Clock(), **options)
            try:
                yield engine
                assert engine.check() == []
            finally:
                engine.close()


def problems_of(store: Store) -> list[str]:
    """Returns what `admin.check` finds in all spaces."""
    problems: list[str] = []
    for space in map(store.space, store.spaces()):
        step = space.admin.check()
        problems += step.problems
        while step.next is not None:
            step = space.admin.check(after=step.next)
            problems += step.problems
    return problems
