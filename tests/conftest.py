"""What the tests of every room stand on.

A test that takes `stores`, `engine` or `store` can run on every engine. Without `--engines`, all
tests run on LMDB, and those marked `every_engine` on the others too; `--engines postgres,cluster`
runs all tests that can on these alone, and `--engines all` on all. Such a test ends with a
consistency check of its store. An engine that was asked for and can't be started is a failure.
"""

from collections.abc import Iterator

import pytest

from holdfast.engine.contract import Engine
from holdfast.store import Store
from holdfast.testing import Clock
from tests.servers import ENGINES, Servers
from tests.stores import Stores


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engines",
        metavar="NAMES",
        help=f"engines to run the tests on, of {','.join(ENGINES)}, or all; without it, LMDB "
        "for all tests and every engine for a quick selection",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" not in metafunc.fixturenames:
        return
    possible = _about(metafunc.definition) or ENGINES
    chosen = _chosen(metafunc.config)
    if chosen is None:
        quick = metafunc.definition.get_closest_marker("every_engine") is not None
        chosen = ENGINES if quick or possible is not ENGINES else ENGINES[:1]
    names = [engine for engine in chosen if engine in possible]
    metafunc.parametrize("engine_name", names, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drops what has nothing to do with the chosen engines; what needs none goes with LMDB."""
    chosen = _chosen(config)
    if chosen is None:
        return
    dropped = [item for item in items if not _belongs_to(item, chosen)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if _belongs_to(item, chosen)]


def _chosen(config: pytest.Config) -> tuple[str, ...] | None:
    option = config.getoption("--engines")
    if option is None:
        return None
    names = ENGINES if option == "all" else tuple(option.split(","))
    if unknown := set(names) - set(ENGINES):
        raise pytest.UsageError(f"unknown engines {unknown}: name some of {', '.join(ENGINES)}")
    return names


def _belongs_to(item: pytest.Item, chosen: tuple[str, ...]) -> bool:
    can_run_on_all = "engine_name" in getattr(item, "fixturenames", ())
    possible = _about(item) or (ENGINES if can_run_on_all else ENGINES[:1])
    return any(engine in chosen for engine in possible)


def _about(item: pytest.Item) -> tuple[str, ...] | None:
    """The engines that a test is about, if it is not about any."""
    marker = item.get_closest_marker("only_on")
    return None if marker is None else marker.args


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The servers of this process of tests; none is started before a test asks for it."""
    servers = Servers()
    yield servers
    servers.close()


@pytest.fixture(autouse=True)
def _take_back_stores(servers: Servers) -> Iterator[None]:
    yield
    servers.take_back()


@pytest.fixture(scope="session")
def stores(servers: Servers, engine_name: str) -> Stores:
    """Fresh, empty stores on the engine that the test runs on."""
    return Stores(servers, engine_name)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until the test turns it."""
    return Clock()


@pytest.fixture
def engine(stores: Stores, clock: Clock) -> Iterator[Engine]:
    """An empty engine."""
    with stores.open_engine(clock=clock) as engine:
        yield engine


@pytest.fixture
def store(engine: Engine) -> Store:
    """An empty store on `engine`."""
    return Store(engine)
