"""YAML as nodes that know their file and line, so that every problem can say where it lies.

PyYAML composes the nodes; nothing of the text is ever constructed as an object of its choosing.
Two habits of the original's Go parser are kept: tabs at line ends are white space, and a name is
text as written, also when it looks like `no` or `1e3` to a YAML 1.1 parser.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec
import yaml

from holdfast.limits import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES

_TRAILING_BLANKS: Final = re.compile(r"[ \t]+(?=\r?$)", re.MULTILINE)
_MERGE: Final = "tag:yaml.org,2002:merge"
_DAMAGED: Final = (UnicodeDecodeError, UnicodeEncodeError)
_NULL: Final = "tag:yaml.org,2002:null"

# The C loader is a twin of the Go parser, tabs included, and much the faster of the two.
_Loader: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Place(msgspec.Struct, frozen=True):
    """Where in the schema files something is written. Lines count from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Problem(msgspec.Struct, frozen=True):
    """Something wrong with a schema. An error refuses it, a warning does not."""

    place: Place
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        mark = "warning: " if self.severity == "warning" else ""
        return f"{self.place}: {mark}{self.message}"


class Text:
    """One schema file being read: its nodes, and the problems found so far."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems

    def compose(self, content: str | bytes) -> yaml.Node | None:
        """The root of the text, or None after noting why there is none."""
        try:
            data = content.encode() if isinstance(content, str) else content
            if len(data) > MAX_SCHEMA_BYTES:
                size = f"{len(data)} bytes, at most {MAX_SCHEMA_BYTES} are read"
                self.error_at(1, f"The schema is {size}")
                return None
            text = _TRAILING_BLANKS.sub("", data.decode().removeprefix("\ufeff"))
            if (line := _too_deep(text)) is not None:
                self.error_at(line, f"The schema nests deeper than {MAX_SCHEMA_DEPTH} levels")
                return None
            root: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        except UnicodeError as error:
            where = f"{error.reason} at {error.start}" if isinstance(error, _DAMAGED) else error
            self.error_at(1, f"The schema is not UTF-8 text: {where}")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.error_at(mark.line + 1 if mark else 1, f"The schema is not YAML: {error.problem}")
        except yaml.YAMLError as error:
            self.error_at(1, f"The schema is not YAML: {' '.join(str(error).split())}")
        else:
            return root if root is None or self._is_finite(root) else None
        return None

    def _is_finite(self, root: yaml.Node) -> bool:
        """Whether the tree without its aliases is of sensible size; notes why if not.

        Aliases can make a small text stand for a huge tree, or for one without end.
        """
        sizes: dict[int, tuple[int, int]] = {}  # of finished nodes: nodes and levels
        path: set[int] = set()
        stack = [root]
        while stack:
            node = stack[-1]
            children = _children(node)
            if id(node) in sizes:
                stack.pop()
            elif id(node) in path:  # its children are done
                below = [sizes[id(child)] for child in children]
                size = 1 + sum(size for size, _ in below)
                depth = 1 + max((depth for _, depth in below), default=0)
                if size > MAX_SCHEMA_NODES or depth > MAX_SCHEMA_DEPTH:
                    self.error(node, f"The schema unfolds to {size} nodes in {depth} levels")
                    return False
                sizes[id(node)] = size, depth
                path.discard(id(node))
                stack.pop()
            else:
                path.add(id(node))
                stack.extend(children)
                if any(id(child) in path for child in children):
                    self.error(node, "The schema contains itself, by an alias in its own anchor")
                    return False
        return True

    def error_at(self, line: int, message: str) -> None:
        self.problems.append(Problem(Place(self.file, line), message))

    def error(self, node: yaml.Node, message: str) -> None:
        self.problems.append(Problem(self.place(node), message))

    def warn(self, node: yaml.Node, message: str) -> None:
        self.problems.append(Problem(self.place(node), message, "warning"))

    def place(self, node: yaml.Node) -> Place:
        return Place(self.file, node.start_mark.line + 1)

    def entries(
        self, node: yaml.Node | None, what: str
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yields name, node of the name, and node of the value; nothing for null.

        Each name comes once: a repetition is a problem, `<<` brings in what is not written out.
        """
        if node is None or is_null(node):
            return
        if not isinstance(node, yaml.MappingNode):
            self.error(node, f"{what} must be a mapping, not {kind(node)}")
            return
        seen: dict[str, yaml.Node] = {}
        for key, value in self._merged(node):
            if not isinstance(key, yaml.ScalarNode):
                self.error(key, f"{what} has {kind(key)} as a name")
            elif key.value not in seen:
                seen[key.value] = key
                yield key.value, key, value
            elif not _inside(key, node) or not _inside(seen[key.value], node):
                continue
            else:
                first = self.place(seen[key.value])
                self.error(key, f"{what} has '{key.value}' twice, first in line {first.line}")

    def _merged(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        merges = [value for key, value in node.value if key.tag == _MERGE]
        yield from ((key, value) for key, value in node.value if key.tag != _MERGE)
        for merge in merges:
            for source in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
                if not isinstance(source, yaml.MappingNode):
                    self.error(source, f"'<<' needs a mapping, not {kind(source)}")
                else:
                    yield from self._merged(source)

    def fields(
        self, node: yaml.Node | None, what: str, known: tuple[str, ...]
    ) -> dict[str, yaml.Node]:
        """The values under the `known` names; every other name is a warning."""
        fields: dict[str, yaml.Node] = {}
        for name, key, value in self.entries(node, what):
            if name in known:
                fields[name] = value
            else:
                ask = nearest(name, known) or " and is ignored"
                self.warn(key, f"'{name}' means nothing in {what}{ask}")
        return fields

    def items(self, node: yaml.Node | None, what: str) -> list[yaml.Node]:
        """The items of a list; null is an empty one."""
        if node is None or is_null(node):
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.error(node, f"{what} must be a list, not {kind(node)}")
            return []
        return list(node.value)

    def word(self, node: yaml.Node | None, what: str) -> str:
        """Text as written, whatever it looks like to YAML; null is empty."""
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
        if isinstance(node, yaml.ScalarNode) and re.fullmatch(r"[-+]?[0-9]+", str(node.value)):
            return int(node.value)
        self.error(node, f"{what} must be a whole number, not {shown(node)}")
        return 0


def _too_deep(text: str) -> int | None:
    """The line that nests too deep for the composer, which recurses in C; else None."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_SCHEMA_DEPTH:
                return event.start_mark.line + 1 if event.start_mark else 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL


def kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else shown(node)


def shown(node: yaml.Node) -> str:
    return f"'{node.value}'" if isinstance(node, yaml.ScalarNode) else kind(node)


def nearest(word: str, known: Sequence[str]) -> str:
    """A question for the end of a message: `, did you mean 'Text'?`, or nothing."""
    near = difflib.get_close_matches(word, known, 1)
    return f", did you mean '{near[0]}'?" if near else ""


def _inside(key: yaml.Node, mapping: yaml.MappingNode) -> bool:
    return any(key is own for own, _ in mapping.value)
