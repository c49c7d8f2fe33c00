"""Arrows point down: a package imports what pyproject.toml lists for it, and nothing else.

And a file holds one idea: no file is longer than a reader takes in, and no function than a screen.
"""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

from holdfast.defaults import LAYERS

ROOT = Path(__file__).parent.parent
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["holdfast"]
MAY_IMPORT: dict[str, list[str]] = RULES["imports"]
DRIVERS: dict[str, str] = RULES["drivers"]

# What `import holdfast` may not load: each costs a user more time than the whole of Holdfast.
HEAVY = {
    *{"asyncio", "http.server", "multiprocessing", "unittest", "pydoc", "urllib.request"},
    *{"bson", "pymongo", "uvicorn", "uvloop", "yaml"},
}
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70
# One list for each fact, read from top to bottom; and what a generator wrote, nobody reads.
MAY_BE_LONG = ("src/holdfast/limits.py", "src/holdfast/client/generated/")
LAYER_PACKAGES = {f"holdfast.{layer}" for layer in LAYERS}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    # Without a cache: reading the source takes a fraction of a second, and leaves nothing behind.
    return grimp.build_graph("holdfast", include_external_packages=True, cache_dir=None)


def test_every_module_is_listed(graph: grimp.ImportGraph) -> None:
    unlisted = [module for module in modules(graph) if package_of(module) is None]

    assert unlisted == [], "list it in [tool.holdfast.imports] with what it may import"


def test_a_package_imports_only_the_packages_beneath_it(graph: grimp.ImportGraph) -> None:
    wrong = [
        f"{importer} imports {imported}"
        for importer in modules(graph)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if imported.startswith("holdfast.") and not may_import(importer, imported)
    ]

    assert wrong == []


def test_a_driver_is_imported_by_its_engine_only(graph: grimp.ImportGraph) -> None:
    wrong = [
        f"{importer} imports {driver}"
        for driver, package in DRIVERS.items()
        if driver in graph.modules
        for importer in sorted(graph.find_modules_that_directly_import(driver))
        if not any(within(f"holdfast.{each}", importer) for each in package.split())
    ]

    assert wrong == []


def test_only_the_server_and_the_command_line_know_the_forms_of_the_originals() -> None:
    knowing = {
        package
        for package, allowed in MAY_IMPORT.items()
        if any(within("compat", name) for name in allowed)
    }

    # `holdfast.meduza` is the name under which programs of Meduza import `compat.meduza.client`.
    assert knowing == {"cli", "meduza", "server"}


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("holdfast.jobs.queues", "holdfast.tables"),
        ("holdfast.jobs", "holdfast.engine.lmdb"),
        ("holdfast.engine.contract", "holdfast.engine.lmdb"),
        ("holdfast.engine.lmdb", "holdfast.keys"),
        ("holdfast.keys", "holdfast.engine.contract"),
        ("holdfast.errors", "holdfast.limits"),
        ("holdfast.expiry", "holdfast.store"),
    ],
)
def test_the_rules_catch_an_arrow_that_points_up_or_sideways(importer: str, imported: str) -> None:
    assert not may_import(importer, imported)


def test_importing_holdfast_loads_no_optional_driver_and_nothing_heavy() -> None:
    loaded = loaded_by("import holdfast")

    optional = set(DRIVERS) - {"lmdb"}
    assert (optional | HEAVY).intersection(loaded) == set()


def test_the_core_loads_little_beyond_msgspec() -> None:
    loaded = set(loaded_by("import holdfast; holdfast.open")) - set(loaded_by("import msgspec"))

    ours = {name for name in loaded if within("holdfast", name)}
    used_later = {"hashlib", "pathlib", "urllib.parse", "socket", "logging", "json", "tempfile"}
    assert loaded & (used_later | {"lmdb", "holdfast.engine.lmdb", "holdfast.store_copy"}) == set()
    assert len(ours) <= 32, "each module takes about half a millisecond: load it when it is used"


def test_importing_holdfast_loads_no_layer() -> None:
    assert LAYER_PACKAGES.intersection(loaded_by("import holdfast")) == set()


@pytest.mark.parametrize(
    ("used", "loaded"),
    [
        ("store.jobs.length('q')", {"jobs"}),
        ("store.transact(lambda tx: tx.jobs.length('q'))", {"jobs"}),
        ("store.metrics.define({'m': {}})", {"metrics"}),
        ("store.entities", {"entities"}),
        ("store.tables", {"tables"}),
        ("store.events", {"events"}),
        ("store.space('other')", set()),
        ("store.sweep()", set()),
    ],
)
def test_a_layer_is_loaded_when_it_is_used(used: str, loaded: set[str], tmp_path: Path) -> None:
    program = f"import holdfast; store = holdfast.open({str(tmp_path)!r}); {used}; store.close()"

    found = LAYER_PACKAGES.intersection(loaded_by(program))

    assert found == {f"holdfast.{layer}" for layer in loaded}


def test_what_a_layer_removes_is_named_after_it() -> None:
    foreign = [
        kind
        for layer in LAYERS
        for kind in importlib.import_module(f"holdfast.{layer}").REMOVERS
        if not kind.startswith(f"{layer}.")
    ]

    assert foreign == [], "a sweep finds the layer to load by the kind's first word"


def test_no_file_is_too_long() -> None:
    lines = {name: len(text.splitlines()) for name, text in sources().items()}

    too_long = [
        f"{name} has {number} lines"
        for name, number in lines.items()
        if number > MAX_FILE_LINES and not name.startswith(MAY_BE_LONG)
    ]
    assert too_long == [], "split it by topic"


def test_no_function_is_longer_than_a_screen() -> None:
    too_long = [
        f"{name}: {function.name} has {length} lines"
        for name, text in sources().items()
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (function.end_lineno or 0) - function.lineno + 1) > MAX_FUNCTION_LINES
    ]

    assert too_long == [], "fold it"


def sources() -> dict[str, str]:
    """Returns the text of every Python file of the package and its tests."""
    files = [file for folder in ("src", "tests") for file in (ROOT / folder).rglob("*.py")]
    return {str(file.relative_to(ROOT)): file.read_text() for file in sorted(files)}


def loaded_by(program: str) -> list[str]:
    """The names of all modules that are there after `program`."""
    return subprocess.run(
        [sys.executable, "-c", f"{program}; import sys; print(*sys.modules)"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()


def modules(graph: grimp.ImportGraph) -> list[str]:
    return sorted(module for module in graph.modules if within("holdfast", module))


def may_import(importer: str, imported: str) -> bool:
    here, there = package_of(importer), package_of(imported)
    return here is not None and (here == there or there in MAY_IMPORT[here])


def package_of(module: str) -> str | None:
    """Returns the longest listed name that holds `module`: engine/contract.py has its own."""
    name = module.removeprefix("holdfast.")
    return max((package for package in MAY_IMPORT if within(package, name)), key=len, default=None)


def within(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")
