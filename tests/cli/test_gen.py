"""`holdfast gen`: from schema files to source files."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main
from holdfast.entities.codegen import Language, Options, generate
from holdfast.entities.schema_file import parse_schema

ROOT = Path(__file__).parents[2]
USERS = "schema: shop\ntables: {Users: {columns: {name: {type: Text}}}}\n"
ORDERS = "schema: shop\ntables: {Orders: {columns: {total: {type: Int}}}}\n"
BAD = "schema: s\ntables:\n  T:\n    columns:\n      a: {type: Txt}\n      b: {tpye: Int}\n"


def gen(*arguments: str | Path, input: str = "") -> Result:
    return CliRunner().invoke(main, ["gen", *map(str, arguments)], input=input)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.schema.yaml"
    path.write_text(USERS)
    return path


@pytest.mark.parametrize("language", ["py", "go", "ts"])
def test_source_goes_to_standard_output(users: Path, language: Language) -> None:
    result = gen("-f", users, "-l", language)

    assert result.exit_code == 0
    assert result.stdout == generate([parse_schema(USERS)], language)


def test_source_goes_to_a_file(users: Path, tmp_path: Path) -> None:
    result = gen("--file", users, "--lang", "py", "--output", tmp_path / "models.py")

    assert (result.exit_code, result.output) == (0, "")
    assert "class Users(Model, " in (tmp_path / "models.py").read_text()


def test_a_dash_reads_standard_input() -> None:
    result = gen("-f", "-", "-l", "py", input=USERS)

    assert "class Users(Model, " in result.stdout


def test_several_files_become_one_source(users: Path, tmp_path: Path) -> None:
    (tmp_path / "orders.schema.yaml").write_text(ORDERS)

    result = gen("-f", users, "-f", tmp_path / "orders.schema.yaml", "-l", "py")

    assert result.stdout.index("class Users(") < result.stdout.index("class Orders(")


def test_styles_and_options_are_passed_on(users: Path) -> None:
    schemas = [parse_schema(USERS)]

    classic = gen("-f", users, "-l", "py", "--style", "classic").stdout
    package = gen("-f", users, "-l", "go", "--package", "shop", "--meduza-types").stdout
    bigint = gen("-f", users, "-l", "ts", "--bigint").stdout

    assert classic == generate(schemas, "py", Options(style="classic"))
    assert package == generate(schemas, "go", Options(package="shop", meduza_types=True))
    assert bigint == generate(schemas, "ts", Options(bigint=True))


def test_problems_are_listed_with_file_and_line_and_nothing_is_written(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(BAD)

    result = gen("-f", bad, "-l", "py", "-o", tmp_path / "models.py")

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"{bad}:6: warning: 'tpye' means nothing in column b, did you mean 'type'?",
        f"{bad}:5: Invalid type in schema: 'Txt' for column a, did you mean 'Text'?",
        f"{bad}:6: Invalid type in schema: '' for column b",
    ]
    assert not (tmp_path / "models.py").exists()


def test_names_that_clash_in_code_are_listed_with_file_and_line() -> None:
    text = "schema: s\ntables:\n  A: {class: X}\n  B: {class: X}\n"

    result = gen("-f", "-", "-l", "go", input=text)

    assert result.exit_code == 1
    assert result.stderr == "<stdin>:4: Tables s.A and s.B have one class name: X\n"


def test_a_file_that_is_not_there_fails_and_wrong_usage_differs() -> None:
    missing = gen("-f", "nowhere.yaml", "-l", "py")

    assert missing.exit_code == 1
    assert missing.stderr == "Error: nowhere.yaml: No such file or directory\n"
    assert gen("-f", "-", "-l", "cobol").exit_code == 2
    assert gen("-l", "py").exit_code == 2


def test_a_file_that_can_not_be_written_fails(users: Path, tmp_path: Path) -> None:
    result = gen("-f", users, "-l", "py", "-o", tmp_path)

    assert result.exit_code == 1
    assert "Is a directory" in result.stderr


def test_the_command_is_installed_and_runs_as_a_module(users: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    run = subprocess.run(
        [sys.executable, "-m", "holdfast", "gen", "-f", str(users), "-l", "py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert scripts["holdfast"] == "holdfast.cli:main"
    assert "class Users(Model, " in run.stdout
