"""The reader of pages notices what is not so."""

from pathlib import Path

import pytest

from tests.reader import PageMistake, Reader


def read(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with Reader(page, tmp_path) as reader:
        reader.read()


def console(*lines: str) -> str:
    return "```console\n" + "\n".join(lines) + "\n```\n"


def python(*lines: str) -> str:
    return "```python\n" + "\n".join(lines) + "\n```\n"


def test_files_programs_and_commands_see_each_other(tmp_path: Path) -> None:
    read(
        "Numbers, saved as `numbers/all.txt`:\n\n```text\n1\n2\n```\n"
        + python("lines = open('numbers/all.txt').readlines()")
        + console("$ NAME=sum.txt", "$ echo said > $NAME", "$ cat $NAME", "s...")
        + python("assert lines == ['1\\n', '2\\n']", "assert open('sum.txt').read() == 'said\\n'"),
        tmp_path,
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (python("assert 1 == 1", "assert 1 == 2"), r"page.md.* line 3"),
        (python("import os", "os._exit(0)"), "page.md"),
        (console("$ false"), "ended with 1"),
        (console("$ echo 12 keys", "11 keys"), "prints"),
        (console("$ echo one; echo two", "one"), "prints"),
        (console("$ no-such-program"), "not found"),
        (console("$ holdfast status --data nowhere"), "there is no store"),
        (console("$ holdfast status --data nowhere", "Error: another..."), "prints"),
        (console("$ holdfast serve --limit nonsense=1 &"), "nonsense"),
        (console("$ curl http://127.0.0.1:9966/default/jobs/putt -d '{}'"), "unknown_operation"),
        (console("$ redis-cli -p 9977 JOBS.PUTT '{}'"), "JOBS.PUTT"),
    ],
)
def test_a_page_that_is_wrong_is_a_failure(text: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(PageMistake, match=f"(?s){what}"):
        read(text, tmp_path)


def test_a_failure_that_the_page_shows_is_expected(tmp_path: Path) -> None:
    read(
        console("$ holdfast status --data nowhere", "Error: there is no store in nowhere", "..."),
        tmp_path,
    )


def test_a_server_is_there_for_a_page_that_calls_one(tmp_path: Path) -> None:
    read(
        console(
            '$ curl http://127.0.0.1:9966/default/jobs/put -d \'{"queue": "a", "id": "x"}\'',
            '{"result":"x"}',
            "$ redis-cli -p 9977 JOBS.LENGTH a",
            "1",
            "$ mdzctl stats -s http://localhost:9966",
            "...",
            "$ holdfast jobs list --data data --json | grep -c waiting",
            "1",
        )
        + python(
            "import holdfast",
            "with holdfast.connect('holdfast://127.0.0.1:9977') as client:",
            "    assert client.jobs.length('a') == 1",
        ),
        tmp_path,
    )
