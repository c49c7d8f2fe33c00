"""The servers that the tests of the HTTP door share."""

from collections.abc import Iterator

import pytest

from tests.server.serving import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it as they found it; each uses names of its own."""
    with serving(tmp_path_factory.mktemp("served"), "--pixel") as running:
        yield running
