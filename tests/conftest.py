"""Fixtures and options that all tests share.

A test that takes `stores`, `engine` or `store` can run on every engine. Without `--engines`, all
tests run on LMDB, and those marked `every_engine` on the others too; `--engines postgres,cluster`
runs all tests that can on these alone, and `--engines all` on all. Such a test ends with a
consistency check of its store. An engine that was asked for and can't be started is a failure.
`--full` repeats what chance decides more often: kills, power failures, random examples. Without it,
hypothesis tries the same examples in each run, so that a change is judged by what it changes.
"""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from holdfast.defaults import LAYERS
from holdfast.engine.contract import Engine
from holdfast.store import Store
from holdfast.testing import Clock
from tests.repetitions import VARIABLE
from tests.servers import ENGINES, Servers
from tests.stores import Stores, problems_of

QUICK: Final = ENGINES  # where the quick selection runs
LONG: Final = (  # these take seconds each
    *("tests/campaign/", "tests/crash/", "tests/dashboard/test_browser.py"),
    *("tests/test_documentation.py", "tests/test_examples.py", "tests/test_benchmarks.py"),
)
# Servers of tests record nothing, unless a test is about it: a space `system` that comes into being
# after a while would be in some lists of spaces and not in others.
os.environ.setdefault("HOLDFAST_NO_RECORD", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engines",
        metavar="NAMES",
        help=f"engines to run the tests on, of {','.join(ENGINES)}, or all; without it, LMDB "
        "for all tests and every engine for a quick selection",
    )
    parser.addoption(
        "--full", action="store_true", help="repeat what chance decides as often as can be borne"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--full"):
        os.environ[VARIABLE] = "1"
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # Shells make programs in the background ignore Ctrl-C, and Python leaves it at that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile(
        "holdfast",
        derandomize=not os.environ.get(VARIABLE),
        deadline=None,  # a busy machine may take its time
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("holdfast")
    config.pluginmanager.register(_LongFirst())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        names = _engines_of(metafunc.definition, metafunc.config)
        metafunc.parametrize("engine_name", names, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keeps the collector away from the half million objects of all tests, here and later: each of
    its full runs would take half a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drops what has nothing to do with the chosen engines."""
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        (kept if _is_run(item, config) else dropped).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept


class _LongFirst:
    """Begins with the tests that take longest: near the end, one worker would wait for another."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def _is_run(test: pytest.Item, config: pytest.Config) -> bool:
    """Returns whether the test runs on its engine: a single parameter may be marked for fewer."""
    engines = _engines_of(test, config)
    called_with = getattr(test, "callspec", None)
    engine = called_with.params.get("engine_name") if called_with is not None else None
    return bool(engines) if engine is None else engine in engines


def _engines_of(test: pytest.Item, config: pytest.Config) -> list[str]:
    """On which engines to run a test; one that needs none goes with LMDB."""
    chosen = _chosen(config)
    can_run_on_all = "engine_name" in getattr(test, "fixturenames", ())
    is_asked_for = chosen is not None or test.get_closest_marker("every_engine") is not None
    possible = ENGINES if can_run_on_all and is_asked_for else ENGINES[:1]
    if (only_on := test.get_closest_marker("only_on")) is not None:
        possible = only_on.args
    return [engine for engine in chosen or QUICK if engine in possible]


def _chosen(config: pytest.Config) -> tuple[str, ...] | None:
    option = config.getoption("--engines")
    if option is None:
        return None
    names = ENGINES if option == "all" else tuple(option.split(","))
    if unknown := set(names) - set(ENGINES):
        raise pytest.UsageError(f"unknown engines {unknown}: name some of {', '.join(ENGINES)}")
    return names


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The servers of this process of tests; none is started before a test asks for it."""
    servers = Servers()
    yield servers
    servers.close()


@pytest.fixture(autouse=True)
def _take_back_stores(servers: Servers) -> Iterator[None]:
    """Empties what a test has borrowed after it; what several tests share was lent before."""
    shared = servers.lent()
    yield
    servers.take_back(keep=shared)


@pytest.fixture(scope="session")
def stores(servers: Servers, engine_name: str) -> Stores:
    """Fresh, empty stores on the engine that the test runs on."""
    return Stores(servers, engine_name)


@pytest.fixture
def clock() -> Clock:
    """A clock that does not move until the test turns it."""
    return Clock()


@pytest.fixture
def engine(stores: Stores, clock: Clock) -> Iterator[Engine]:
    """An empty engine."""
    with stores.open_engine(clock=clock) as engine:
        yield engine


@pytest.fixture
def store(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store on `engine`. At the end of a layer's test, it must agree with itself."""
    store = Store(engine)
    yield store
    if request.path.parent.name in LAYERS and not request.node.get_closest_marker("damages"):
        assert problems_of(store) == []
