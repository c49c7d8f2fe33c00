"""The page of guarantees names, for each promise, what tries to break it."""

import re
from importlib import import_module
from pathlib import Path

from tests.campaign.__main__ import PARTS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/guarantees.md").read_text()
ROWS = re.findall(r"^\| (\[.*|generated.*) \| (.*) \|$", PAGE, re.MULTILINE)


def test_every_test_that_tries_to_break_a_promise_exists() -> None:
    missing = []
    for _, tries in ROWS:
        folder = Path()
        for name in re.findall(r"`([^`]+\.py)`", tries):
            file = Path(name) if "/" in name else folder / name
            folder = file.parent
            if not (ROOT / file).is_file():
                missing.append(str(file))

    assert missing == []


def test_every_promise_has_something_that_tries_to_break_it() -> None:
    untried = [promise for promise, tries in ROWS if not re.search(r"reliability\.md#|`", tries)]

    assert len(ROWS) > 15
    assert untried == []


def test_every_part_of_the_campaign_tries_to_break_a_promise() -> None:
    tried = set(re.findall(r"\(reliability\.md#([^)]+)\)", PAGE))

    for part in PARTS:
        title = (import_module(f"tests.campaign.{part}").__doc__ or "").splitlines()[0].rstrip(".")
        assert title.lower().replace(" ", "-") in tried, part
