"""Python source as `ruff format` leaves it: literals, and calls that break when they are long."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from holdfast.entities.codegen.names import comment_text
from holdfast.entities.types import COLUMN_KINDS

WIDTH: Final = 100
# Comments that change how a type checker, linter or formatter reads the line: `# type: ignore`.
_DIRECTIVE: Final = re.compile(
    r"(^|# ?)(type|fmt|yapf|noqa|ruff|mypy|pyright|pylint|isort|flake8|pragma|nosec|autopep8)\b",
    re.IGNORECASE,
)
_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Brackets:
    """Brackets with parts in them, on one line if they fit, else a line for each part."""

    def __init__(
        self, head: str, parts: Sequence["str | Brackets"], tail: str, *, is_tuple: bool = False
    ) -> None:
        self.head, self.parts, self.tail, self.is_tuple = head, parts, tail, is_tuple

    def flat(self) -> str:
        inner = ", ".join(part if isinstance(part, str) else part.flat() for part in self.parts)
        comma = "," if self.is_tuple and len(self.parts) == 1 else ""
        return f"{self.head}{inner}{comma}{self.tail}"

    def lines(self, indent: int, after: str = "") -> list[str]:
        blanks = " " * indent
        flat = f"{blanks}{self.flat()}{after}"
        if fits(flat) or not self.parts:
            return [flat]
        lines = [f"{blanks}{self.head}"]
        for part in self.parts:
            if isinstance(part, str):
                lines.append(f"{blanks}    {part},")
            else:
                lines += part.lines(indent + 4, ",")
        return [*lines, f"{blanks}{self.tail}{after}"]


def fits(line: str) -> bool:
    """Returns whether the line is short enough, counting each non-ASCII character as two.

    The formatter measures more exactly, but keeps calls on several lines that end with a comma.
    """
    return len(line) + sum(not character.isascii() for character in line) <= WIDTH


def text(value: str) -> str:
    """Returns a text literal, in double quotes unless single ones need fewer escapes."""
    quote = "'" if value.count("'") < value.count('"') else '"'
    body = "".join(_escaped(character, quote) for character in value)
    return f"{quote}{body}{quote}"


def _escaped(character: str, quote: str) -> str:
    if character == quote:
        return f"\\{quote}"
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def literal(value: Any, *, type: str = "", subtype: str | None = None) -> "str | Brackets":
    """Returns `value`, of a column of this type, as an expression; a Set is written as a set."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return _binary(value)
    if isinstance(value, float):
        is_number = value - value == 0  # not an infinity, not NaN
        return repr(value).replace("e+", "e") if is_number else f'float("{value}")'
    if isinstance(value, datetime):
        parts = value.timetuple()[:6] + ((value.microsecond,) if value.microsecond else ())
        return f"datetime({', '.join(map(str, parts))}, tzinfo=UTC)"
    if isinstance(value, list):
        is_distinct = bool(type) and COLUMN_KINDS[type].is_distinct
        if is_distinct and not value:
            return "set()"
        items = [literal(item, type=subtype or "") for item in value]
        return Brackets("{", items, "}") if is_distinct else Brackets("[", items, "]")
    if isinstance(value, dict):
        pairs = [
            with_key(f"{text(name)}: ", literal(one, type=subtype or ""))
            for name, one in value.items()
        ]
        return Brackets("{", pairs, "}")
    return repr(value)


def _binary(value: bytes) -> str:
    quote = "'" if value.count(b"'") < value.count(b'"') else '"'
    parts = []
    for byte in value:
        character = chr(byte)
        plain = 0x20 <= byte < 0x7F or character in _ESCAPES
        parts.append(_escaped(character, quote) if plain else f"\\x{byte:02x}")
    return f"b{quote}{''.join(parts)}{quote}"


def with_key(key: str, value: "str | Brackets") -> "str | Brackets":
    """Returns `key=value`, or `key: value` in a dict."""
    if isinstance(value, Brackets):
        return Brackets(f"{key}{value.head}", value.parts, value.tail, is_tuple=value.is_tuple)
    return f"{key}{value}"


def docstring(comment: str, indent: int = 4) -> list[str]:
    """Returns the lines of a docstring whose value is `docstring_value(comment, indent)`."""
    blanks = " " * indent
    first, *rest = _quotes_escaped(comment_text(comment))
    return [
        f'{blanks}"""{first}' + ('"""' if not rest else ""),
        *(f"{blanks}{line}".rstrip() for line in rest),
        *([f'{blanks}"""'] if rest else []),
    ]


def docstring_value(comment: str, indent: int = 4) -> str:
    """Returns the text that Python reads from the lines of `docstring`."""
    first, *rest = comment_text(comment)
    if not rest:
        return first
    blanks = " " * indent
    return "\n".join([first, *(f"{blanks}{line}".rstrip() for line in rest), blanks])


def _quotes_escaped(lines: list[str]) -> list[str]:
    """Returns the lines, with all quotes escaped if one of them could end the docstring."""
    body = [line.replace("\\", "\\\\") for line in lines]
    ends = body[0].startswith('"') or body[-1].endswith('"')
    if ends or any('""' in line for line in body):
        return [line.replace('"', '\\"') for line in body]
    return body


def comment_lines(comment: str, indent: int = 4) -> list[str]:
    """Returns the lines of a comment."""
    return [f"{' ' * indent}# {line}".rstrip() for line in with_quoted_directives(comment)]


def with_quoted_directives(comment: str) -> list[str]:
    """Returns the lines of a comment, with words quoted that would be directives to a checker.

    >>> with_quoted_directives("type: ignore")
    ["'type': ignore"]
    """
    return [_DIRECTIVE.sub(r"\1'\2'", line) for line in comment_text(comment)]
