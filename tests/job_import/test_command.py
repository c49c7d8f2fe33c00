"""`holdfast jobs import`: on a folder and on a server, with what it says."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Command, command, folder
from tests.job_import.conftest import OriginalQless, restore
from tests.job_import.test_qless import fill

__all__ = ["command", "folder"]


def test_a_queue_is_imported_and_verified(
    command: Command, original: OriginalQless, redis_url: str
) -> None:
    fill(original)

    first = command("jobs", "import", redis_url)
    again = command("jobs", "import", redis_url, "--json").json

    assert re.fullmatch(
        r"imported 10 jobs and 1 recurring job, verified, digest [0-9a-f]{16}\n", first.out
    )
    assert (again["imported"], again["present"]) == (0, 10)
    assert again["digest"][:16] in first.out


@pytest.mark.parametrize("command", ["folder"], indirect=True)
def test_a_mapping_file_names_the_tasks(command: Command, redis_url: str, tmp_path: Path) -> None:
    restore(redis_url, "rq")
    mapping = tmp_path / "tasks.json"
    mapping.write_text(json.dumps({"app.send": {"name": "send", "parameters": ["to"]}}))

    done = command("jobs", "import", redis_url.replace("redis", "rq", 1), "--tasks", mapping)

    assert "imported 6 jobs, left out 1, verified" in done.out


@pytest.mark.parametrize("command", ["folder"], indirect=True)
def test_mistakes_are_explained(command: Command, redis_url: str) -> None:
    assert "is not a URL of redis://" in command("jobs", "import", "ftp://there").err
    assert "jobs of Qless keep their class" in (
        command("jobs", "import", redis_url, "--tasks", "file").err
    )
    assert "no Redis answers" in command("jobs", "import", "redis://127.0.0.1:1").err
