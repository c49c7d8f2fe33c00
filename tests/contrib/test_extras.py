"""Every extra names exactly the packages that its module imports."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CONTRIB = ROOT / "src" / "holdfast" / "contrib"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CORE = {re.split(r"[^\w-]", each)[0] for each in PROJECT["dependencies"]}

# Where the name of a package is not that of its module, and what comes with another package.
PACKAGES = {
    "bson": "pymongo",
    "markupsafe": "jinja2",
    "opentelemetry": "opentelemetry-api",
    "sentry_sdk": "sentry-sdk",
    "werkzeug": "flask",
    "yaml": "pyyaml",
}
MODULES = {
    "django": "django",
    "fastapi": "fastapi",
    "flask": "flask",
    "opentelemetry": "otel",
    "sentry": "sentry",
    "starlette": "starlette",
}


def test_every_module_has_an_extra() -> None:
    there = {path.stem for path in CONTRIB.glob("*") if path.suffix in ("", ".py")}

    assert there - {"__init__", "__pycache__", "app_store"} == set(MODULES)


@pytest.mark.parametrize(("module", "extra"), MODULES.items())
def test_an_extra_names_what_its_module_imports(module: str, extra: str) -> None:
    place = CONTRIB / module
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    imported = {PACKAGES.get(name, name) for file in files for name in _imports(file)}

    named = {re.split(r"[^\w-]", each)[0] for each in EXTRAS[extra]}
    assert named - {"django-tasks"} == imported  # it is imported by name: Django 6 has it


@pytest.mark.parametrize(
    ("extra", "places"),
    [
        ("limits", ["limits_storage.py"]),
        ("meduza", ["entities"]),
        ("postgres", ["engine/postgres"]),
        ("server", ["server", "dashboard", "cli/serve.py"]),
        ("valkey", ["engine/valkey"]),
    ],
)
def test_an_extra_names_what_its_part_imports_beyond_the_core(
    extra: str, places: list[str]
) -> None:
    folders = [ROOT / "src" / "holdfast" / place for place in places]
    files = [file for each in folders for file in (each.rglob("*.py") if each.is_dir() else [each])]
    imported = {PACKAGES.get(name, name) for file in files for name in _imports(file)}

    named = {re.split(r"[^\w-]", each)[0] for each in EXTRAS[extra]}
    assert named == imported - CORE


def test_the_extra_of_strategies_names_what_they_import() -> None:
    imported = _imports(ROOT / "src" / "holdfast" / "testing" / "strategies.py")

    assert {re.split(r"[^\w-]", each)[0] for each in EXTRAS["testing"]} == imported


def _imports(file: Path) -> set[str]:
    """The packages that a module imports, apart from Python's and our own."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found - {"holdfast"} - sys.stdlib_module_names
