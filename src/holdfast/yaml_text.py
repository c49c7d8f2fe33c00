"""YAML that may come from anybody: composed within bounds, every problem with line and column.

A text of a kilobyte can describe an endless tree (an alias in its own anchor), a huge one
(aliases of aliases, merged into each other), or one that is too deep for a recursive reader.
Such a text is refused here, before anything walks its tree; what is left takes a time that grows
with its length. Nothing is ever constructed as an object of the text's choosing.
"""

import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from holdfast.limits import (
    MAX_SCHEMA_ANCHORS,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    MAX_SCHEMA_NUMBER_LETTERS,
)

MERGE: Final = "tag:yaml.org,2002:merge"
NULL: Final = "tag:yaml.org,2002:null"
_STANDARD: Final = "tag:yaml.org,2002:"
_NUMBERS: Final = frozenset(_STANDARD + kind for kind in ("int", "float", "timestamp"))
# The blanks begin behind something else, or each blank of a long run would be tried as a beginning.
_TRAILING_BLANKS: Final = re.compile(r"(?<![ \t])[ \t]++(?=\r?$)", re.MULTILINE)

# The C loader is a twin of the Go parser, tabs included, and by far the faster of the two.
_Loader: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCTORS: Final = {
    _STANDARD + "int": "construct_yaml_int",
    _STANDARD + "float": "construct_yaml_float",
    _STANDARD + "bool": "construct_yaml_bool",
    _STANDARD + "timestamp": "construct_yaml_timestamp",
    _STANDARD + "binary": "construct_yaml_binary",
    _STANDARD + "str": "construct_yaml_str",
}


class YamlProblem(Exception):
    """The reason why a text can't be read. Lines and columns count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column

    @classmethod
    def at(cls, node: yaml.Node, message: str) -> "YamlProblem":
        return cls(message, node.start_mark.line + 1, node.start_mark.column + 1)

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


def compose(content: str | bytes) -> yaml.Node | None:
    """Returns the root of the text's tree, None for an empty text; raises `YamlProblem`."""
    try:
        data = content.encode() if isinstance(content, str) else content
        text = _TRAILING_BLANKS.sub("", data.decode().removeprefix("\ufeff"))
        _check_events(text)
        root: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        where = f"{error.reason} at {error.start}"
        raise YamlProblem(f"is not UTF-8 text: {where}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlProblem(
            f"is not YAML: {error.problem}, at column {column}", line, column
        ) from None
    except yaml.YAMLError as error:
        raise YamlProblem(f"is not YAML: {' '.join(str(error).split())}") from None
    except (RecursionError, ValueError, OverflowError) as error:
        raise YamlProblem(f"is not YAML: {error}") from None
    if root is not None:
        _check_size(root)
    return root


def _check_events(text: str) -> None:
    """Refuses a text that nests too deep for the composer, which recurses in C, or is too large."""
    depth = nodes = anchors = 0
    for event in yaml.parse(text, Loader=_Loader):
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            if nodes > MAX_SCHEMA_NODES:
                raise YamlProblem(f"has more than {MAX_SCHEMA_NODES} nodes", line, column)
            anchors += event.anchor is not None and not isinstance(event, yaml.AliasEvent)
            if anchors > MAX_SCHEMA_ANCHORS:
                raise YamlProblem(f"has more than {MAX_SCHEMA_ANCHORS} anchors", line, column)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_SCHEMA_DEPTH:
                raise YamlProblem(f"nests deeper than {MAX_SCHEMA_DEPTH} levels", line, column)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(root: yaml.Node) -> None:
    """Refuses a tree that is infinite or too large once its aliases are expanded."""
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
                raise YamlProblem.at(node, f"expands to {size} nodes in {depth} levels")
            sizes[id(node)] = size, depth
            path.discard(id(node))
            stack.pop()
        else:
            path.add(id(node))
            stack.extend(children)
            if any(id(child) in path for child in children):
                raise YamlProblem.at(node, "contains itself, by an alias in its own anchor")


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def merged(node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yields the pairs of a mapping, and after them those that `<<` brings in; the first of a name
    wins.

    A source of `<<` that is not a mapping is a `YamlProblem`.
    """
    merges = [value for key, value in node.value if key.tag == MERGE]
    yield from ((key, value) for key, value in node.value if key.tag != MERGE)
    for merge in merges:
        for source in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
            if not isinstance(source, yaml.MappingNode):
                raise YamlProblem.at(source, "'<<' needs a mapping")
            yield from merged(source)


def scalar(node: yaml.ScalarNode) -> Any:
    """Returns the value of a YAML scalar; raises `YamlProblem` if no schema can hold it."""
    if node.tag == NULL:
        return None
    method = _CONSTRUCTORS.get(node.tag)
    if method is None:
        raise YamlProblem.at(node, f"a value of type {node.tag}")
    # YAML 1.1 reads 12:30 as a number to the base of 60, which its author never means.
    is_odd = len(node.value) > MAX_SCHEMA_NUMBER_LETTERS or (
        ":" in node.value and not node.tag.endswith(":timestamp")
    )
    if node.tag in _NUMBERS and is_odd:
        raise YamlProblem.at(node, f"{shortened(node.value)!r} is not a number")
    try:
        return getattr(yaml.constructor.SafeConstructor(), method)(node)
    except (
        *(yaml.YAMLError, ValueError, OverflowError, binascii.Error),
        *(AttributeError, KeyError, IndexError, TypeError),  # a tag such as !!bool on another text
    ):
        kind = node.tag.removeprefix(_STANDARD)
        raise YamlProblem.at(node, f"{shortened(node.value)!r} is not a valid {kind}") from None


def load(content: str | bytes) -> Any:
    """Returns a text as plain data: dicts, lists, texts, numbers, bools, None and datetimes."""
    root = compose(content)
    return None if root is None else _plain(root)


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        assert isinstance(node, yaml.ScalarNode)
        return scalar(node)
    own = {id(key) for key, _ in node.value}
    found: dict[Any, Any] = {}
    for key, value in merged(node):
        if not isinstance(key, yaml.ScalarNode):
            raise YamlProblem.at(key, "a key must be text")
        name = scalar(key)
        if name not in found:
            found[name] = _plain(value)
        elif id(key) in own:
            raise YamlProblem.at(key, f"the key {shortened(str(name))!r} appears twice")
    return found


def shortened(text: str) -> str:
    """Returns a text that fits into a message."""
    return text if len(text) <= 60 else f"{text[:57]}..."
