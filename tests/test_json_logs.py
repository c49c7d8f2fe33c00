"""Logs as JSON: whatever a record holds, it is one object in one line."""

import io
import json
import logging
import sys
from typing import Any

import pytest

from holdfast.json_logs import JsonFormatter
from holdfast.server.logs import start_logging


def line_of(message: str, *args: object, **extra: object) -> Any:
    record = logging.LogRecord("shop", logging.WARNING, "", 1, message, args, None)
    vars(record).update(extra)
    written = JsonFormatter().format(record)
    assert "\n" not in written
    return json.loads(written)


@pytest.mark.parametrize(
    "text", ['"quoted"', "two\nlines", "back\\slash", "\x00\x1b[31m", "\u2028", "é漢😀"]
)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert line_of("sold %s", text)["message"] == f"sold {text}"


def test_half_a_character_is_shown_and_breaks_no_line() -> None:
    assert line_of("sold %s", "\ud83d", price=3)["message"] == "sold \\ud83d"


def test_what_a_record_was_given_is_there_under_its_name_unless_it_is_empty() -> None:
    line = line_of("sold", request_id="r-1", trace_id="", span_id=None, prices={"tea": 3})

    assert line | {"at": ""} == {
        "at": "",
        "level": "warning",
        "logger": "shop",
        "message": "sold",
        "request_id": "r-1",
        "prices": {"tea": 3},
    }


@pytest.mark.parametrize("value", [object(), 2**70, {1, 2}, {(1, 2): 3}, float("nan"), b"\xff"])
def test_a_value_that_json_does_not_have_is_still_one_line(value: object) -> None:
    assert line_of("sold", value=value)["message"] == "sold"


def test_no_extra_replaces_what_every_line_has() -> None:
    assert line_of("sold", level="forged", at="forged")["level"] == "warning"


def test_an_exception_is_one_string_unless_it_is_not_wanted() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("shop", logging.ERROR, "", 1, "no", (), sys.exc_info())

    assert "ValueError: two\nlines" in json.loads(JsonFormatter().format(record))["exception"]
    assert "exception" not in json.loads(JsonFormatter(exceptions=False).format(record))


def test_a_stack_that_a_call_asks_for_is_in_the_line() -> None:
    record = logging.LogRecord("shop", logging.WARNING, "", 1, "slow", (), None)
    record.stack_info = "Stack (most recent call last):\n  in sell"

    assert json.loads(JsonFormatter().format(record))["stack"].endswith("\n  in sell")
    assert "stack" not in json.loads(JsonFormatter(exceptions=False).format(record))


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_id_of_a_request_is_behind_the_message() -> None:
    terminal, root = Terminal(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        start_logging(terminal)
        logging.getLogger("holdfast.test").error("broken", extra={"request_id": "r-1"})
        logging.getLogger("holdfast.test").info("stopping")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)

    first, second = terminal.getvalue().splitlines()
    assert first.endswith("broken (request r-1)")
    assert second.endswith("stopping")
