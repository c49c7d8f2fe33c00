"""The documentation site has every page, and every file that a page shows or links to."""

import importlib.util
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent


def program() -> Any:
    path = ROOT / ".ci/docs_site/docs_site.py"
    spec = importlib.util.spec_from_file_location("docs_site", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(entry: Any) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in listed(part)]


def test_the_site_has_every_page_once_and_what_it_shows(tmp_path: Path) -> None:
    config = program().stage(tmp_path / "site")

    pages = listed(yaml.safe_load(config.read_text())["nav"])
    copied = {
        str(path.relative_to(tmp_path / "site/pages"))
        for path in tmp_path.rglob("*.*")
        if path.is_file() and path != config
    }
    assert sorted(pages) == program().pages()
    assert set(pages) <= copied
    assert {"docs/pictures/diagram-job.svg", "docs/pictures/dashboard-overview-dark.png"} <= copied
