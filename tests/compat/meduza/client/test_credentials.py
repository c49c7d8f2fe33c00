"""Connectors and mdzctl with credentials, and encrypted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner, Result

import holdfast
from holdfast import meduza
from holdfast.compat.meduza.mdzctl import command
from holdfast.meduza.columns import Text
from holdfast.users import Grant, add_user
from tests.server.running import Server, serving

SCHEMA = """\
schema: test
tables:
  Users:
    primary: {type: Random}
    columns: {name: {type: Text}}
    indexes: [{type: simple, columns: [name]}]
"""


class User(meduza.Model):
    _schema, _table = "test", "Users"
    name = Text("name")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guarded")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """An encrypted server with one user, and one table in two spaces."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    with holdfast.open(folder / "data", durability="interval") as store:
        add_user(store.engine, "ann", "p@ss:word", (Grant(role="admin"),))
        store.entities.deploy(SCHEMA)
        store.space("other").entities.deploy(SCHEMA)
    files = ("--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"))
    with serving(folder / "data", *files) as server:
        yield server


def connector(server: Server, folder: Path, who: str, scheme: str, space: str = "") -> None:
    url = f"{scheme}://{who}127.0.0.1:{server.resp_port}/{space}?ca={folder / 'ca.pem'}"
    meduza.setup(*[meduza.customConnector(url, timeout=10)] * 2)


@pytest.mark.parametrize("scheme", ["holdfasts", "rediss"])
def test_a_connector_logs_in_with_what_its_url_names(
    server: Server, folder: Path, scheme: str
) -> None:
    connector(server, folder, "ann:p%40ss%3Aword@", scheme)

    [id] = meduza.put(User(name="ann"))

    assert meduza.get(User, id)[0].name == "ann"


def test_a_connector_may_work_in_another_space(server: Server, folder: Path) -> None:
    connector(server, folder, "ann:p%40ss%3Aword@", "holdfasts", "other")

    assert meduza.count(User) == 0


def test_wrong_credentials_and_none_are_refused(server: Server, folder: Path) -> None:
    connector(server, folder, "ann:wrong@", "holdfasts")
    with pytest.raises(meduza.RequestError, match="WRONGPASS"):
        meduza.count(User)

    connector(server, folder, "", "holdfasts")
    with pytest.raises(meduza.RequestError, match="NOAUTH"):
        meduza.count(User)


# --- without encryption --------------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Server]:
    with holdfast.open(tmp_path / "data", durability="interval") as store:
        add_user(store.engine, "ann", "secret", (Grant(role="admin"),))
        store.entities.deploy(SCHEMA)
    with serving(tmp_path / "data") as server:
        yield server


def test_a_connector_takes_user_and_password_as_arguments_too(plain: Server) -> None:
    made = meduza.customConnector("127.0.0.1", plain.resp_port, 10, user="ann", password="secret")
    meduza.setup(made, made)

    assert meduza.count(User) == 0


def mdzctl(*words: str) -> Result:
    return CliRunner().invoke(command, words)


def test_mdzctl_takes_credentials_in_the_url_of_the_server(plain: Server) -> None:
    host = f"127.0.0.1:{plain.http_port}"

    allowed = mdzctl("stats", "-s", f"http://ann:secret@{host}")
    refused = mdzctl("stats", "-s", f"http://ann:wrong@{host}")
    nobody = mdzctl("stats", "-s", f"http://{host}")
    nowhere = mdzctl("stats", "-s", "http://ann:secret@127.0.0.1:1")

    assert (allowed.exit_code, "test.Users" in allowed.output) == (0, True), allowed.output
    assert refused.exit_code != 0
    assert nobody.exit_code != 0
    assert "--token TOKEN" in nobody.output
    assert "secret" not in nowhere.output
