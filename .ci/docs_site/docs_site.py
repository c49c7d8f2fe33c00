"""Builds the documentation site into build/site: `make docs-site`.

The pages link to each other and to files of the clone as they are read on a code host, so the site
is built from a copy with the same layout: the written pages, and what they link to. The
configuration is mkdocs.yml; the navigation is made here, so that no page is forgotten.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
STAGE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"
PAGES = ("*.md", "docs/**/*.md", "benchmarks/*.md", "contrib/**/*.md", "examples/**/*.md")

_LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)|(?:src|srcset|href)=\"([^\"#:]+)\"")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_FIRST = ["README.md", "docs/why/when-to-use.md", "docs/why/how-it-works.md", "docs/tutorial.md"]


def pages() -> list[str]:
    """The paths of all pages, below the root."""
    return sorted({str(p.relative_to(ROOT)) for pattern in PAGES for p in ROOT.glob(pattern)})


def linked_files(page: str) -> list[str]:
    """The files other than pages that a page links to or shows; a folder is its README, if any."""
    text = _FENCE.sub("", (ROOT / page).read_text())
    found = [(ROOT / page).parent / (one or two) for one, two in _LINK.findall(text)]
    files = [path.resolve() for path in found if path.is_file() and path.suffix != ".md"]
    return [str(path.relative_to(ROOT)) for path in files if path.is_relative_to(ROOT)]


def navigation(listed: list[str]) -> list[Any]:
    """The menu: what people look for first, then all else by folder."""

    def below(folder: str, *, migrates: bool = False) -> list[str]:
        return [
            page
            for page in listed
            if page.startswith(folder)
            and page not in _FIRST
            and (page.startswith(("docs/howto/from-", "docs/howto/migrate")) == migrates)
        ]

    moves = below("docs/howto/", migrates=True)
    groups: dict[str, list[str]] = {
        "How to": below("docs/howto/"),
        "Move to Holdfast": sorted(moves, key=lambda page: "migrate" not in page),
        "Reference": below("docs/reference/"),
        "Why": below("docs/why/"),
        "Examples": below("examples/"),
        "Run it": below("contrib/"),
    }
    placed = {*_FIRST, *(page for group in groups.values() for page in group)}
    rest = [page for page in listed if page not in placed]
    return [*_FIRST, *({title: group} for title, group in groups.items()), {"More": rest}]


def stage(target: Path) -> Path:
    """Copies the pages with what they link to into `target`; returns the configuration."""
    shutil.rmtree(target, ignore_errors=True)
    listed = pages()
    for name in sorted({*listed, *(file for page in listed for file in linked_files(page))}):
        (target / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target / "pages" / name)
    config = target / "mkdocs.yml"
    inherited = {"INHERIT": str(ROOT / "mkdocs.yml"), "docs_dir": "pages"}
    config.write_text(yaml.safe_dump({**inherited, "nav": navigation(listed)}, sort_keys=False))
    return config


if __name__ == "__main__":
    words = ["build", "--strict", "--quiet", "--site-dir", str(SITE)]
    words += ["--config-file", str(stage(STAGE))]
    # Material announces its successor at every build; docs/why/dependencies.md speaks of it.
    told = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    sys.exit(subprocess.call([sys.executable, "-m", "mkdocs", *words], env=told))
