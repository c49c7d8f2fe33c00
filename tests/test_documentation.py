"""Examples run: the programs and commands in README and docs/, and the docstrings' examples."""

import doctest
import importlib
import os
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast.store import Store
from holdfast.testing import temporary_store
from tests.pages import FENCE, PAGES, ROOT, WRITTEN, ConsoleCommand, blocks, console_commands, name
from tests.reader import NOT_RUN, Reader

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TASKS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

MODULES = ["holdfast"] + [
    module.name
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast.")
    if not module.name.endswith(".__main__")  # importing it would run the program
]

# A fence says what its block is, so that no program escapes the tests by accident.
LANGUAGES = {"python", "console", "text", "json", "yaml", "toml", "http"}

LINK = re.compile(r"\]\((?!https?:)([^)#]*)")

# test_examples.py runs the commands of these, and compares all that they print.
EXAMPLES = ROOT / "examples"


def is_run(page: Path) -> bool:
    return EXAMPLES not in page.parents and any(
        block.language == "python"
        or (block.language == "console" and not all(map(is_only_checked, console_commands(block))))
        for block in blocks(page)
    )


def is_only_checked(each: ConsoleCommand) -> bool:
    return each.command.startswith(NOT_RUN)


@pytest.mark.parametrize("page", [page for page in WRITTEN if is_run(page)], ids=name)
def test_what_a_page_says_is_so(page: Path, tmp_path: Path) -> None:
    with Reader(page, tmp_path) as reader:
        reader.read()


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_block_of_a_page_names_its_language(page: Path) -> None:
    unknown = [
        f"line {b.line_number}: {b.language!r}" for b in blocks(page) if b.language not in LANGUAGES
    ]

    assert unknown == []


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_command_of_a_page_that_is_not_run_exists(page: Path) -> None:
    wrong = [
        f"line {each.line_number}: {each.command}"
        for block in blocks(page)
        if block.language == "console"
        for each in console_commands(block)
        if is_only_checked(each) and not command_exists(each.command)
    ]

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    broken = [
        target
        for target in LINK.findall(FENCE.sub("", page.read_text()))
        if target and not (page.parent / target).exists()
    ]

    assert broken == []


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_the_docstrings_of_a_module_run(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    imported = importlib.import_module(module)
    # A look at the text is enough for most modules; at their objects, it takes many times as long.
    has_examples = ">>>" in Path(imported.__file__ or "").read_text()

    for number, test in enumerate(doctest.DocTestFinder().find(imported) if has_examples else ()):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        with store_for(test) as store:
            test.globs |= store
            runner.run(test, out=failures.append)

    assert not failures, "".join(failures)


@contextmanager
def store_for(test: doctest.DocTest) -> Iterator[dict[str, Store]]:
    """An empty `store` for an example that speaks of one; most need none."""
    if any(re.search(r"\bstore\.", example.source) for example in test.examples):
        with temporary_store() as store:
            yield {"store": store}
    else:
        yield {}


def command_exists(command: str) -> bool:
    """Returns whether the words of a command that is not run exist."""
    match command.split():
        case ["make", *words]:
            return all(
                word in TASKS for word in words if "=" not in word and re.match("[a-z]", word)
            )
        case ["pip", "install", *packages]:
            return all(package_exists(package.strip("'\"")) for package in packages)
        case [path, *_] if path.startswith(".ci/"):
            return os.access(ROOT / path, os.X_OK)
        case ["git" | "apt-get" | "npm", *_]:
            return True
    return False


def package_exists(requirement: str) -> bool:
    """Returns whether it is Holdfast itself, from its clone, with extras that it has."""
    match = re.fullmatch(r"(?:\.|holdfastdb)(?:\[([\w,]+)\])?", requirement)
    extras = (match[1] or "") if match else "?"
    return set(filter(None, extras.split(","))) <= set(PROJECT["optional-dependencies"])
