"""`mdzctl`: the commands of Meduza's control tool, on the control side of a server."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import bson
import pytest
import yaml

from tests.cli.running import Ran, environment
from tests.cli.running import holdfast as run
from tests.forking import ROOT
from tests.server.serving import Server, serving

SCHEMA = """
schema: shop
tables:
  Users:
    columns: {name: {type: Text}}
    indexes: [{type: compound, columns: [name]}]
"""
TABLE = ("-S", "shop", "-t", "Users")

Mdzctl = Callable[..., Ran]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("mdzctl") / "data") as server:
        yield server


@pytest.fixture
def mdzctl(server: Server) -> Mdzctl:
    """Runs a command on a server where `shop.Users` is deployed and empty."""

    def call(*words: str | Path, **more: str | bytes) -> Ran:
        return run("mdzctl", *words, "--server", server.url, **more)  # type: ignore[arg-type]  # the input of it

    assert call("deploy", "-f", "-", input=SCHEMA).code == 0
    assert call("drop", *TABLE).code == 0
    return call


@pytest.fixture
def bob(server: Server, mdzctl: Mdzctl) -> None:
    entity = {"id": "b", "name": "Bob"}
    put = server.call("entities.put_raw", table="shop.Users", entities=[entity])
    assert put.status == 200


def test_a_schema_is_deployed_and_dumped(mdzctl: Mdzctl, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCHEMA)
    (tmp_path / "b.yaml").write_text("schema: shop\ntables: {Orders: {}}")

    done = mdzctl("deploy", "-f", tmp_path / "a.yaml", "--file", tmp_path / "b.yaml", "-n", "any")

    assert (done.code, done.out, done.err) == (0, "Schema deployed successfully\n", "")
    dumped = yaml.safe_load(mdzctl("schemadump", "-S", "shop").out)
    assert sorted(dumped["tables"]) == ["Orders", "Users"]
    assert mdzctl("schemadump", "--schema", "shop", "--json").json == dumped


def test_what_the_server_refuses_is_said_and_leaves_with_1(mdzctl: Mdzctl) -> None:
    refused = mdzctl("deploy", "-f", "-", input="schema: shop\ntables: {T: {columns: {a: {}}}}")
    missing = mdzctl("drop", "-S", "shop", "-t", "Nothing")
    unknown = mdzctl("schemadump", "-S", "nothing", "--json")

    assert (refused.code, refused.out) == (1, "")
    assert "Error deploying schema: schema:2: Invalid type in schema" in refused.err
    assert (missing.code, missing.err) == (1, "Error: Invalid Table\n")
    assert unknown.error["message"] == "Could not find schema nothing"


def test_a_server_that_is_not_there_is_said_and_leaves_with_1() -> None:
    result = run("mdzctl", "stats", "-s", "http://127.0.0.1:1")

    assert (result.code, result.out) == (1, "")
    assert "http://127.0.0.1:1: connection refused" in result.err


@pytest.mark.parametrize(
    "words", [("deploy",), ("dump", "-S", "shop"), ("stats", "-s", "ftp://x"), ("bogus",)]
)
def test_wrong_usage_leaves_with_2(words: tuple[str, ...]) -> None:
    assert run("mdzctl", *words).code == 2


@pytest.mark.usefixtures("bob")
def test_a_table_is_dumped_dropped_and_loaded(mdzctl: Mdzctl, tmp_path: Path) -> None:
    dump = mdzctl("dump", *TABLE)
    assert bson.decode(dump.bytes) == {"id": "b", "properties": {"name": "Bob"}, "ttl": 0}

    assert mdzctl("drop", *TABLE).out == "Deleted 1 records\n"
    assert mdzctl("dump", *TABLE).bytes == b""
    assert mdzctl("load", *TABLE, input=dump.bytes).out == "OK\n"

    lines = mdzctl("dump", *TABLE, "--format", "jsonl", "-o", tmp_path / "dump", "--json")
    assert lines.json == {"table": "shop.Users", "bytes": (tmp_path / "dump").stat().st_size}
    assert json.loads((tmp_path / "dump").read_text())["id"] == "b"
    assert mdzctl("load", *TABLE, "-f", tmp_path / "dump").code == 0


@pytest.mark.usefixtures("bob")
def test_a_damaged_dump_is_refused_with_the_reason(mdzctl: Mdzctl) -> None:
    dump = mdzctl("dump", *TABLE).bytes

    result = mdzctl("load", *TABLE, input=dump + dump[:-2])

    assert result.code == 1
    assert (
        "Error decoding entity: document 2: the last document is cut short. 1 entity was"
        in result.err
    )


@pytest.mark.usefixtures("bob")
def test_figures_settings_and_repairs_are_printed(mdzctl: Mdzctl) -> None:
    assert yaml.safe_load(mdzctl("stats").out)["tables"]["shop.Users"]["num_rows"] == "1"
    assert mdzctl("stats", "--json").json["tables"]["shop.Users"]["num_rows"] == 1
    assert "resp" in yaml.safe_load(mdzctl("confdump").out)
    assert yaml.safe_load(mdzctl("repair", *TABLE).out)["checked"] == 1


def test_files_are_checked_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(SCHEMA)
    (tmp_path / "bad.yaml").write_text("schema: shop\ntables: {T: {columns: {a: {type: Txt}}}}")

    good = run("mdzctl", "check", "-f", tmp_path / "good.yaml")
    both = run("mdzctl", "check", "-f", tmp_path / "good.yaml", "-f", tmp_path / "bad.yaml")

    assert (good.code, good.out) == (0, "1 table in 1 schema, no errors\n")
    assert both.code == run("schema", "check", tmp_path / "bad.yaml").code == 3
    assert f"{tmp_path / 'bad.yaml'}:2: Invalid type in schema: 'Txt' for column a" in both.err


def test_models_are_written() -> None:
    result = run("mdzctl", "gen", "-l", "py", "-f", "-", input=SCHEMA)

    assert 'class Users(Model, schema="shop", table="Users"' in result.out


def test_mdzctl_is_the_same_command() -> None:
    program = "from holdfast.compat.meduza.mdzctl import command; command()"
    words = [sys.executable, "-c", program, "gen", "--lang", "go", "--file", "-"]
    ran = subprocess.run(
        words, input=SCHEMA, capture_output=True, text=True, env=environment(), check=True
    )

    assert 'const Table_Users = "Users"' in ran.stdout
    assert (
        'mdzctl = "holdfast.compat.meduza.mdzctl:command"' in (ROOT / "pyproject.toml").read_text()
    )
