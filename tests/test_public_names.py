"""The names of `holdfast` itself: what a user sees who imports it."""

import subprocess
import sys
from pathlib import Path

import holdfast
from holdfast.testing import temporary_server
from holdfast.version import VERSION


def test_the_version_is_where_people_look_for_it() -> None:
    assert holdfast.__version__ == VERSION


def test_dir_and_completion_show_the_public_names_before_they_are_used() -> None:
    program = "import holdfast; print(*dir(holdfast))"

    shown = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()

    assert {name for name in shown if not name.startswith("__")} == {
        name for name in holdfast.__all__ if not name.startswith("__")
    }


def test_every_public_name_exists() -> None:
    assert all(getattr(holdfast, name) for name in holdfast.__all__)


def test_a_repl_shows_a_store_and_its_spaces_by_name(tmp_path: Path) -> None:
    place = repr(str(tmp_path / "data"))

    with holdfast.open(tmp_path / "data") as store:
        assert repr(store) == f"<holdfast.Store {place}>"
        assert repr(store.space("shop")) == f"<holdfast.Space 'shop' of {place}>"
        assert repr(store.aio.space("shop")) == f"<AsyncStoreSpace 'shop' of {store!r}>"
        assert repr(store.aio.jobs) == f"<AsyncJobs of <AsyncStore 'default' of {store!r}>>"


def test_a_repl_shows_a_client_by_its_url_without_the_login() -> None:
    with temporary_server() as url, holdfast.connect(f"{url}/shop") as client:
        assert repr(client) == f"<holdfast.client.Client {url}/shop>"
        assert repr(client.space("b").jobs) == (
            f"<ClientJobs of <holdfast.client.ClientSpace {url}/b>>"
        )
