"""Every extra names exactly the packages that its module imports."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CONTRIB = ROOT / "src" / "holdfast" / "contrib"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

# Where the name of a package is not that of its module, and what comes with another package.
PACKAGES = {"opentelemetry": "opentelemetry-api", "sentry_sdk": "sentry-sdk", "werkzeug": "flask"}
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
