"""The programs in examples/ print what their READMEs say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forking import IMPORT_PATH
from tests.pages import ROOT, blocks, commands

EXAMPLES = sorted(readme.parent for readme in ROOT.glob("examples/*/README.md"))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_prints_what_its_readme_says(folder: Path, tmp_path: Path) -> None:
    readme = folder / "README.md"
    [command] = commands(readme)
    [expected] = [block.text for block in blocks(readme) if block.language == "text"]

    ran = subprocess.run(
        [sys.executable, "-W", "error", *command.split()[1:]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": IMPORT_PATH},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert ran.stderr == ""
    assert ran.stdout == expected


def test_every_example_is_in_the_list() -> None:
    listed = (ROOT / "examples" / "README.md").read_text()

    assert [each.name for each in EXAMPLES if f"{each.name}/README.md" not in listed] == []
