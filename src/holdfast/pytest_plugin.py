"""Fixtures for the tests of those who use Holdfast; pytest finds them by itself."""

from collections.abc import Iterator

import pytest

from holdfast.store import Store
from holdfast.testing import Clock, temporary_store


@pytest.fixture
def holdfast_clock() -> Clock:
    """A clock that stands still until the test turns it."""
    return Clock()


@pytest.fixture
def holdfast_store(holdfast_clock: Clock) -> Iterator[Store]:
    """An empty store on `holdfast_clock`, gone after the test."""
    with temporary_store(clock=holdfast_clock) as store:
        yield store
