"""Facts that only the source text has: comments, and signatures as their authors wrote them."""

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

WIDTH = 92  # a longer signature gets a line for each parameter


class Assignment(NamedTuple):
    name: str
    kind: str  # its annotation
    value: str  # a default, in a class
    comment: str
    line: int


class Source:
    """The text of a module, class or function, with what only the text knows."""

    @staticmethod
    @cache  # each constant of a module asks for the module
    def of(thing: Any) -> "Source":
        return Source(textwrap.dedent(inspect.getsource(thing)))

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def assignments(self) -> Iterator[Assignment]:
        """Every assignment to a public name at the top of a module or of a class."""
        for node in self._body():
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                    shown = self.annotation(kind)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    shown = ""
                case _:
                    continue
            if not name.startswith("_"):
                yield Assignment(name, shown, self.segment(value), self.comment(node), node.lineno)

    def comment(self, node: ast.stmt) -> str:
        """Returns the comment behind a statement, or else in the lines right above it."""
        behind = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        words = [self._comments[line] for line in behind if line in self._comments]
        above = node.lineno - 1
        while not words and re.match(r"\s*# (?!---)", self.lines[above - 1]):
            above -= 1
        return " ".join(words or [self._comments[n] for n in range(above + 1, node.lineno)])

    def segment(self, node: ast.AST | None) -> str:
        """Returns the text of a node on one line. `ast.get_source_segment` splits all of the text
        each time, which took most of the time of a run."""
        if node is None:
            return ""
        first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
        lines = [line.encode() for line in self.lines[first : last + 1]]
        lines[-1] = lines[-1][: node.end_col_offset]  # type: ignore[attr-defined]
        lines[0] = lines[0][node.col_offset :]  # type: ignore[attr-defined]
        return " ".join(b" ".join(lines).decode().split())

    def annotation(self, node: ast.AST) -> str:
        """Returns the text of an annotation. It is quoted in the source where its module imports
        the type for type checkers only, which is nothing that a reader needs to know."""
        text = self.segment(node)
        for quoted in _quoted(node):
            text = text.replace(self.segment(quoted), str(quoted.value))
        return text

    def _body(self) -> list[ast.stmt]:
        match self.tree.body:
            case [ast.ClassDef(body=body)]:
                return body
        return self.tree.body

    @cached_property
    def _comments(self) -> dict[int, str]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        comments = [token for token in tokens if token.type == tokenize.COMMENT]
        return {token.start[0]: token.string.removeprefix("# ") for token in comments}


def _quoted(node: ast.AST) -> Iterator[ast.Constant]:
    """Returns the texts in an annotation that name types; those of a Literal are values."""
    match node:
        case ast.Constant(value=str()):
            yield node
        case ast.Subscript(value=ast.Name(id="Literal")):
            return
    for child in ast.iter_child_nodes(node):
        yield from _quoted(child)


def signature(function: Any, *, name: str = "") -> str:
    """A function's head as its author wrote it, without `self`; `name` is that of a class."""
    source = Source.of(function)
    [node] = source.tree.body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    shown = list(parameters(source, node.args))
    result = f" -> {source.annotation(node.returns)}" if node.returns and not name else ""
    if "contextmanager" in map(source.segment, node.decorator_list):
        result = result.replace("Iterator", "AbstractContextManager")
    head = f"{name or node.name}({', '.join(shown)}){result}"
    if len(head) <= WIDTH:
        return head
    lines = "".join(f"    {parameter},\n" for parameter in shown)
    return f"{name or node.name}(\n{lines}){result}"


def property_signature(function: Any) -> str:
    source = Source.of(function)
    [node] = source.tree.body
    assert isinstance(node, ast.FunctionDef)
    assert node.returns is not None
    return f"{node.name}: {source.annotation(node.returns)}"


def parameters(source: Source, arguments: ast.arguments) -> Iterator[str]:
    def shown(argument: ast.arg, default: ast.expr | None = None, stars: str = "") -> str:
        kind = f": {source.annotation(argument.annotation)}" if argument.annotation else ""
        equals = " = " if kind else "="
        return f"{stars}{argument.arg}{kind}" + (
            f"{equals}{source.segment(default)}" if default else ""
        )

    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for number, (argument, default) in enumerate(zip(positional, defaults, strict=True), start=1):
        if not (number == 1 and argument.arg in ("self", "cls")):
            yield shown(argument, default)
        if number == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg:
        yield shown(arguments.vararg, stars="*")
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield shown(argument, default)
    if arguments.kwarg:
        yield shown(arguments.kwarg, stars="**")
