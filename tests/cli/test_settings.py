"""Settings: a flag beats the environment, which beats the file, which beats the default."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.settings import SETTINGS
from holdfast.server.server import ServerSettings
from tests.cli.running import Ran
from tests.cli.running import holdfast as run


def shown(result: Ran) -> dict[str, tuple[Any, str]]:
    return {each["setting"]: (each["value"], each["source"]) for each in result.json["settings"]}


def test_every_setting_says_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text(
        'data = "in-file"\nspace = "in-file"\n[serve]\nhttp = "127.0.0.1:1"\npixel = true\n'
        'limits = ["idle_seconds=5"]\nflux_ttl = 600\n'
    )

    settings = shown(
        run("config", "show", "--json", "--data", "flag", cwd=tmp_path, HOLDFAST_SPACE="variable")
    )

    assert settings["data"] == ("flag", "flag")
    assert settings["space"] == ("variable", "HOLDFAST_SPACE")
    assert settings["serve.http"] == ("127.0.0.1:1", "holdfast.toml")
    assert settings["serve.pixel"] == (True, "holdfast.toml")
    assert settings["serve.limits"] == (["idle_seconds=5"], "holdfast.toml")
    assert settings["serve.flux_ttl"] == (600, "holdfast.toml")
    assert settings["serve.resp"] == ("127.0.0.1:9977", "default")


def test_a_whole_number_is_shown_without_a_decimal_point(tmp_path: Path) -> None:
    lines = run("config", "show", cwd=tmp_path).out.splitlines()

    assert ["serve.processes", "1", "default"] in [line.split() for line in lines]


def test_commands_obey_the_file(folder: Path) -> None:
    (folder.parent / "holdfast.toml").write_text('data = "data"\nspace = "shop"\n')
    schema = "schema: s\ntables: {T: {columns: {a: {type: Int}}}}"
    run("schema", "apply", "-", input=schema, cwd=folder.parent)

    assert run("space", "list", cwd=folder.parent).out == "default\nshop\n"
    assert run("status", "--json", cwd=folder.parent).json["entities"] == {"s.T": 0}


def test_another_file_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('space = "other"\n')

    by_flag = shown(run("--config", "other.toml", "config", "show", "--json", cwd=tmp_path))
    variable = {"HOLDFAST_CONFIG": "other.toml"}
    by_variable = shown(run("config", "show", "--json", cwd=tmp_path, **variable))

    assert by_flag["space"] == by_variable["space"] == ("other", "other.toml")


def test_unknown_keys_get_a_suggestion_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text('space = "a"\ndta = "data"\n')
    first = run("config", "show", cwd=tmp_path)
    (tmp_path / "holdfast.toml").write_text('[serve]\nhtp = "127.0.0.1:1"\n')
    second = run("config", "show", cwd=tmp_path)

    assert first.code == second.code == 2
    assert "holdfast.toml:2: unknown key 'dta', did you mean 'data'?" in first.err
    assert "holdfast.toml:2: unknown key 'serve.htp', did you mean 'http'?" in second.err


def test_a_key_in_the_wrong_place_is_told_its_place(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text('http = "127.0.0.1:1"\n')

    assert "it belongs below [serve]" in run("status", cwd=tmp_path).err


def test_a_value_of_another_type_and_a_file_that_is_no_toml_are_refused(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text("space = 7\n")
    typed = run("config", "show", cwd=tmp_path)
    (tmp_path / "holdfast.toml").write_text("space = [\n")
    torn = run("config", "show", cwd=tmp_path)
    missing = run("--config", "nowhere.toml", "config", "show", cwd=tmp_path)

    assert (typed.code, torn.code, missing.code) == (2, 2, 2)
    assert "space is a string, not 7" in typed.err
    assert "is not TOML" in torn.err
    assert "nowhere.toml: no such file or directory" in missing.err


def test_a_variable_that_is_no_setting_is_named(tmp_path: Path) -> None:
    result = run("config", "show", cwd=tmp_path, HOLDFAST_DTA="x")

    assert "HOLDFAST_DTA is not a setting, did you mean 'HOLDFAST_DATA'?" in result.err


def test_a_token_is_not_shown(tmp_path: Path) -> None:
    result = run("config", "show", cwd=tmp_path, HOLDFAST_TOKEN="s3cret")

    assert "s3cret" not in result.out
    assert "HOLDFAST_TOKEN" in result.out


def test_the_place_that_was_named_more_urgently_wins(folder: Path) -> None:
    result = run("space", "list", "--data", folder, HOLDFAST_URL="holdfast://127.0.0.1:1")

    assert result.out == "default\n"


def test_the_settings_of_a_server_are_the_options_of_serve() -> None:
    served = {name for name, setting in SETTINGS.items() if setting.section == "serve"}

    assert served - {"engine", "durability"} == set(ServerSettings.__struct_fields__)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--http", "nohost"),
        ("--limit", "unknown=1"),
        ("--limit", "idle_seconds=inf"),
        ("--limit", "connections=1e999"),
        ("--processes", "0"),
        ("--tls-cert", "cert.pem"),
    ],
)
def test_a_server_with_an_invalid_setting_exits_with_2(
    tmp_path: Path, option: str, value: str
) -> None:
    refused = run("serve", option, value, "--data", tmp_path / "data", "--json")

    assert refused.code == 2
    assert option in refused.error["message"] or value in refused.error["message"]
    assert not (tmp_path / "data").exists()
