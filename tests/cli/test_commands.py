"""All commands alike: help with an example, `--json`, a quick start, and words in the docs."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from holdfast.cli import COMMANDS, main
from holdfast.cli.settings import SETTINGS
from tests.cli.conftest import Command
from tests.cli.running import environment, from_scratch
from tests.cli.running import holdfast as run
from tests.forking import ROOT

# What a start of the command has loaded when it is over.
LOADED = """
import sys
from holdfast.cli import main
main(sys.argv[1:], standalone_mode=False)
print(*sys.modules)
"""
REFERENCE = (ROOT / "docs" / "reference" / "commands.md").read_text()
GUIDE = (ROOT / "docs" / "howto" / "command-line.md").read_text()


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Every command and every group, by the words that call it."""
    with click.Context(main, info_name="holdfast") as ctx:
        for name in main.list_commands(ctx):
            command = main.get_command(ctx, name)
            assert command is not None
            yield name, command
            if isinstance(command, click.Group):
                for below, each in command.commands.items():
                    yield f"{name} {below}", each


EVERY = dict(all_commands())
CALLED = {name: each for name, each in EVERY.items() if not isinstance(each, click.Group)}


@pytest.mark.parametrize("name", EVERY)
def test_a_command_has_help_with_an_example(name: str) -> None:
    text = EVERY[name].help or ""

    [example] = re.findall(r"Example: (.*)", text)
    assert f"holdfast {name.split()[0]}" in example
    assert text.splitlines()[0].endswith((".", ","))


@pytest.mark.parametrize("name", EVERY)
def test_the_example_of_a_command_has_options_that_it_knows(name: str) -> None:
    [example] = re.findall(r"Example: (.*)", EVERY[name].help or "")
    words = shlex.split(example[example.index("holdfast") :])[1:]
    called = CALLED.get(" ".join(words[:2])) or CALLED[words[0]]
    known = {option for each in called.params for option in each.opts}

    assert [w for w in words if re.match("-+[a-z]", w) and w not in known] == []


@pytest.mark.parametrize("name", ["", "backup", "call", "jobs search", "events series"])
def test_the_example_of_a_command_stays_on_one_line_of_a_narrow_terminal(name: str) -> None:
    [example] = re.findall(r"Example: (.*)", (EVERY[name] if name else main).help or "")

    lines = run(*name.split(), "--help", COLUMNS="60").out.splitlines()

    assert f"  Example: {example}" in lines


def test_a_narrow_terminal_has_room_for_what_an_option_does() -> None:
    lines = run("serve", "--help", COLUMNS="60").out.splitlines()

    assert "                       /{space}/events/pixel.gif." in lines
    assert [line for line in lines if len(line) > 60] == []


@pytest.mark.parametrize("name", CALLED)
def test_every_value_of_an_option_is_called_by_what_it_means(name: str) -> None:
    with click.Context(CALLED[name]) as ctx:
        values = {
            each.opts[0]: each.make_metavar(ctx)
            for each in CALLED[name].params
            if isinstance(each, click.Option) and not each.is_flag
        }

    assert {"INTEGER", "INTEGER RANGE", "FLOAT", "FLOAT RANGE"} & {*values.values()} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_begins_with_the_verb_of_each(name: str) -> None:
    said = (EVERY[name].help or "").split()[0].strip(",")

    assert COMMANDS[name].summary.split()[0].strip(",") == said


@pytest.mark.parametrize("name", CALLED)
def test_every_command_speaks_json(name: str) -> None:
    assert "--json" in {option for each in CALLED[name].params for option in each.opts}


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["schema", "check", "nowhere.yaml"], "failed", 1),
        (["jobs", "list", "--count", "0"], "wrong_usage", 2),
        (["jobs", "list", "--offset", "-1"], "wrong_usage", 2),
        (["dump", "shop.Orders"], "wrong_usage", 2),
        (["status", "--data", "nowhere"], "no_store", 1),
    ],
)
def test_every_error_is_json_for_those_who_ask_for_it(
    words: list[str], code: str, exit_code: int
) -> None:
    result = run(*words, "--json")

    assert (result.code, result.out, result.error["code"]) == (exit_code, "", code)


@pytest.mark.parametrize("name", CALLED)
def test_every_command_and_option_is_in_the_reference(name: str) -> None:
    [section] = re.findall(rf"^##+ `holdfast {name}`$(.*?)(?=^##|\Z)", REFERENCE, re.M | re.S)
    params = CALLED[name].params
    options = [
        each.opts[0] for each in params if isinstance(each, click.Option) and not each.hidden
    ]

    common = {"--data", "--url", "--token", "--space", "--json"}
    missing = [each for each in options if each not in common and f"`{each}`" not in section]
    assert missing == []


@pytest.mark.parametrize("name", ["backup", "space list", "user list", "restore", "recover"])
def test_a_command_about_the_whole_store_takes_no_space(name: str) -> None:
    shown = run(*name.split(), "--help").out
    asked = run(*name.split(), "--space", "shop")

    assert "--space" not in shown
    assert (asked.code, "--space" in asked.err) == (2, True)


@pytest.mark.parametrize("name", ["restore", "recover"])
def test_what_no_server_can_do_shows_no_url(name: str) -> None:
    shown = run(name, "--help").out

    assert "--data" in shown
    assert not {"--url", "--token"} & set(shown.split())


def test_check_looks_at_all_spaces_unless_one_is_named() -> None:
    assert "[default: default]" not in " ".join(run("check", "--help").out.split())


@pytest.mark.parametrize("name", [name for name in EVERY if name not in CALLED])
def test_the_summaries_of_a_group_are_not_cut(name: str) -> None:
    assert "..." not in run(name, "--help").out.partition("Commands:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_guide(name: str) -> None:
    assert f"holdfast {name}" in GUIDE


def test_exit_codes_and_settings_are_in_the_guide() -> None:
    assert [code for code in range(4) if f"| {code} |" not in GUIDE] == []
    assert [each.variable for each in SETTINGS.values() if each.variable not in GUIDE] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_starts_from_a_shell(name: str) -> None:
    result = from_scratch(name, "--help")

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: holdfast {name}")


def loaded_by(*words: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    return set(run.stdout.split())


def test_help_loads_nothing_of_the_store() -> None:
    heavy = {"msgspec", "lmdb", "yaml", "asyncio", "uvicorn", "holdfast.store"}

    assert heavy & loaded_by("--help") == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_loads_nothing_of_the_store(name: str) -> None:
    assert {"lmdb", "holdfast.store"} & loaded_by(name, "--help") == set()


def test_an_unknown_command_gets_a_suggestion() -> None:
    result = run("stats")

    assert result.code == 2
    assert "Did you mean 'status'?" in result.err


def test_the_version_is_printed() -> None:
    from holdfast.version import VERSION

    assert run("--version").out == f"holdfast, version {VERSION}\n"


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    result = run("status", "--data", tmp_path / "nowhere", "--json")

    assert (result.code, result.error["code"]) == (1, "no_store")
    assert not (tmp_path / "nowhere").exists()


def test_a_space_that_is_not_there_is_not_made_and_gets_a_suggestion(command: Command) -> None:
    result = command("status", "--space", "defalt")

    assert result.code == 1
    assert "did you mean 'default'?" in result.err.lower()
    assert command("space", "list").out == "default\n"


def test_two_stores_at_once_are_wrong_usage(folder: Path) -> None:
    result = run("status", "--data", folder, "--url", "holdfast://127.0.0.1:1")

    assert result.code == 2
    assert "give one of them" in result.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    assert "_HOLDFAST_COMPLETE" in run("completion", shell).out
    assert run("completion", shell, "--json").json["shell"] == shell


def test_completion_offers_commands_and_options() -> None:
    result = run(_HOLDFAST_COMPLETE="bash_complete", COMP_WORDS="holdfast sta", COMP_CWORD="1")

    assert result.out == "plain,status\n"
