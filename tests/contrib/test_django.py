"""Django's tasks, cache, sessions and limits on a real project, in a process of its own."""

import os
import subprocess
import sys

from tests.contrib.django_checks import CHECKS
from tests.forking import IMPORT_PATH


def test_tasks_cache_sessions_and_limits_of_a_real_project_keep_their_promises() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.contrib.django_checks"],
        env=os.environ | {"PYTHONPATH": IMPORT_PATH},
        capture_output=True,
        text=True,
        timeout=300,
    )

    kept = [check.__name__.replace("_", " ") for check in CHECKS]
    assert ran.stdout.splitlines() == kept, ran.stderr
