"""Writes src/holdfast/client/generated/ from operations.py: each operation as a typed method.

A `Called` class has every method once, with its signature and docstring, and calls and returns.
`Awaited` and `Recorded` classes name the same methods, to be awaited or kept for a batch: a line
each. Signatures are those of the layers, copied from their source with the names that they use.
What a client does beyond operations is written by hand, for threads; `twins.py` makes the async
classes from it.

    python .ci/client_generator/generate.py
"""

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import twins
from holdfast.operations import LAYER_CLASSES, OPERATIONS, Operation

ROOT = Path(__file__).parent.parent.parent
TARGET = Path("src/holdfast/client/generated")
HEAD = '''"""The operations of {layer}, for a client. Made by `make client` from operations.py."""

'''
FIXED = "I,F401,TC005"  # the order of imports; those that nothing uses
TEXTS = frozenset({"Moment", "bytes"})  # travel as text where an operation takes text too


def main() -> None:
    for path, text in modules().items():
        (ROOT / path).write_text(text)


def modules() -> dict[Path, str]:
    """Every generated module, by its path from the root of the project."""
    made = {}
    for layer in LAYER_CLASSES:
        path = TARGET / f"{layer}.py"
        made[path] = formatted(module_of(layer), path)
    for name, twin in twins.TWINS.items():
        path = TARGET / f"{name}.py"
        made[path] = formatted(twins.written(twin), path)
    made[TARGET / "__init__.py"] = '"""Made by `make client`: see .ci/client_generator/."""\n'
    return made


def formatted(text: str, path: Path) -> str:
    ruff = str(Path(sys.executable).with_name("ruff"))
    named = ["--quiet", "--stdin-filename", str(path), "-"]
    for each in ([ruff, "check", "--fix", "--select", FIXED, *named], [ruff, "format", *named]):
        text = subprocess.run(
            each, input=text, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
    return text


def module_of(layer: str) -> str:
    methods = [Method(each) for each in OPERATIONS.values() if each.layer == layer]
    imports: dict[str, str] = {"Any": "typing", "Final": "typing"}
    for method in methods:
        for name, home in method.imports():
            if imports.setdefault(name, home) != home:
                raise SystemExit(f"{layer}: {name} is of {home} and of {imports[name]}")
    imports |= {"Call": "holdfast.client.calls", "CalledLayer": "holdfast.client.layers"}
    imports |= {"AwaitedLayer": "holdfast.client.layers", "awaited": "holdfast.client.layers"}
    imports |= {"RecordedLayer": "holdfast.client.layers", "recorded": "holdfast.client.layers"}
    if any(method.texts for method in methods):
        imports["as_text"] = "holdfast.client.calls"
    if any(method.converted for method in methods):
        imports["as_entities"] = "holdfast.client.conversions"
    body = class_of(layer.capitalize(), methods)
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    head = [f"from {home} import {name}" for name, home in imports.items() if name in used]
    return HEAD.format(layer=layer) + "\n".join(head) + body


def class_of(layer: str, methods: list["Method"]) -> str:
    """The three classes of a layer, and what each method of theirs calls."""
    called = f"Called{layer}"
    parts = [f'\n\nclass {called}(CalledLayer):\n    """The operations of `{layer}`, called."""\n']
    parts += [textwrap.indent(method.written(), "    ") + "\n" for method in methods]
    for way, some in {
        "awaited": methods,
        "recorded": [m for m in methods if m.fits_a_batch],
    }.items():
        name = way.capitalize()
        doc = f"The operations of `{layer}`, {MEANT[way]}."
        parts.append(f'\n\nclass {name}{layer}({name}Layer):\n    """{doc}"""\n')
        parts += [f"    {each.tree.name} = {way}({called}.{each.tree.name})" for each in some]
    parts.append("\n")
    parts += [method.constant(called) for method in methods]
    return "\n".join(parts) + "\n"


MEANT = {"awaited": "each a coroutine", "recorded": "kept to be sent together"}


def is_text(names: set[str]) -> bool:
    """Whether an argument of these types travels as text; what is bytes alone stays bytes."""
    return bool(TEXTS & names) and names != {"bytes"}


class Method:
    """An operation as the source of its method has it."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        on_transaction, on_store = LAYER_CLASSES[operation.layer]
        owner = on_transaction if operation.kind in ("read", "write") else on_store
        self.function = inspect.unwrap(getattr(owner, operation.method))
        self.home = self.function.__module__
        self.tree = self._tree()
        known = msgspec.structs.fields(operation.arguments)
        self.fields = {field.name: field for field in known}
        self.texts = {
            argument.arg
            for argument in self._arguments()
            if argument.annotation is not None and is_text({*self._names(argument.annotation)})
        }

    @property
    def fits_a_batch(self) -> bool:
        """Leaves out operations that wait or take more than one transaction."""
        return self.operation.kind in ("read", "write")

    @property
    def converted(self) -> str:
        """The argument whose elements the server converts, or no name."""
        convert = self.operation.declaration.convert
        return "" if convert is None else convert[0]

    @property
    def constant_name(self) -> str:
        return f"_{self.operation.method.upper()}"

    def constant(self, called: str) -> str:
        operation = self.operation
        words = [f'"{operation.full_name}"', f'"{operation.kind}"', f"{called}.{self.tree.name}"]
        if operation.only_reads != (operation.kind == "read"):
            words.append(f"only_reads={operation.only_reads}")
        if not is_decodable(operation.result):
            words.append("has_plain_result=True")
        return f"{self.constant_name}: Final = Call({', '.join(words)})"

    def written(self) -> str:
        signature = ast.unparse(self._signature())
        result = ast.unparse(self.tree.returns) if self.tree.returns else "None"
        head = f"def {self.tree.name}({signature}) -> {result}:"
        passed = ", ".join([self.constant_name, *self._passed()])
        return f"{head}\n{self._doc()}\n    return self._call({passed})"

    def _doc(self) -> str:
        """The first paragraph of the layer's own."""
        first = " ".join(self.operation.doc.partition("\n\n")[0].replace("\\", "\\\\").split())
        lines = textwrap.wrap(first, 84)
        end = '\n"""' if len(lines) > 1 else '"""'
        return textwrap.indent('"""' + "\n".join(lines) + end, "    ")

    def imports(self) -> Iterator[tuple[str, str]]:
        """The names that the signature uses, and where they come from."""
        nodes: list[ast.AST] = [*self._annotations(), *(d for _, d in self._defaults() if d)]
        if self.tree.returns is not None:
            nodes.append(self.tree.returns)
        for node in nodes:
            for name in self._names(node):
                home = self._home_of(name)
                if home is not None:
                    yield name, home

    # --- reading the source -----------------------------------------------------------------------

    def _tree(self) -> ast.FunctionDef:
        text = textwrap.dedent(inspect.getsource(self.function))
        [tree] = ast.parse(text).body
        assert isinstance(tree, ast.FunctionDef)
        return tree

    def _arguments(self) -> list[ast.arg]:
        arguments = self.tree.args
        star = [arguments.vararg] if arguments.vararg else []
        every = [*arguments.posonlyargs, *arguments.args[1:], *star, *arguments.kwonlyargs]
        return [each for each in every if each.arg in getattr(self, "fields", {each.arg: None})]

    def _annotations(self) -> list[ast.expr]:
        return [each.annotation for each in self._arguments() if each.annotation is not None]

    def _defaults(self) -> list[tuple[str, ast.expr | None]]:
        arguments = self.tree.args
        places = arguments.args[1:]
        missing = len(places) - len(arguments.defaults)
        found: list[tuple[str, ast.expr | None]] = []
        for position, argument in enumerate(places):
            default = arguments.defaults[position - missing] if position >= missing else None
            found.append((argument.arg, default))
        if arguments.vararg:
            found.append((arguments.vararg.arg, None))
        found += [
            (argument.arg, default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ]
        return [(name, default) for name, default in found if name in self.fields]

    def _signature(self) -> ast.arguments:
        """The signature without what does not travel, such as a function to be called back."""
        given = self.tree.args
        kept = [
            (argument, default)
            for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
            if argument.arg in self.fields
        ]
        return ast.arguments(
            posonlyargs=[],
            args=given.args,
            vararg=given.vararg,
            kwonlyargs=[argument for argument, _ in kept],
            kw_defaults=[default for _, default in kept],
            kwarg=None,
            defaults=given.defaults,
        )

    def _passed(self) -> Iterator[str]:
        """The arguments as a call takes them: in the order of the signature, *values last."""
        signature = self._signature()
        star = [signature.vararg] if signature.vararg else []
        for argument in [*signature.args[1:], *signature.kwonlyargs, *star]:
            name = argument.arg
            if name == self.converted:
                yield f"as_entities({name})"
            else:
                yield f"as_text({name})" if name in self.texts else name

    def _names(self, node: ast.AST) -> Iterator[str]:
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                yield each.id

    def _home_of(self, name: str) -> str | None:
        """The module to import a name from, or None for what Python itself has."""
        module = sys.modules[self.home]
        if not hasattr(module, name):
            return None
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return str(node.module)
        return str(self.home)


def is_decodable(result: Any) -> bool:
    """Whether the type alone says how to read a result."""
    try:
        msgspec.msgpack.Decoder(result)
    except TypeError:
        return False
    return True


if __name__ == "__main__":
    main()
