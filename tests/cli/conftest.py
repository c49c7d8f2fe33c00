"""A store in a folder, and the same store behind a running server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
from tests.cli.running import Ran
from tests.cli.running import holdfast as run
from tests.server.serving import serving

Command = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with nothing in it."""
    with holdfast.open(tmp_path / "data"):
        pass
    return tmp_path / "data"


@pytest.fixture(params=["folder", "server"])
def command(request: pytest.FixtureRequest, folder: Path) -> Iterator[Command]:
    """Runs a command on the store in `folder`, and on a server that has it open."""
    if request.param == "folder":
        yield lambda *words, **more: run(*words, "--data", folder, **more)
        return
    backups = folder.parent / "backups"
    with serving(folder, "--backups", str(backups)) as server:
        url = f"holdfast://127.0.0.1:{server.resp_port}"
        yield lambda *words, **more: run(*words, "--url", url, **more)


@pytest.fixture
def store(folder: Path, command: Command) -> Iterator[holdfast.Store]:
    """The store, to put something into it; closed before the test looks at a folder."""
    from holdfast.cli.location import open_store

    with open_store(str(folder)) as store:
        yield store
