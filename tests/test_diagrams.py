"""The diagrams of the documentation are drawn from their texts."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def program() -> Any:
    spec = importlib.util.spec_from_file_location("diagrams", ROOT / ".ci/diagrams/diagrams.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_what_their_texts_say() -> None:
    drawn = program().drawn()

    assert len(drawn) == 3
    for path, content in drawn.items():
        assert path.read_text() == content, "run: make docs"
        assert ET.fromstring(content).tag.endswith("svg")


@pytest.mark.parametrize("line", ["circle a 0 0 A", "arrow a b", "box a 0"])
def test_a_line_that_can_not_be_drawn_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"no title|not there|not enough values"):
        program().read(f"box x 0 0 X\n{line}")
