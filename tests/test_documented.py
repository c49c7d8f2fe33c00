"""Whatever a user can meet appears in docs/: public names, operations, errors and limits."""

import importlib
import inspect
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast import errors, limits
from holdfast.defaults import LAYERS
from holdfast.entities.types import COLUMN_KINDS
from holdfast.metrics.kinds import KINDS
from holdfast.tables.policies import MEMBERS, POLICIES
from holdfast.tables.types import ATTRIBUTE_KINDS

ROOT = Path(__file__).parent.parent
DOCS = {page.relative_to(ROOT): page.read_text() for page in sorted(ROOT.glob("docs/**/*.md"))}


def test_the_reference_says_what_the_source_says() -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "reference"))["pages"]()

    generated = {path: text for path, text in DOCS.items() if path in made or is_reference(path)}
    assert generated == made, "run `make docs`"


def test_every_public_name_is_documented() -> None:
    assert undocumented(getattr(holdfast, "__all__", [])) == []


def test_every_error_is_documented_with_its_code() -> None:
    classes = [error for error in vars(errors).values() if is_error(error)]

    assert undocumented([error.__name__ for error in classes]) == []
    assert undocumented([error.code for error in classes]) == []


def test_every_limit_is_documented_with_its_reason() -> None:
    rows = DOCS[Path("docs/limits.md")].splitlines()

    names = [name for name in vars(limits) if name.isupper()]
    without = [name for name in names if not any(row.startswith(f"| `{name}` |") for row in rows)]
    assert without == []
    assert [row for row in rows if row.endswith("|  |")] == []


@pytest.mark.parametrize("layer", LAYERS)
def test_every_operation_of_a_layer_is_documented(layer: str) -> None:
    module = importlib.import_module(f"holdfast.{layer}")
    classes = [getattr(module, name) for name in module.__all__]
    operations = [
        f"{cls.__name__}.{name}"
        for cls in classes
        if inspect.isclass(cls) and cls.__name__ == layer.capitalize()
        for name, _ in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    ]

    assert operations
    assert undocumented(operations) == []


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_has_a_guide_and_words_in_the_glossary(layer: str) -> None:
    assert Path(f"docs/howto/{layer}.md") in DOCS
    assert f"## {layer.capitalize()}\n" in DOCS[Path("docs/glossary.md")]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("models.md", [rf"\b{name}\b" for name in COLUMN_KINDS]),
        ("tables.md", [rf"`{name}`" for name in ATTRIBUTE_KINDS]),
        ("tables.md", [rf'"type": "{name}"' for name in POLICIES]),
        ("tables.md", [rf'"{name}": ' for name in MEMBERS]),
        ("metrics.md", [rf"\b{name}" for name in KINDS]),
    ],
    ids=["column types", "attribute types", "policies", "members of policies", "kinds of metrics"],
)
def test_the_guide_of_a_layer_names_every_entry_of_its_tables(page: str, names: list[str]) -> None:
    text = DOCS[Path("docs/howto") / page]

    assert names
    assert [name for name in names if not re.search(name, text)] == []


def test_every_dependency_has_its_reason() -> None:
    headings = re.findall(r"^### (.*)", DOCS[Path("docs/why/dependencies.md")], re.MULTILINE)
    explained = re.findall(r"[\w.-]+", " ".join(headings).lower())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *(name for extra in extras for name in extra)]

    names = [re.split(r"[^\w.-]", requirement)[0].lower() for requirement in requirements]
    assert [name for name in names if name not in explained] == []


def undocumented(names: list[str]) -> list[str]:
    everything = "\n".join(DOCS.values())
    return [name for name in names if f"`{name}`" not in everything]


def is_reference(path: Path) -> bool:
    return path.parent == Path("docs/reference")


def is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, errors.HoldfastError)
