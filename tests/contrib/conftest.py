"""Fixtures of the tests of telemetry."""

from collections.abc import Iterator

import pytest

from tests.contrib.tracing import Tracing


@pytest.fixture
def tracing() -> Iterator[Tracing]:
    tracing = Tracing()
    yield tracing
    tracing.provider.shutdown()
