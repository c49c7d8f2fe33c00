"""Writes docs/reference/ and docs/limits.md from the source, so that they can't say anything else.

What is public comes from the imported modules; signatures and the comments behind fields and limits
come from their source text, where people wrote them. A module appears by itself: whatever is
directly in src/holdfast/ and has public names gets a page.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import msgspec

import holdfast
from holdfast import cli, contrib, errors, limits, operations, testing
from holdfast.cli import settings
from holdfast.cli.output import JSON_HELP
from holdfast.compat.meduza import mdzctl
from source_text import Source, property_signature, signature

ROOT = Path(__file__).parent.parent.parent
REFERENCE = Path("docs/reference")
COST = re.compile(r"(Reads|Writes|Deletes)\b.*(\d|\bkeys?\b|\bnothing\b)", re.DOTALL)
MADE = "<!-- Made by `make docs` from the source: change it there. -->"


def main() -> None:
    made = pages()
    for path in ROOT.glob(f"{REFERENCE}/*.md"):
        if path.relative_to(ROOT) not in made:
            path.unlink()
    for relative, text in made.items():
        (ROOT / relative).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / relative).write_text(text)


def pages() -> dict[Path, str]:
    """Every page of the reference, by its path from the root of the project."""
    made: dict[Path, str] = {}
    contents = []
    told: set[Any] = set()  # an object is told of once, on the first page that can show it
    for module in public_modules():
        entries = list(module_entries(module, told))
        if entries:
            title = module.__name__
            path = REFERENCE / f"{title.removeprefix('holdfast.')}.md"
            about = docstring(module)
            made[path] = page(f"`{title}`", paragraphs(about), *entries)
            contents.append(f"- [`{title}`]({path.name}): {summary(about)}")
    made[REFERENCE / "calls.md"] = page("Calls", *call_sections())
    contents.append("- [calls](calls.md): every operation over HTTP and RESP.")
    made[REFERENCE / "commands.md"] = page("Commands", *command_sections())
    contents.append("- [commands](commands.md): the command line, with every option.")
    made[REFERENCE / "errors.md"] = page("Errors", *error_sections())
    contents.append(f"- [errors](errors.md): {summary(docstring(errors))}")
    contents.append("- [limits](../limits.md): every number that bounds something.")
    made[REFERENCE / "README.md"] = page("Reference", "\n".join(contents))
    made[Path("docs/limits.md")] = page("Limits", *limit_sections())
    return made


def page(title: str, *paragraphs: str) -> str:
    return "\n\n".join([f"# {title}", MADE, *filter(None, paragraphs)]) + "\n"


# --- operations over the network ----------------------------------------------------------------


def call_sections() -> Iterator[str]:
    """Every operation as the server offers it, and the role that may call it."""
    yield (
        "Every operation can be called over HTTP, with `POST /{space}/layer/operation`, and over "
        "RESP, with `LAYER.OPERATION payload`: see [the server](../howto/server.md). Arguments in "
        "brackets are optional. One value of a list such as `queues` may "
        "also be sent as `queue`. The role is the grant that a user needs."
    )
    for layer in operations.LAYER_CLASSES:
        rows = [
            f"| `{call.name}` | {arguments_of(call)} | {call.declaration.role} | {cell(call.doc)} |"
            for call in operations.OPERATIONS.values()
            if call.layer == layer
        ]
        head = "| operation | arguments | role | what it does |\n|---|---|---|---|"
        yield "\n".join([f"## {layer}\n", head, *rows])


def arguments_of(call: operations.Operation) -> str:
    shown = [
        f"`{field.encode_name}`" if field.required else f"`[{field.encode_name}]`"
        for field in msgspec.structs.fields(call.arguments)
    ]
    return ", ".join(shown)


def cell(text: str) -> str:
    return summary(text).replace("|", "\\|")


# --- the command line ----------------------------------------------------------------------------


def command_sections() -> Iterator[str]:
    """Every command with its help and its options; what most of them have is told once."""
    yield (
        "[The guide](../howto/command-line.md) describes how commands find their store and their "
        "settings, and what their exit codes mean. Most commands take these common options:"
    )
    common = [settings.SETTINGS[name].option() for name in ("data", "url", "token", "space")]
    yield option_table([*common, click.Option(["--json"], is_flag=True, help=JSON_HELP)])
    context = click.Context(cli.main, info_name="holdfast")
    for name in cli.main.list_commands(context):
        command = cli.main.get_command(context, name)
        assert command is not None
        yield from command_entry(context, name, command, {option.name for option in common})
    yield from command_entry(None, "mdzctl", mdzctl.command, {option.name for option in common})


def command_entry(
    parent: click.Context | None, name: str, command: click.Command, common: set[str | None]
) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name)
    if isinstance(command, click.Group):
        yield f"## `{context.command_path}`"
        yield command_help(command)
        for below, each in command.commands.items():
            yield from command_entry(context, below, each, common)
        return
    depth = "##" if parent is not None and parent.command is cli.main else "###"
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"{depth} `{context.command_path}`"
    yield fenced(f"{context.command_path} {pieces}", language="text")
    yield command_help(command)
    options = [each for each in command.params if isinstance(each, click.Option)]
    names = {each.name for each in options if not each.hidden}
    if names & common and not common <= names and name != "serve":
        taken = [f"`--{each}`" for each in ("data", "url", "token", "space") if each in names]
        yield f"Common options: {', '.join(taken)} and `--json`."
    own = [
        each
        for each in options
        if not each.hidden and (each.name not in {*common, "out"} or name == "serve")
    ]
    if own:
        yield option_table([each for each in own if each.name != "out"])


def command_help(command: click.Command) -> str:
    text = inspect.cleandoc(command.help or "")
    before, _, example = text.partition("\n\nExample: ")
    shown = "\n\n".join(" ".join(part.split()) for part in before.split("\n\n"))
    return f"{shown}\n\n{fenced(f'$ {example}', language='console')}"


def option_table(options: Sequence[click.Option]) -> str:
    rows = []
    for option in options:
        names = ", ".join(f"`{each}`" for each in option.opts)
        value = "" if option.is_flag else option.make_metavar(click.Context(cli.main))
        default = option.default if option.show_default else ""
        rows.append((names, code(value), code(str(default or "")), option.help or ""))
    return table("option", "value", "default", "what it does", rows=rows)


# --- modules and their public names ------------------------------------------------------------


def public_modules() -> Iterator[ModuleType]:
    """holdfast, what is directly in it, in contrib/ or in testing/, and the contract of engines.

    Only a module that says what is public, in `__all__`, has public names.
    """
    yield holdfast
    packages = (holdfast, contrib, testing)
    names = [
        module.name
        for package in packages
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]
    for name in sorted([*names, "holdfast.engine.contract"]):
        module = importlib.import_module(name)
        if hasattr(module, "__all__"):
            yield module


def module_entries(module: ModuleType, told: set[Any]) -> Iterator[str]:
    things = {name: getattr(module, name) for name in module.__all__}
    for name, thing in sorted(things.items(), key=lambda item: importance(module, *item)):
        if inspect.isclass(thing) and issubclass(thing, errors.HoldfastError):
            continue  # they have a page of their own
        if inspect.ismodule(thing) or (callable(thing) and thing in told):
            continue
        if inspect.isclass(thing):
            told.add(thing)
            yield class_entry(name, thing, told)
        elif inspect.isfunction(thing):
            told.add(thing)
            yield f"## `{name}`\n\n{function_entry(thing, signature(thing))}"
        else:
            yield f"## `{name}`\n\n{constant_entry(module, name)}"


def importance(module: ModuleType, name: str, thing: Any) -> int:
    """The order of a page: a layer's own class, functions, classes that do something, the rest."""
    layer = module.__name__.removeprefix("holdfast.").capitalize()
    first = [layer, f"Store{layer}"]
    if name in first:
        return first.index(name)
    if inspect.isfunction(thing):
        return 2
    if inspect.isclass(thing):
        return 3 if any(public_members(thing)) else 4
    return 5


def constant_entry(module: ModuleType, name: str) -> str:
    """A value or a type alias, with the comment at the place where the package assigns it."""
    homes = [home for path, home in sys.modules.items() if within(module.__name__, path)]
    for source in map(Source.of, homes):
        for assignment in source.assignments() if name in source.text else ():
            if assignment.name == name:
                shown = fenced(f"{name} = {assignment.value}")
                return "\n\n".join(filter(None, [shown, assignment.comment]))
    return ""


def within(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def class_entry(name: str, cls: type, told: set[Any]) -> str:
    parts = [f"## `{name}`"]
    fields = field_rows(cls)
    constructor = vars(cls).get("__init__")
    if is_ours(constructor):
        parts.append(fenced(signature(constructor, name=name)))
    parts.append(paragraphs(docstring(cls)))
    if fields:
        parts.append(table("field", "type", "default", "meaning", rows=fields))
    for member_name, member in public_members(cls):
        function = underlying(member)
        if function not in told:
            told.add(function)
            head = property_signature if isinstance(member, property) else signature
            parts.append(
                f"### `{name}.{member_name}`\n\n{function_entry(function, head(function))}"
            )
    return "\n\n".join(filter(None, parts))


def public_members(cls: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that Holdfast gives `cls`, its own before those of its bases.

    What a wrapper such as `per_call` has made of another class's method counts as that method.
    A former name of a method is left out.
    """
    seen: set[str] = set()
    for base in cls.__mro__:
        for name, member in vars(base).items():
            function = underlying(member)
            if name.startswith("_") or name in seen or not is_ours(function):
                continue
            seen.add(name)
            if function.__name__ == name or not hasattr(base, function.__name__):
                yield name, member


def underlying(member: Any) -> Any:
    """The function inside a property, a class method, a static method or a wrapper."""
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return inspect.unwrap(function) if inspect.isfunction(function) else function


def is_written(cls: type) -> bool:
    """Returns whether the class is in a source of ours; `per_call` makes some that do not."""
    return within("holdfast", cls.__module__) and hasattr(sys.modules[cls.__module__], cls.__name__)


def is_ours(function: Any) -> bool:
    return inspect.isfunction(function) and within("holdfast", function.__module__)


def function_entry(function: Any, head: str) -> str:
    own = docstring(function)
    text, cost = split_cost(own or layer_docstring(function))
    declaration = getattr(function, "__operation__", None)
    if declaration is not None and declaration.reads and own:
        cost = f"{cost} Changes nothing.".strip()
    return "\n\n".join(filter(None, [fenced(head), paragraphs(text), cost and f"*Cost:* {cost}"]))


def field_rows(cls: type) -> list[tuple[str, ...]]:
    """The fields of a class or the members of an enumeration, with the comments at them."""
    members = getattr(cls, "__members__", {})
    return [
        (f"`{field.name}`", code(field.kind), code(field.value), field.comment)
        for base in reversed(cls.__mro__)
        if is_written(base)
        for field in Source.of(base).assignments()
        if field.kind or field.name in members
    ]


# --- errors and limits -------------------------------------------------------------------------


def error_sections() -> Iterator[str]:
    about, tree = docstring(errors).split("\n\n", 1)
    yield about
    yield (
        "Every error has a `code` for programs, a `status` for HTTP, and usually a `hint` that "
        "says what to do next. `except` with a class also catches all classes below it:"
    )
    yield fenced(tree.rsplit("\n\n", 1)[0], language="text")
    for module in error_modules():
        rows = []
        for node in Source.of(module).tree.body:
            if isinstance(node, ast.ClassDef):
                error = getattr(module, node.name)
                meaning = " ".join(docstring(error).split("\n\n")[0].split())
                row = (f"`{node.name}`", code(error.code), str(error.status), meaning, error.hint)
                rows.append(row)
        yield f"## {docstring(module).splitlines()[0].rstrip('.')}"
        yield table("error", "code", "status", "meaning", "what to do", rows=rows)


def error_modules() -> list[ModuleType]:
    """Returns the modules that define errors, those that all layers share first."""
    names = [each.name for each in pkgutil.iter_modules(errors.__path__) if each.name != "wire"]
    first = ["base", "stores", "server"]
    ordered = [*first, *sorted(set(names) - set(first))]
    return [importlib.import_module(f"holdfast.errors.{name}") for name in ordered]


def limit_sections() -> Iterator[str]:
    yield (
        "Every number that bounds something. They are the same on all engines, and are defined in "
        "`src/holdfast/limits.py`, each with its reason."
    )
    source = Source.of(limits)
    found = {limit.name: limit for limit in source.assignments()}
    for section, names in by_section(source, {limit.name: limit.line for limit in found.values()}):
        rows = [(f"`{n}`", amount(n, getattr(limits, n)), found[n].comment) for n in names]
        yield f"## {section.capitalize()}"
        yield table("limit", "value", "reason", rows=rows)


def by_section(source: Source, lines: dict[str, int]) -> list[tuple[str, list[str]]]:
    """Names by the `# --- title ---` line above them, in the order of the file, none empty."""
    found: dict[str, list[str]] = {}
    for name, line in lines.items():
        titles = re.findall(r"^# --- (.+?) -+$", "\n".join(source.lines[:line]), re.MULTILINE)
        found.setdefault(titles[-1] if titles else "", []).append(name)
    return list(found.items())


def amount(name: str, value: Any) -> str:
    """A limit for people: 131,072 (128 KiB)."""
    if not isinstance(value, int):
        return f"{value}" if isinstance(value, float) else f"`{value!r}`"
    for unit, size in [("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)]:
        if "BYTES" in name and value >= size and value % size == 0:
            return f"{value:,} ({value // size} {unit})"
    return f"{value:,}"


# --- writing Markdown --------------------------------------------------------------------------


def docstring(thing: Any) -> str:
    """Returns the thing's own docstring: not inherited, and not made up by a library."""
    return inspect.cleandoc(
        (vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__) or ""
    )


def layer_docstring(function: Any) -> str:
    """Returns the docstring of an operation that a store first tries on a view."""
    if not hasattr(function, "__operation__"):
        return ""
    owner = getattr(sys.modules[function.__module__], function.__qualname__.partition(".")[0])
    return inspect.getdoc(getattr(owner, function.__name__)) or ""


def summary(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def split_cost(text: str) -> tuple[str, str]:
    """The text, and what the end of its last paragraph says about keys read and written."""
    before, _, last = text.rpartition("\n\n")
    sentences = re.split(r"(?<=\.)\s+", last)
    for number, sentence in enumerate(sentences):
        if (before or number) and COST.match(sentence):
            rest = " ".join(sentences[:number])
            return "\n\n".join(filter(None, [before, rest])), summary(" ".join(sentences[number:]))
    return text, ""


def paragraphs(text: str) -> str:
    """A docstring as Markdown: examples and maps in columns become blocks."""
    return "\n\n".join(paragraph(part) for part in text.split("\n\n"))


def paragraph(text: str) -> str:
    if text.lstrip().startswith(">>> "):
        return fenced(text)
    return fenced(text, language="text") if re.search(r"\S {2,}\S", text) else text


def fenced(text: str, *, language: str = "python") -> str:
    return f"```{language}\n{textwrap.dedent(text)}\n```"


def table(*heads: str, rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines)


def escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    main()
