"""The written pages: README, docs/, examples and benchmarks; their blocks and commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FOLDERS = ("*.md", "docs/**/*.md", "benchmarks/*.md", "contrib/**/*.md", "examples/**/*.md")
PAGES = sorted(page for folder in FOLDERS for page in ROOT.glob(folder))
# The generated pages quote the source, where their examples are run as docstrings.
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]

FENCE = re.compile(r"^```(.*)\n((?:(?!```).*\n)*)```$", re.MULTILINE)
SAVED_AS = re.compile(r"[Ss]aved? (?:this |it |them )?as `([\w./-]+)`:\n\n```.*\n\Z")


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    text: str
    line_number: int  # of its first line in the page
    file: str | None  # what the reader is asked to save it as


class ConsoleCommand(NamedTuple):
    """A command of a console block, and the lines that the page shows below it."""

    command: str
    output: str
    line_number: int  # of the command in the page


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for fence in FENCE.finditer(text):
        saved = SAVED_AS.search(text, 0, fence.start(2))
        line_number = text.count("\n", 0, fence.start(2)) + 1
        yield Block(fence[1], fence[2], line_number, saved[1] if saved else None)


def console_commands(block: Block) -> Iterator[ConsoleCommand]:
    """Returns the commands of a console block: behind `$`, with further lines behind `>`."""
    line_number = block.line_number
    for part in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE):
        if part.startswith("$ "):
            command, *rest = part.removeprefix("$ ").splitlines(keepends=True)
            while rest and rest[0].startswith("> "):
                command += rest.pop(0).removeprefix("> ")
            yield ConsoleCommand(command.removesuffix("\n"), "".join(rest), line_number)
        line_number += part.count("\n")


def commands(page: Path) -> list[str]:
    found = [block for block in blocks(page) if block.language == "console"]
    return [each.command for block in found for each in console_commands(block)]
