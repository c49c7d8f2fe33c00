"""The output of commands: JSON with fields that stay, tables and bars on a terminal alone."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.output import Output
from holdfast.jobs import NewJob
from tests.cli.conftest import Command
from tests.cli.running import environment
from tests.cli.running import holdfast as run

# The fields of every result. More may come; what is here is relied on, and never goes.
FIELDS: dict[tuple[str, ...], set[str]] = {
    ("status",): {
        *("version", "store", "spaces", "space"),
        *("entities", "tables", "queues", "events", "metrics"),
    },
    ("check",): {"keys", "spaces", "problems"},
    ("inspect",): {"entries", "next"},
    ("space", "list"): {"spaces"},
    ("space", "drop", "other", "--yes"): {"dropped"},
    ("schema", "plan", "shop.yaml"): {"plans"},
    ("schema", "apply", "shop.yaml"): {"plans"},
    ("dump", "shop.Users", "-o", "dump.ndjson"): {"table", "entities", "count"},
    ("load", "shop.Users", "users.jsonl"): {"table", "entities", "count"},
    ("events", "deploy", "events.yaml"): {"deployed"},
    ("events", "send", "event.json"): {"accepted", "errors"},
    ("events", "explain", "event.json"): {"explanations"},
    ("events", "keys"): {"keys", "next"},
    ("events", "count", "v"): {"key", "gross", "distinct", "exact"},
    ("events", "members", "v"): {"members", "next"},
    ("metrics", "list"): {"metrics"},
    ("jobs", "list"): {"queues"},
    ("jobs", "list", "--queue", "emails"): {"jobs"},
    ("jobs", "show", "first"): {"id", "klass", "state", "queue", "data", "history"},
    ("jobs", "retry", "--all"): {"retried"},
    ("jobs", "cancel", "first"): {"canceled"},
    ("dump", "pages", "-o", "rows"): {"table", "rows", "count"},
    ("load", "pages", "rows.ndjson"): {"table", "rows", "refusals"},
    ("user", "list"): {"users"},
    ("user", "add", "ann", "--grant", "read"): {"name", "token"},
}
WITHOUT_A_STORE: dict[tuple[str, ...], set[str]] = {
    ("config", "show"): {"settings", "unknown"},
    ("completion", "bash"): {"shell", "script"},
    ("schema", "check", "shop.yaml"): {"errors", "warnings"},
    ("gen", "-f", "shop.yaml", "-l", "py"): {"language", "output", "source", "warnings"},
    ("backup", "--data", "data", "backup"): {"target", "keys", "bytes"},
    ("restore", "backup", "--data", "restored"): {"target", "keys", "bytes", "problems"},
    ("copy", "data", "copy"): {"keys", "digest", "written", "removed", "spaces"},
    ("user", "add", "ann", "--grant", "read", "--data", "data"): {"name", "token"},
    ("user", "grant", "ann", "--grant", "write", "--data", "data"): {"name", "login", "grants"},
    ("user", "token", "ann", "--data", "data"): {"name", "token"},
    ("user", "remove", "ann", "--data", "data"): {"removed"},
}
PAGES = {
    "table": "pages",
    "attributes": {"title": "string"},
    "index": [{"type": "hash", "attribute": "title"}],
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {
        "shop.yaml": "schema: shop\ntables: {Users: {columns: {name: {type: Text}}}}\n",
        "users.jsonl": '{"id": "a", "properties": {"name": "Ann"}}\n',
        "events.yaml": "view: [{targets: [\"['v']\"], add: who}]\n",
        "event.json": '{"name": "view", "attributes": {"who": "ann"}}',
        "rows.ndjson": '{"title": "a"}\n',
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_results_have_the_fields_that_they_always_had(
    command: Command, store: holdfast.Store, files: Path
) -> None:
    store.space("other")
    store.jobs.put("emails", id="first")
    store.tables.create(PAGES)
    store.entities.deploy((files / "shop.yaml").read_text())

    missing = {
        words: fields - fields_of(command(*words, "--json", cwd=files).json)
        for words, fields in FIELDS.items()
    }

    assert {words: fields for words, fields in missing.items() if fields} == {}


def test_so_have_those_of_commands_that_need_no_server(folder: Path, files: Path) -> None:
    missing = {
        words: fields - fields_of(run(*words, "--json", cwd=files).json)
        for words, fields in WITHOUT_A_STORE.items()
    }

    assert {words: fields for words, fields in missing.items() if fields} == {}


def fields_of(result: Any) -> set[str]:
    return set(result)


def test_a_terminal_gets_a_table_and_a_bar_and_a_file_gets_neither(folder: Path) -> None:
    with holdfast.open(folder, durability="interval") as store:
        list(store.jobs.put_all([NewJob(queue="emails", data=n) for n in range(2_000)]))

    table = on_a_terminal("jobs", "list", "--data", str(folder))
    bar = on_a_terminal("check", "--data", str(folder))
    plain = run("check", "--data", folder)

    assert "─" in table
    assert "━" in bar
    assert "nothing wrong" in bar
    assert (plain.err, "━" in plain.out) == ("", False)


def on_a_terminal(*words: str, columns: int = 100) -> str:
    """Returns what the command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(TERM="xterm", COLUMNS=str(columns)),
    )
    os.close(theirs)
    written = b""
    try:
        while more := os.read(ours, 65_536):
            written += more
    except OSError:  # the other end is closed
        pass
    assert process.wait(60) == 0
    os.close(ours)
    return written.decode()


WORDS = "3 waiting, 0 running, 0 scheduled, 0 stalled, paused for a while"
LONG_ID = "an-id-that-is-longer-than-a-narrow-terminal-" + "x" * 60


def test_no_terminal_is_too_narrow_for_an_id(folder: Path) -> None:
    with holdfast.open(folder) as store:
        store.jobs.put("emails", "SendReceipt", id=LONG_ID)

    for columns in (40, 60, 120, 200):
        written = on_a_terminal(
            *("jobs", "list", "--queue", "emails", "--data", str(folder)), columns=columns
        )
        assert LONG_ID in written
        assert "…" not in written


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (
            60,
            ["emails  3 waiting, 0 running, 0 scheduled, 0 stalled, paused", "        for a while"],
        ),
        (30, ["queue: emails", f"state: {WORDS}"]),
    ],
)
def test_text_in_the_last_column_is_broken_between_words(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    lines: list[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    Output(is_json=False).table(("queue", "state"), [("emails", WORDS)])

    written = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert written[-2:] == lines


def test_numbers_are_to_the_right_and_wide_characters_are_counted() -> None:
    program = (
        "from holdfast.cli.output import Output\n"
        "Output(is_json=False).table(('name', 'jobs'), [('日本', 7), ('ann', 1_000)])"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True
    ).stdout

    assert printed.splitlines() == ["name   jobs", "日本      7", "ann   1,000"]


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_pipe_that_nobody_reads_ends_a_command_quietly(folder: Path, reader: str) -> None:
    with holdfast.open(folder, durability="interval") as store:
        list(store.jobs.put_all([NewJob(queue="emails", data=n) for n in range(2_000)]))

    command = f"{sys.executable} -m holdfast dump all --data {folder}"
    ran = subprocess.run(
        ["bash", "-c", f"{command} | {reader}; echo ${{PIPESTATUS[0]}}"],
        env=environment(),
        capture_output=True,
        text=True,
    )

    assert ran.stdout.splitlines()[-1] == "141"
    assert ran.stderr == ""


def test_the_bar_is_not_among_the_data(folder: Path) -> None:
    with holdfast.open(folder, durability="interval") as store:
        list(store.jobs.put_all([NewJob(queue="emails", data=n) for n in range(2_000)]))

    written = on_a_terminal("dump", "all", "--data", str(folder))

    lines = written.splitlines()
    assert all(line.startswith("{") for line in lines[:-1])
    assert lines[-1].endswith(" keys")


def test_the_bar_of_a_whole_space_has_a_total(folder: Path, tmp_path: Path) -> None:
    with holdfast.open(folder, durability="interval") as store:
        list(store.jobs.put_all([NewJob(queue="emails", data=n) for n in range(2_000)]))
        keys = store.admin.count_keys() or 0

    written = on_a_terminal("dump", "all", "--data", str(folder), "-o", str(tmp_path / "dump"))

    assert f"of {keys:,} keys" in written
    assert len((tmp_path / "dump").read_bytes().splitlines()) == keys + 1  # and the head


@pytest.mark.parametrize("words", ["--help", "--version", "jobs --help", "config show"])
def test_a_full_disk_is_said_in_one_line(words: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "holdfast", *words.split()],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert ran.returncode == 1
    assert re.fullmatch(r"Error: .*no space left on device\n", ran.stderr)


def test_times_have_a_zone_and_one_job_is_no_jobs(command: Command, store: holdfast.Store) -> None:
    store.jobs.put("emails", id="a")
    store.jobs.pop("emails", worker="w")
    store.jobs.fail("a", "w", "timeout", "too late")

    shown = command("jobs", "show", "a").out
    retried = command("jobs", "retry", "a").out

    assert re.search(r"^  \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ put", shown, re.MULTILINE)
    assert retried == "1 job is back in its queue\n"


def test_a_mistake_of_ours_is_no_error_of_the_users(folder: Path) -> None:
    (folder / "data.mdb").write_bytes(b"not a store" * 1_000)

    result = run("status", "--data", folder, "--json")

    assert result.code == 1
    assert result.error["code"] in ("store_damaged", "unsupported_format")


def test_standard_files_that_are_closed_are_not_taken_for_those_of_the_store(folder: Path) -> None:
    program = f"{sys.executable} -m holdfast check --data {folder}"
    closed = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]
    script = "; ".join(f"{program} {each}; echo $? >&3" for each in closed)

    ran = subprocess.run(
        ["bash", "-c", f"exec 3>&1 >/dev/null; {script}"],
        env=environment(),
        capture_output=True,
        text=True,
    )

    assert (ran.stdout.split(), ran.stderr) == (["0"] * len(closed), "")


HOSTILE = "a\x1b]52;c;cm0=\x07\x9b2J\x7f\u202etxt.exe"


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["words", "json"])
def test_stored_text_gives_no_orders_to_a_terminal(
    command: Command, store: holdfast.Store, as_json: tuple[str, ...]
) -> None:
    store.jobs.put("emails", HOSTILE, id="first", data={HOSTILE: HOSTILE})
    store.jobs.pop("emails", HOSTILE)
    store.jobs.fail("first", HOSTILE, HOSTILE, HOSTILE)
    lists = ("jobs", "list", "--queue", "emails"), ("jobs", "show", "first"), ("jobs", "list")

    written = "".join(command(*words, *as_json).out for words in lists)
    refused = command("jobs", "show", HOSTILE, *as_json).err

    assert r"a\u001b]52" in written
    assert r"\u009b2J\u007f\u202e" in written
    assert [each for each in written + refused if not each.isprintable() and each != "\n"] == []
