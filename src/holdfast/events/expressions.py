"""Parses the expression language; an error names the column.

    expression := list ( "." STEP )*
    list       := "[" term ( "," term )* "]"
    term       := "'" text "'"  |  "@" NAME  |  NAME  |  QUOTED
    NAME       := a letter or "_", then letters, digits, "_" and "-", in any script
    STEP       := NAME that may begin with a digit  |  QUOTED
    QUOTED     := a name of any characters in double quotes

White space between tokens is free. In quotes `\\'` and `\\"` are quotes and `\\\\` a backslash.

The parser is hand-written, with a function for each line of the grammar. That is shorter than what
a parser library would need (grammar, tree builder, translation of errors), and every error can say
what was expected, and where.
"""

import re
from typing import Final, TypeAlias

import msgspec

from holdfast.limits import MAX_EXPRESSION_STEPS, MAX_EXPRESSION_TERMS

__all__ = [
    "BUILT_INS",
    "Attribute",
    "BuiltIn",
    "Expression",
    "ExpressionProblem",
    "Literal",
    "Term",
    "parse_expression",
    "parse_value",
]

BUILT_INS: Final = (
    "daily",
    "day",
    "event_name",
    "hour",
    "hourly",
    "minute",
    "month",
    "monthly",
    "quarter",
    "quarterly",
    "request_ip",
    "timestamp",
    "unique_id",
    "week",
    "weekly",
    "year",
    "yearly",
)

_SPACE: Final = re.compile(r"\s*")
_NAME: Final = re.compile(r"[^\W\d][\w-]*")
_STEP: Final = re.compile(r"\w[\w-]*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\["\\])+)"')
_LITERAL: Final = re.compile(r"'((?:[^'\\]|\\['\\])*)'")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class Literal(msgspec.Struct, frozen=True):
    """`'text'`: itself."""

    text: str


class Attribute(msgspec.Struct, frozen=True):
    """`name`: the value, or the values, of that attribute of the event."""

    name: str


class BuiltIn(msgspec.Struct, frozen=True):
    """`@name`: a value that the store derives from the event."""

    name: str


Term: TypeAlias = Literal | Attribute | BuiltIn


class Expression(msgspec.Struct, frozen=True):
    """`[terms].step.step`. A single term without brackets is no list: its repeats are kept."""

    terms: tuple[Term, ...]
    steps: tuple[str, ...] = ()
    is_list: bool = True


class ExpressionProblem(Exception):
    """A text is not an expression; the message says why."""


def parse_expression(text: str) -> Expression:
    """Parses an expression in brackets.

    >>> parse_expression("['a', user].followers").steps
    ('followers',)
    """
    reader = _Reader(text)
    expression = reader.expression()
    reader.end()
    return expression


def parse_value(text: str) -> Expression:
    """Parses a value: one term, or an expression in brackets.

    >>> parse_value("@request_ip").terms
    (BuiltIn(name='request_ip'),)
    """
    reader = _Reader(text)
    if reader.sees("["):
        expression = reader.expression()
    else:
        expression = Expression((reader.term("a term or '['"),), is_list=False)
    reader.end()
    return expression


class _Reader:
    """A text and a position in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._skip_space()

    def expression(self) -> Expression:
        self._expect("[")
        terms = [self.term()]
        while self._take(","):
            terms.append(self.term())
        if len(terms) > MAX_EXPRESSION_TERMS:
            raise ExpressionProblem(
                f"a list of {len(terms)} terms, at most {MAX_EXPRESSION_TERMS} fit"
            )
        self._expect("]")
        steps = []
        while self._take("."):
            steps.append(self._name("a name after '.'", _STEP))
        if len(steps) > MAX_EXPRESSION_STEPS:
            raise ExpressionProblem(
                f"a chain of {len(steps)} steps, at most {MAX_EXPRESSION_STEPS} may follow a list"
            )
        return Expression(tuple(terms), tuple(steps))

    def term(self, expected: str = "a term") -> Term:
        if self.sees("'"):
            return self._literal()
        if self.sees("@"):
            return self._built_in()
        return Attribute(self._name(expected))

    def end(self) -> None:
        if self._at < len(self._text):
            raise self._problem("the end")

    def sees(self, character: str) -> bool:
        return self._text.startswith(character, self._at)

    def _literal(self) -> Literal:
        found = _LITERAL.match(self._text, self._at)
        if found is None:
            raise ExpressionProblem(
                f"the literal that begins at column {self._at + 1} has no end; "
                "inside it, write \\' for a quote and \\\\ for a backslash"
            )
        self._move(found.end())
        return Literal(_ESCAPE.sub(r"\1", found[1]))

    def _built_in(self) -> BuiltIn:
        column = self._at + 1
        self._move(self._at + 1)
        name = self._name("the name of a built-in")
        if name not in BUILT_INS:
            known = ", ".join(f"@{known}" for known in BUILT_INS)
            raise ExpressionProblem(
                f"unknown built-in '@{name}' at column {column}, the known ones are {known}"
            )
        return BuiltIn(name)

    def _name(self, expected: str, form: re.Pattern[str] = _NAME) -> str:
        quoted = _QUOTED.match(self._text, self._at)
        found = quoted or form.match(self._text, self._at)
        if found is None:
            raise self._problem(expected)
        self._move(found.end())
        return _ESCAPE.sub(r"\1", quoted[1]) if quoted else found[0]

    def _take(self, character: str) -> bool:
        if not self.sees(character):
            return False
        self._move(self._at + 1)
        return True

    def _expect(self, character: str) -> None:
        if not self._take(character):
            raise self._problem(f"'{character}'")

    def _move(self, to: int) -> None:
        self._at = to
        self._skip_space()

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None  # no white space is a match too
        self._at = found.end()

    def _problem(self, expected: str) -> ExpressionProblem:
        return ExpressionProblem(f"expected {expected} at column {self._at + 1}")
