"""Fixtures for the tests of Holdfast's users; pytest finds them by itself."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.store import Store
from holdfast.testing import Clock, run_tasks, temporary_store

if TYPE_CHECKING:
    from holdfast.tasks import Tasks
    from holdfast.tasks.inline import Ran


@pytest.fixture
def holdfast_clock() -> Clock:
    """A clock that stays still until the test advances it."""
    return Clock()


@pytest.fixture
def holdfast_store(holdfast_clock: Clock) -> Iterator[Store]:
    """An empty store on `holdfast_clock`, gone after the test."""
    with temporary_store(clock=holdfast_clock) as store:
        yield store


@pytest.fixture
def tasks_run(holdfast_store: Store) -> "Callable[..., list[Ran]]":
    """Runs the due tasks of `holdfast_store`: `tasks_run(tasks)`; see `testing.run_tasks`."""

    def run(tasks: "Tasks", **options: Any) -> "list[Ran]":
        return run_tasks(holdfast_store, tasks, **options)

    return run
