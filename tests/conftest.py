"""What the tests of every room stand on.

A test that takes `engine` or `store` runs on every engine that HOLDFAST_TEST_ENGINES names, and
ends with a consistency check.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine
from holdfast.store import Store
from holdfast.testing import Clock


@contextmanager
def _empty_lmdb(folder: Path, clock: Clock) -> Iterator[Engine]:
    engine = open_engine(folder / "store", durability="interval", clock=clock)
    try:
        yield engine
        assert engine.check() == []
    finally:
        engine.close()


EMPTY_ENGINES: dict[str, Callable[[Path, Clock], AbstractContextManager[Engine]]] = {
    "lmdb": _empty_lmdb,
}


LAYERS = {"entities", "events", "jobs", "metrics", "tables"}


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until the test turns it."""
    return Clock()


@pytest.fixture(params=os.environ.get("HOLDFAST_TEST_ENGINES", "lmdb").split(","))
def engine(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """An empty engine."""
    with EMPTY_ENGINES[request.param](tmp_path, clock) as engine:
        yield engine


@pytest.fixture
def store(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store on `engine`. At the end of a layer's test, it must agree with itself."""
    store = Store(engine)
    yield store
    if request.path.parent.name in LAYERS and not request.node.get_closest_marker("damages"):
        assert problems_of(store) == []


def problems_of(store: Store) -> list[str]:
    """What `admin.check` finds in all spaces."""
    problems: list[str] = []
    for space in map(store.space, store.spaces()):
        step = space.admin.check()
        problems += step.problems
        while step.next is not None:
            step = space.admin.check(after=step.next)
            problems += step.problems
    return problems
