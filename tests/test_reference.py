"""The generator of docs/reference/: what it finds in a source, and how it shows it."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest

GENERATOR = Path(__file__).parent.parent / ".ci" / "reference"

LIMITS = """
# --- engine ---

MAX_KEYS: int = (
    1_000  # behind the value
)

# Above the line,
# over two lines.
MAX_NAMES = 3

_private = 1  # nobody's business
"""


class Queue:
    def pop(self, name: str, *, count: int = 1_000, **options: str) -> list[str]:
        return []

    def put(
        self, name: str, priority: int = 0, delay_seconds: float = 0.0, tags: str = "first of all"
    ) -> str:
        return ""

    def join(self, other: "Queue | None", mode: Literal["all", "some"] = "all") -> list["Queue"]:
        return []

    @contextmanager
    def locked(self) -> Iterator["Queue"]:
        yield self


@pytest.fixture
def source_text(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(GENERATOR)
    return importlib.import_module("source_text")


def test_a_limit_is_shown_with_the_comment_behind_or_above_it(source_text: ModuleType) -> None:
    found = source_text.Source(LIMITS).assignments()

    assert [(limit.name, limit.comment) for limit in found] == [
        ("MAX_KEYS", "behind the value"),
        ("MAX_NAMES", "Above the line, over two lines."),
    ]


def test_a_signature_is_shown_as_it_was_written(source_text: ModuleType) -> None:
    shown = source_text.signature(Queue.pop)

    assert shown == "pop(name: str, *, count: int = 1_000, **options: str) -> list[str]"


def test_a_long_signature_gets_a_line_for_each_parameter(source_text: ModuleType) -> None:
    shown = source_text.signature(Queue.put)

    assert shown.splitlines() == [
        "put(",
        "    name: str,",
        "    priority: int = 0,",
        "    delay_seconds: float = 0.0,",
        '    tags: str = "first of all",',
        ") -> str",
    ]


def test_what_belongs_into_a_with_block_says_so(source_text: ModuleType) -> None:
    shown = source_text.signature(Queue.locked)

    assert shown == "locked() -> AbstractContextManager[Queue]"


def test_a_type_that_is_quoted_in_the_source_is_shown_without_quotes(
    source_text: ModuleType,
) -> None:
    shown = source_text.signature(Queue.join)

    assert shown == 'join(other: Queue | None, mode: Literal["all", "some"] = "all") -> list[Queue]'
