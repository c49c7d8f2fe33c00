"""`put` is typed by the task's own signature: mypy and pyright accept and refuse the same calls."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CALLS = Path(__file__).with_name("typed_calls.py")


def refused() -> set[int]:
    lines = CALLS.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}


def test_mypy_refuses_the_wrong_calls_and_no_others() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", str(CALLS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    said = re.findall(rf"{CALLS.name}:(\d+): error", checked.stdout)
    assert {int(number) for number in said} == refused(), checked.stdout


def test_pyright_refuses_the_wrong_calls_and_no_others() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", str(CALLS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    found = json.loads(checked.stdout)["generalDiagnostics"]
    said = {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}
    assert said == refused(), json.dumps(found, indent=1)
