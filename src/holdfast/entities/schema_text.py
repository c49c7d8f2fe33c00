"""YAML nodes with their file and line, so that every problem can be located.

PyYAML composes the nodes; the text can't choose the types of the objects that are made from them.
Two rules of Meduza's Go parser are kept: tabs at line ends are white space, and a name is the text
as written, even if a YAML 1.1 parser would read `no` or `1e3` as another type.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec
import yaml

from holdfast import error_text, yaml_text
from holdfast.limits import MAX_SCHEMA_BYTES, MAX_SCHEMA_PROBLEMS
from holdfast.yaml_text import NULL, YamlProblem, merged, shortened

_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,19}")  # no length and no priority has more digits


class SourcePlace(msgspec.Struct, frozen=True):
    """A place in the schema files. Lines count from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Problem(msgspec.Struct, frozen=True):
    """A problem in a schema. A schema with errors is refused; warnings are only shown."""

    place: SourcePlace
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        mark = "warning: " if self.severity == "warning" else ""
        return f"{self.place}: {mark}{self.message}"


class SchemaText:
    """One schema file being read: its nodes, and the problems found so far."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        self._counts = {"error": 0, "warning": 0}

    def compose(self, content: str | bytes) -> yaml.Node | None:
        """Returns the root node of the text, or None after adding the problem."""
        size = len(content.encode(errors="replace") if isinstance(content, str) else content)
        if size > MAX_SCHEMA_BYTES:
            listed = f"{size} bytes, at most {MAX_SCHEMA_BYTES} are read"
            self.error_at(1, f"The schema is {listed}")
            return None
        try:
            return yaml_text.compose(content)
        except YamlProblem as problem:
            self.error_at(problem.line, f"The schema {problem.message}")
            return None

    def error_at(self, line: int, message: str) -> None:
        self._add(Problem(SourcePlace(self.file, line), message))

    def error(self, node: yaml.Node, message: str) -> None:
        self._add(Problem(self.place(node), message))

    def warn(self, node: yaml.Node, message: str) -> None:
        self._add(Problem(self.place(node), message, "warning"))

    def _add(self, problem: Problem) -> None:
        """Keeps the first problems of each severity, so that warnings never displace an error."""
        count = self._counts[problem.severity] = self._counts[problem.severity] + 1
        if count <= MAX_SCHEMA_PROBLEMS:
            self.problems.append(problem)
        elif count == MAX_SCHEMA_PROBLEMS + 1:
            more = f"There are more {problem.severity}s; the first {MAX_SCHEMA_PROBLEMS} are listed"
            self.problems.append(Problem(problem.place, more, problem.severity))

    def nearest(self, word: str, known: Sequence[str]) -> str:
        """Returns a question for the end of a message, `, did you mean 'Text'?`, or nothing."""
        if sum(self._counts.values()) > MAX_SCHEMA_PROBLEMS:
            return ""
        return nearest(word, known)

    def place(self, node: yaml.Node) -> SourcePlace:
        return SourcePlace(self.file, node.start_mark.line + 1)

    def entries(
        self, node: yaml.Node | None, what: str
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yields name, node of the name, and node of the value; nothing for null.

        Each name comes once: a repeated one is a problem, and `<<` adds names that are not there.
        """
        if node is None or is_null(node):
            return
        if not isinstance(node, yaml.MappingNode):
            self.error(node, f"{what} must be a mapping, not {kind(node)}")
            return
        seen: dict[str, yaml.Node] = {}
        own = {id(key) for key, _ in node.value}
        try:
            for key, value in merged(node):
                if not isinstance(key, yaml.ScalarNode):
                    self.error(key, f"{what} has {kind(key)} as a name")
                elif key.value not in seen:
                    seen[key.value] = key
                    yield key.value, key, value
                elif id(key) in own and id(seen[key.value]) in own:
                    first = self.place(seen[key.value])
                    name = shortened(key.value)
                    self.error(key, f"{what} has '{name}' twice, first in line {first.line}")
        except YamlProblem as problem:
            self.error_at(problem.line, problem.message)

    def fields(
        self, node: yaml.Node | None, what: str, known: tuple[str, ...]
    ) -> dict[str, yaml.Node]:
        """Returns the values under the `known` names; every other name is a warning."""
        fields: dict[str, yaml.Node] = {}
        for name, key, value in self.entries(node, what):
            if name in known:
                fields[name] = value
            else:
                suggestion = self.nearest(name, known) or " and is ignored"
                self.warn(key, f"'{shortened(name)}' means nothing in {what}{suggestion}")
        return fields

    def items(self, node: yaml.Node | None, what: str) -> list[yaml.Node]:
        """Returns the items of a list; null is an empty one."""
        if node is None or is_null(node):
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.error(node, f"{what} must be a list, not {kind(node)}")
            return []
        return list(node.value)

    def word(self, node: yaml.Node | None, what: str) -> str:
        """Returns the text as written, whatever its type in YAML; null is empty."""
        if node is None or (is_null(node) and node.value in ("", "~")):
            return ""
        if not isinstance(node, yaml.ScalarNode):
            self.error(node, f"{what} must be text, not {kind(node)}")
            return ""
        return str(node.value)

    def words(self, node: yaml.Node | None, what: str) -> tuple[str, ...]:
        return tuple(self.word(item, what) for item in self.items(node, what))

    def flag(self, node: yaml.Node | None, what: str) -> bool:
        if node is None or is_null(node):
            return False
        if not isinstance(node, yaml.ScalarNode) or not node.tag.endswith(":bool"):
            self.error(node, f"{what} must be true or false, not {shown(node)}")
            return False
        return str(node.value).lower() in ("true", "yes", "on", "y")

    def number(self, node: yaml.Node | None, what: str) -> int:
        if node is None or is_null(node):
            return 0
        if isinstance(node, yaml.ScalarNode) and _WHOLE.fullmatch(str(node.value)):
            return int(node.value)
        self.error(node, f"{what} must be a whole number, not {shown(node)}")
        return 0


def is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == NULL


def kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else shown(node)


def shown(node: yaml.Node) -> str:
    return f"'{shortened(str(node.value))}'" if isinstance(node, yaml.ScalarNode) else kind(node)


def nearest(word: str, known: Sequence[str]) -> str:
    """Returns a question for the end of a message, `, did you mean 'Text'?`, or nothing."""
    near = error_text.nearest(word, known)
    return "" if near is None else f", did you mean '{near}'?"
