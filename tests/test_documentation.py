"""Examples run: the programs and commands in README and docs/, and the docstrings' examples."""

import doctest
import importlib
import importlib.util
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import holdfast
from holdfast.store import Store
from holdfast.testing import temporary_store

ROOT = Path(__file__).parent.parent
FOLDERS = ("*.md", "docs/**/*.md", "benchmarks/*.md", "examples/**/*.md")
PAGES = sorted(page for folder in FOLDERS for page in ROOT.glob(folder))
TUTORIAL = ROOT / "docs" / "tutorial.md"  # test_tutorial.py follows it step by step
# The generated pages quote the source, where their examples are run as docstrings.
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TASKS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

MODULES = ["holdfast"] + [
    module.name
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast.")
    if not module.name.endswith(".__main__")  # importing it would run the program
]

# A fence says what its block is, so that no program escapes the tests by accident.
LANGUAGES = {"python", "console", "text", "json", "yaml", "toml", "http"}

FENCE = re.compile(r"^```(.*)\n((?:(?!```).*\n)*)```$", re.MULTILINE)
DEFAULT = "http://127.0.0.1:9966"  # where `holdfast serve` listens unless told otherwise
LINK = re.compile(r"\]\((?!https?:)([^)#]*)")


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    text: str
    line: int  # of its first line in the page


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for fence in FENCE.finditer(text):
        yield Block(fence[1], fence[2], text.count("\n", 0, fence.start(2)) + 1)


def program(page: Path) -> str:
    """The python blocks of a page as one program, each at its own line, for readable tracebacks."""
    lines: list[str] = []
    for block in blocks(page):
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.text.splitlines()
    return "\n".join(lines)


def commands(page: Path) -> list[str]:
    return [command for block in blocks(page) for command in commands_of(block)]


def commands_of(block: Block) -> list[str]:
    """The commands of a console block: what follows `$`, and further lines behind `>`."""
    found = re.findall(r"^\$ (.*(?:\n> .*)*)", block.text, re.MULTILINE)
    return [command.replace("\n> ", "\n") for command in found]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if page != TUTORIAL and program(page)], ids=name
)
def test_the_programs_of_a_page_run_in_order_in_an_empty_folder(page: Path, tmp_path: Path) -> None:
    assert run_programs(page, tmp_path) == ""


def test_the_shell_session_of_the_readme_works(tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    run_programs(readme, tmp_path)

    with serving(tmp_path / "empty") as address:
        requests = [shlex.split(c) for c in commands(readme) if c.startswith("curl ")]
        replies = [post(url.replace(DEFAULT, address), body) for _, url, _, body in requests]

    assert len(replies) == 2
    assert all("result" in reply for reply in replies), replies


def run_programs(page: Path, folder: Path) -> str:
    """Runs the programs of `page` in the folder `empty` below, and returns what went wrong."""
    script = folder / f"{page.stem}.py"
    script.write_text(program(page))
    (folder / "empty").mkdir()
    run = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=folder / "empty",
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return "" if run.returncode == 0 else f"at the lines of {name(page)}:\n{run.stderr}"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server on the store `data`, on free ports, and its HTTP address."""
    addresses = ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", "serve", "--data", "data", *addresses],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        first_line = server.stdout.readline()
        try:
            [address] = re.findall(r"http://[\d.:]+", first_line)
            yield address
        finally:
            server.terminate()


def post(url: str, body: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, body.encode(), timeout=30) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_block_of_a_page_names_its_language(page: Path) -> None:
    unknown = [
        f"line {b.line}: {b.language!r}" for b in blocks(page) if b.language not in LANGUAGES
    ]

    assert unknown == []


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_command_of_a_page_exists(page: Path) -> None:
    wrong = [
        f"line {block.line}: {command}"
        for block in blocks(page)
        if block.language == "console"
        for command in commands_of(block)
        if not command_exists(command)
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

    for number, test in enumerate(doctest.DocTestFinder().find(importlib.import_module(module))):
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
    """Whether the words of a shell command exist; what they do has tests of its own."""
    match command.split():
        case ["make", *words]:
            return all(
                word in TASKS for word in words if "=" not in word and re.match("[a-z]", word)
            )
        case ["python", file, *_] if re.fullmatch(r"\w+\.py", file):
            return True  # a file of the reader's
        case ["python", "-m", module, *_]:
            return importlib.util.find_spec(module) is not None
        case ["pip", "install", *packages]:
            return all(package_exists(package.strip("'\"")) for package in packages)
        case [path, *_] if path.startswith(".ci/"):
            return os.access(ROOT / path, os.X_OK)
        case ["holdfast", command, *_]:
            asked = [sys.executable, "-m", "holdfast", command, "--help"]
            return subprocess.run(asked, cwd=ROOT, capture_output=True).returncode == 0
        case ["curl" | "redis-cli" | "git" | "cd", *_]:
            return True
    return False


def package_exists(requirement: str) -> bool:
    """Whether it is Holdfast itself, with extras that it has."""
    match = re.fullmatch(r"holdfast(?:\[([\w,]+)\])?", requirement)
    extras = (match[1] or "") if match else "?"
    return set(filter(None, extras.split(","))) <= set(PROJECT["optional-dependencies"])
