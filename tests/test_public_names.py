"""The names of `holdfast` itself: what a user sees who imports it."""

import subprocess
import sys

import holdfast
from holdfast.version import VERSION


def test_the_version_is_where_people_look_for_it() -> None:
    assert holdfast.__version__ == VERSION


def test_dir_and_completion_show_the_public_names_before_they_are_used() -> None:
    program = "import holdfast; print(*dir(holdfast))"

    shown = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()

    assert {name for name in shown if not name.startswith("__")} == {
        name for name in holdfast.__all__ if not name.startswith("__")
    }


def test_every_public_name_exists() -> None:
    assert all(getattr(holdfast, name) for name in holdfast.__all__)
