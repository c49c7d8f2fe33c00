"""mypy sees the types of the store on both clients and in a batch."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

SNIPPET = """
import holdfast
from holdfast.entities import Model, column

class User(Model, schema="shop", table="Users"):
    name: str = column(required=True)

def sync(store: holdfast.Store) -> None:
    client = holdfast.connect("holdfast://localhost")
    reveal_type(store.jobs.get("a"))
    reveal_type(client.jobs.get("a"))
    reveal_type(client.jobs.pop("q", "w"))
    reveal_type(client.space("x").tables.get("t"))
    reveal_type(client.entities.get_one(User, "a"))
    reveal_type(client.entities.get_raw("t", ["a"]))
    reveal_type(client.events.send({"name": "x"}))
    reveal_type(client.metrics.rate("edits"))
    with client.batch() as batch:
        reveal_type(batch.jobs.put("q"))
        reveal_type(batch.entities.get_one(User, "a"))

async def awaited() -> None:
    async with holdfast.aio.connect("holdfast://localhost") as client:
        reveal_type(await client.jobs.get("a"))
        reveal_type(await client.entities.get_one(User, "a"))
        reveal_type(await client.metrics.try_incr([], {}))
        await client.jobs.put(5)
        await client.jobs.putt("q")
"""
EXPECTED = [
    "holdfast.jobs.records.Job | None",
    "holdfast.jobs.records.Job | None",
    "list[holdfast.jobs.records.Job]",
    "holdfast.tables.records.Page",
    "User | None",
    "list[holdfast.entities.messages.Entity]",
    "holdfast.events.records.SendReply",
    "holdfast.metrics.records.Rate",
    "holdfast.client.batches.Handle[str]",
    "holdfast.client.batches.Handle[snippet.User | None]",
    "holdfast.jobs.records.Job | None",
    "User | None",
    "holdfast.metrics.records.BatchResult",
]


def test_mypy_sees_the_types_of_the_store_and_finds_mistakes(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty"]
    command += ["--cache-dir", str(ROOT / ".mypy_cache")]  # where `.ci/check` left what it found
    command += ["--config-file", "/dev/null", str(tmp_path / "snippet.py")]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stdout.splitlines()
    notes = [line.split('"')[1] for line in lines if "Revealed type" in line]
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    assert [note.removeprefix("snippet.") for note in notes] == EXPECTED, done.stdout
    assert any('incompatible type "int"; expected "str"' in error for error in errors)
    assert any('"AsyncJobs" has no attribute "putt"' in error for error in errors)
