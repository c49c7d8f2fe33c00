"""The servers that the tests of HTTP share."""

from collections.abc import Iterator

import pytest

from tests.server.serving import Server, serving
from tests.stores import Stores


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, stores: Stores) -> Iterator[Server]:
    """One server for all tests that leave it as they found it; each uses names of its own."""
    data = tmp_path_factory.mktemp("served")
    with serving(data, "--engine", stores.url(), "--pixel") as running:
        yield running
