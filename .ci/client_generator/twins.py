"""Writes the async twin of a class from the source of the sync one, as httpx and psycopg do.

`TWINS` names for each generated module the classes to copy and the calls to await. A method that
awaits becomes a coroutine; all other text, comments included, stays as it is. What truly differs
is `omitted` here and written by hand, in a subclass or beside the generated module.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

SOURCE = Path(__file__).parent.parent.parent / "src"
# Names that twins use and sources may not; those that a module does not use are removed.
IMPORTS = """
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
"""
WORDS = {
    "contextmanager": "asynccontextmanager",
    "`with ": "`async with ",
    "`with`": "`async with`",
    "time.sleep": "asyncio.sleep",
}


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A generated module: where its classes come from, and what is different in them."""

    doc: str
    classes: dict[str, dict[str, str]]  # by source module: the new name of each class or alias
    awaited: str  # a pattern for the functions whose calls are awaited
    coroutines: frozenset[str] = frozenset()  # methods that await nothing, and are coroutines
    omitted: frozenset[str] = frozenset()  # methods that are written by hand
    words: dict[str, str] = field(default_factory=dict)  # other text to replace
    for_types: dict[str, str] = field(default_factory=dict)  # names for type checkers, their homes


TWINS = {
    "async_handles": Twin(
        doc="Handles on one queue or one job of a server, for programs that `await`.",
        classes={
            "holdfast.jobs.handles": {
                "QueueHandle": "AsyncQueueHandle",
                "JobHandle": "AsyncJobHandle",
            }
        },
        awaited=r"self\._jobs\.\w+",
        words={
            "holdfast.jobs.store": "holdfast.client.generated.async_jobs",
            "StoreJobs": "AsyncJobs",
            "of a store": "of a server",
            "def __len__(self) -> int:": (
                'def length(self) -> int:\n        """Returns the number of jobs in the queue."""'
            ),
        },
    ),
    "async_jobs": Twin(
        doc="Jobs of a server for programs that `await`.",
        classes={"holdfast.client.jobs": {"ClientJobs": "AsyncJobs"}},
        awaited=r"super\(\)\.\w+|self\.put_many",
        words={
            "CalledJobs": "AwaitedJobs",
            "ClientJobsV1": "AsyncJobsV1",
            "QueueHandle": "AsyncQueueHandle",
            "JobHandle": "AsyncJobHandle",
            "holdfast.jobs.handles": "holdfast.client.generated.async_handles",
            "`client.jobs": "`await client.jobs",
            "  # type: ignore[arg-type]  # it has the calls of a store": "",
        },
    ),
    "async_models": Twin(
        doc="The operations of entities in terms of models, for programs that `await`.",
        classes={"holdfast.entities.mapper": {"ModelCalls": "AsyncModelCalls"}},
        awaited=r"self\.(\w+_raw|execute|_load_\w+)",
    ),
    "async_entities": Twin(
        doc="Entities of a server for programs that `await`.",
        classes={"holdfast.client.entities": {"ClientEntities": "AsyncEntities"}},
        awaited=r"super\(\)\.\w+",
        words={
            "CalledEntities": "AwaitedEntities",
            "ModelCalls": "AsyncModelCalls",
            "holdfast.entities.mapper": "holdfast.client.generated.async_models",
            "ClientSubscription": "AsyncSubscription",
            "holdfast.client.subscriptions": "holdfast.client.async_subscriptions",
            "ClientSpace": "AsyncSpace",
            "holdfast.client.client": "holdfast.client.generated.async_space",
        },
    ),
    "async_events": Twin(
        doc="Events of a server for programs that `await`.",
        classes={"holdfast.client.events": {"ClientEvents": "AsyncEvents"}},
        awaited=r"super\(\)\.\w+|self\.send_many",
        words={
            "CalledEvents": "AwaitedEvents",
            "KeySubscription": "AsyncKeySubscription",
            "holdfast.events.store": "holdfast.client.async_subscriptions",
            "ClientSpace": "AsyncSpace",
            "holdfast.client.client": "holdfast.client.generated.async_space",
        },
    ),
    "async_limiter": Twin(
        doc="Rate limits of a server for programs that `await`.",
        classes={
            "holdfast.metrics.limiter": {
                "Sleep": "AsyncSleep",
                "TryOne": "AsyncTryOne",
                "LimitBackend": "AsyncLimitBackend",
                "Limiter": "AwaitedLimiter",
                "Batch": "AsyncLimitBatch",
            }
        },
        awaited=r"self\._backend\.\w+|self\.\w+_all|self\._limiter\.\w+_all|"
        r"self\._(try_one|sleep)|self\.try_incr",
        coroutines=frozenset({"LimitBackend.try_incr", "LimitBackend.peek"})
        | {"LimitBackend.limit_incr"},
        omitted=frozenset({"Limiter.limit"}),
    ),
    "async_rates": Twin(
        doc="Rates of a server for programs that `await`: many promises at once.",
        classes={"holdfast.metrics.reader": {"PromiseReads": "AsyncPromiseReads"}},
        awaited=r"self\._resolved|resolve",
        words={"RatePromise[Any]": '"AsyncRatePromise"'},
        for_types={"AsyncRatePromise": "holdfast.client.async_metrics"},
    ),
    "async_space": Twin(
        doc="A space of a server for programs that `await`.",
        classes={"holdfast.client.client": {"ELSEWHERE": "ELSEWHERE", "ClientSpace": "AsyncSpace"}},
        awaited=r"self\._exchange|self\._pool\.send_pipeline",
        words={
            "CalledAdmin": "AwaitedAdmin",
            "ClientEntities": "AsyncEntities",
            "holdfast.client.entities": "holdfast.client.generated.async_entities",
            "ClientEvents": "AsyncEvents",
            "holdfast.client.events": "holdfast.client.generated.async_events",
            "ClientJobs": "AsyncJobs",
            "holdfast.client.jobs": "holdfast.client.generated.async_jobs",
            "ClientMetrics": "AsyncMetrics",
            "holdfast.client.metrics": "holdfast.client.async_metrics",
            "ClientTables": "AsyncTables",
            "ClientSubscription": "AsyncSubscription",
            "holdfast.client.subscriptions": "holdfast.client.async_subscriptions",
            "Pool": "AsyncPool",
            "holdfast.client.pool": "holdfast.client.async_pool",
        },
    ),
}


def written(twin: Twin) -> str:
    """Returns the generated module, which is still to be formatted."""
    heads, bodies = ["from typing import TYPE_CHECKING"], []
    for name, classes in twin.classes.items():
        source = Source(name)
        made = "\n\n\n".join(copied for copied in source.copies(twin, classes))
        words = {**WORDS, **classes, **twin.words}
        heads.append(source.own_names(made, classes))
        heads.append(replaced(source.imports(), words))
        bodies.append(replaced(made, words))
    if twin.for_types:
        heads.append("if TYPE_CHECKING:")
        heads += [f"    from {home} import {name}" for name, home in twin.for_types.items()]
    doc = f'"""{twin.doc}\n\nMade by `make client` from {" and ".join(twin.classes)}.\n"""'
    return "\n".join([doc, IMPORTS, *heads, *bodies]) + "\n"


def replaced(text: str, words: dict[str, str]) -> str:
    """Returns the text with every word replaced, once."""
    found = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words if word[-1].isalnum())
    other = "|".join(re.escape(word) for word in words if not word[-1].isalnum())
    pattern = "|".join(filter(None, [other, found]))
    return re.sub(pattern, lambda match: words[match[0]], text)


class Source:
    """A module whose classes are copied."""

    def __init__(self, name: str) -> None:
        self.name = name
        path = SOURCE / name.replace(".", "/")
        self.text = path.with_suffix(".py").read_text()
        self.tree = ast.parse(self.text)
        self.starts = [0]
        for line in self.text.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def imports(self) -> str:
        """Returns what the module imports, at run time or for type checkers."""
        kept = (ast.Import, ast.ImportFrom)
        nodes = [node for node in self.tree.body if isinstance(node, kept) or is_for_types(node)]
        return "\n".join(ast.unparse(node) for node in nodes)

    def own_names(self, text: str, classes: dict[str, str]) -> str:
        """Returns the imports of what stays in the module and the copies use."""
        names = {name for node in self.tree.body for name in defined_by(node)}
        used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        wanted = sorted((names - classes.keys()) & used)
        return f"from {self.name} import {', '.join(wanted)}" if wanted else ""

    def copies(self, twin: Twin, classes: dict[str, str]) -> Iterator[str]:
        for node in self.tree.body:
            if not classes.keys().isdisjoint(defined_by(node)):
                yield self.copy(node, twin)

    def copy(self, node: ast.stmt, twin: Twin) -> str:
        """Returns the source of a class or an alias, with `async` and `await` where needed."""
        begin, end = self.at(node), self.end_of(node)
        data, edits = self.text.encode(), sorted(self.edits(node, twin))
        parts, done = [], begin
        for start, stop, text in edits:
            parts += [data[done:start].decode(), text]
            done = max(done, stop)
        return "".join([*parts, data[done:end].decode()])

    # --- edits: a range of bytes, and what replaces it --------------------------------------------

    def edits(self, node: ast.stmt, twin: Twin) -> Iterator[tuple[int, int, str]]:
        if not isinstance(node, ast.ClassDef):
            yield from self.awaitable(node)
            return
        methods = [each for each in ast.walk(node) if isinstance(each, ast.FunctionDef)]
        coroutines = {each.name for each in methods if self.awaits(each, twin)}
        for method in methods:
            full_name = f"{node.name}.{method.name}"
            if full_name in twin.omitted:
                yield self.start_of(method), self.end_of(method) + 1, ""
            elif method.name in coroutines or full_name in twin.coroutines:
                yield from self.made_async(method, twin)
            else:
                yield from self.without_declaration(method)

    def awaits(self, method: ast.FunctionDef, twin: Twin) -> bool:
        return any(self.is_awaited(each, twin) for each in ast.walk(method))

    def is_awaited(self, node: ast.AST, twin: Twin) -> TypeGuard[ast.Call]:
        if not isinstance(node, ast.Call):
            return False
        return re.fullmatch(twin.awaited, ast.unparse(node.func)) is not None

    def made_async(self, method: ast.FunctionDef, twin: Twin) -> Iterator[tuple[int, int, str]]:
        yield from self.without_declaration(method)
        yield self.at(method), self.at(method), "async "
        nodes = list(ast.walk(method))
        if method.returns and any(isinstance(each, ast.Yield | ast.YieldFrom) for each in nodes):
            yield self.at(method.returns), self.at(method.returns), "Async"
        for parent in nodes:
            for child in ast.iter_child_nodes(parent):
                if self.is_awaited(child, twin):
                    is_inner = isinstance(parent, ast.Attribute | ast.Subscript)
                    yield self.at(child), self.at(child), "(await " if is_inner else "await "
                    if is_inner:
                        yield self.end_of(child), self.end_of(child), ")"
            if isinstance(parent, ast.YieldFrom):
                begin, value = self.at(parent), self.at(parent.value)
                yield begin, value, "for each in "
                line = f":\n{' ' * (parent.col_offset + 4)}yield each"
                yield self.end_of(parent), self.end_of(parent), line

    def without_declaration(self, method: ast.FunctionDef) -> Iterator[tuple[int, int, str]]:
        """Removes `@operation(...)`: only the operations of layers have one."""
        for each in method.decorator_list:
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "operation":
                yield self.at(each) - 1, self.end_of(each), ""

    def awaitable(self, node: ast.stmt) -> Iterator[tuple[int, int, str]]:
        """Makes the result of `Callable[[...], result]` one to await."""
        for each in ast.walk(node):
            if isinstance(each, ast.Subscript) and ast.unparse(each.value) == "Callable":
                assert isinstance(each.slice, ast.Tuple)
                result = each.slice.elts[1]
                yield self.at(result), self.at(result), "Awaitable["
                yield self.end_of(result), self.end_of(result), "]"

    # --- positions -------------------------------------------------------------------------------

    def at(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end_of(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def start_of(self, method: ast.FunctionDef) -> int:
        """Returns where a method begins, its decorators included."""
        return min([self.at(method), *(self.at(each) - 1 for each in method.decorator_list)])


def is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def defined_by(node: ast.stmt) -> list[str]:
    """Returns the names that a statement at the top of a module defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]
