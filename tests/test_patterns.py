"""Every regular expression of the package takes a time that grows with its input, not faster.

A pattern that backtracks holds the interpreter's lock for minutes on a text of a few kilobytes. So
each one is fed 10^5 repeats of its own alphabet, behind every part of itself and before an end that
does not match, by the very methods that the package calls on it.
"""

import ast
import importlib
import re
import time
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from re import _constants as codes
from re import _parser as parser
from typing import Any, NamedTuple

import pytest

import holdfast
from tests.syntax_trees import trees_with

ROOT = Path(holdfast.__file__).parent
METHODS = {"match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split"}
CALL = re.compile(rf"\b(\w+)\.({'|'.join(sorted(METHODS))})\b")
LENGTHS = (200, 4_000, 20_000, 100_000)  # the short ones stop what would run for hours
CPU_SECONDS = 0.5  # a linear pattern takes a few milliseconds, a quadratic one a minute
OWN_TEXT = {"holdfast.operations", "holdfast.testing"}  # read docstrings and a banner of ours


class Found(NamedTuple):
    name: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def patterns() -> Iterator[Found]:
    """The compiled patterns of all modules, with the methods that the package calls on them."""
    called = _calls()
    for module in sorted(called):
        if module.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, re.Pattern) and name in called[module]:
                yield Found(f"{module}.{name}", value, frozenset(called[module][name]))


def _calls() -> dict[str, dict[str, set[str]]]:
    """By module and name. Every worker of the tests asks for this at its start, so that it reads
    the text: trees of all modules would take four seconds."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in ROOT.rglob("*.py"):
        parts = ("holdfast", *path.relative_to(ROOT).with_suffix("").parts)
        module = ".".join(parts).removesuffix(".__init__")
        for name, method in CALL.findall(path.read_text()):
            found.setdefault(module, {}).setdefault(name, set()).add(method)
    return found


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """All that the modules with patterns are made of."""
    trees = trees_with(ROOT.rglob("*.py"), ["import re", "from re"])
    return [(path, node) for path, tree in trees for node in ast.walk(tree)]


def test_all_patterns_are_compiled_once_where_this_test_finds_them() -> None:
    """A pattern that is given to `re.search` as text would escape the test below."""
    inline = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "re"
        and node.attr in METHODS
        and f"holdfast.{path.relative_to(ROOT).parts[0].removesuffix('.py')}" not in OWN_TEXT
    ]

    assert inline == []


def test_no_text_from_outside_becomes_a_regular_expression() -> None:
    """Patterns of schemas and commands are matched by `LinearPattern` and by globs."""
    compiled = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "re.compile"
        and not all(map(_is_own_text, ast.walk(node.args[0])))
    ]

    assert compiled == []


def _is_own_text(node: ast.AST) -> bool:
    is_name = isinstance(node, ast.Name) and node.id.isupper()
    return is_name or not isinstance(node, ast.Name | ast.Attribute | ast.Call)


@pytest.mark.parametrize("found", list(patterns()), ids=lambda found: found.name)
def test_a_pattern_is_linear_in_its_input(found: Found) -> None:
    is_bytes = isinstance(found.pattern.pattern, bytes)
    for length in LENGTHS:
        for text in _texts(found.pattern, length):
            given: Any = text.encode("latin-1", "replace") if is_bytes else text
            for method in sorted(found.methods):
                taken = _seconds(found.pattern, method, given)
                assert taken < CPU_SECONDS, f"{method} of {length} times {text[:40]!r}"


def _seconds(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    begin = time.thread_time()
    if method in ("sub", "subn"):
        pattern.sub(text[:0], text)
    elif method == "finditer":
        list(pattern.finditer(text))
    else:
        getattr(pattern, method)(text)
    return time.thread_time() - begin


def _texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    parts = list(parser.parse(pattern.pattern, pattern.flags))
    alphabet = sorted(_alphabet(parts))
    units = [*alphabet, *(one + other for one, other in pairwise(alphabet))]
    units += [f"{one}{alphabet[0]}" for one in alphabet[1:]]
    for at in range(len(parts) + 1):
        begin = "".join(_sample(part) for part in parts[:at])
        for unit in units:
            repeats = unit * (length // len(unit))
            yield f"{begin}{repeats}\0"


def _alphabet(parts: Any) -> set[str]:
    """One letter of each kind that the pattern names."""
    found: set[str] = set()
    for code, value in parts:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            found.add(chr(value))
        elif code is codes.RANGE:
            found.add(chr(value[0]))
        elif code is codes.CATEGORY:
            found.add(_OF_CATEGORY.get(value, "a"))
        elif code is codes.ANY:
            found.add("a")
        elif code is codes.IN:
            found |= _alphabet(value)
        elif code is codes.BRANCH:
            for branch in value[1]:
                found |= _alphabet(branch)
        else:
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, parser.SubPattern):
                    found |= _alphabet(inner)
    return found


_OF_CATEGORY = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_NOT_WORD: " ",
}


def _sample(part: Any) -> str:
    """A short text that this part of a pattern matches, if it is easy to find."""
    code, value = part
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.IN:
        return min(_alphabet(value), default="")
    if code is codes.ANY:
        return "a"
    if code is codes.SUBPATTERN:
        return "".join(map(_sample, value[3]))
    if code is codes.ATOMIC_GROUP:
        return "".join(map(_sample, value))
    if code is codes.BRANCH:
        return "".join(map(_sample, value[1][0]))
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        low, _, inner = value
        return "".join(map(_sample, inner)) * min(int(low), 100)
    return ""
