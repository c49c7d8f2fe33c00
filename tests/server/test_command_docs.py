"""Descriptions of the server's commands, and answers to clients that take it for Redis."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from typing import Any

import bson
import hiredis
import pytest
import redis

from holdfast.operations import OPERATIONS
from tests.server.running import DEADLINE, RawClient, Server

REDIS_CLI = "redis-cli"


def pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def test_every_command_is_listed_counted_and_described(client: RawClient) -> None:
    count = client.ask("COMMAND", "COUNT")
    listed = client.ask("COMMAND", "LIST")
    infos = client.ask("COMMAND")
    docs = pairs(client.ask("COMMAND", "DOCS"))

    assert len(listed) == len(infos) == len(docs) == count
    assert {name.encode() for name in OPERATIONS} < set(listed)
    assert sorted(info[0] for info in infos) == sorted(listed) == sorted(docs)
    assert all(pairs(doc)[b"summary"] for doc in docs.values())
    assert {pairs(doc)[b"group"] for doc in docs.values()} >= {b"jobs", b"connection", b"qless"}


def test_the_arguments_of_an_operation_are_described_as_words(client: RawClient) -> None:
    doc = pairs(pairs(client.ask("COMMAND", "DOCS", "jobs.get_result", "JOBS.POP"))[b"jobs.pop"])

    words = [pairs(word) for word in doc[b"arguments"]]
    assert [word[b"name"] for word in words[:3]] == [b"queue", b"worker", b"count"]
    assert b"flags" not in words[0]
    assert words[2][b"flags"] == [b"optional"]


def test_info_tells_arity_and_flags_and_nothing_of_what_is_not_there(client: RawClient) -> None:
    put, get, echo, none = client.ask("COMMAND", "INFO", "jobs.put", "JOBS.GET", "echo", "nope")

    assert put[:3] == [b"jobs.put", -2, [b"write"]]
    assert get[:3] == [b"jobs.get", -2, [b"readonly"]]
    assert echo[:2] == [b"echo", 2]
    assert none is None
    assert len(put) == 10


@pytest.mark.parametrize(
    "name",
    [b"\xff", "job\u017f.put".encode(), "\u017felect".encode()],
    ids=["bytes", "put", "select"],
)
def test_a_name_of_other_letters_is_no_command(client: RawClient, name: bytes) -> None:
    """The capital of a long s (U+017F) is an S of ASCII."""
    assert client.ask("COMMAND", "INFO", name) == [None]
    assert client.ask("COMMAND", "DOCS", name) == []
    assert client.ask("COMMAND", "LIST", "FILTERBY", "PATTERN", name) == []
    assert "Invalid command" in str(client.ask("COMMAND", "GETKEYS", name))


def test_the_list_can_be_filtered(client: RawClient) -> None:
    puts = client.ask("COMMAND", "LIST", "FILTERBY", "PATTERN", "*.PUT")
    events = client.ask("COMMAND", "LIST", "FILTERBY", "ACLCAT", "@events")

    assert b"jobs.put" in puts
    assert all(name.endswith(b".put") for name in puts)
    assert all(name.startswith(b"events.") for name in events)
    assert "syntax error" in str(client.ask("COMMAND", "LIST", "FILTERBY", "MOON"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("GETKEYS", "jobs.put", "emails"), "The command has no key arguments"),
        (("GETKEYS", "nope"), "Invalid command specified"),
        (("GETKEYS",), "Invalid command specified"),
        (("DANCE",), "unknown subcommand 'DANCE'"),
    ],
)
def test_an_unknown_name_is_an_error(client: RawClient, words: tuple[str, ...], said: str) -> None:
    assert said in str(client.ask("COMMAND", *words))


def test_redis_py_reads_the_descriptions(server: Server) -> None:
    with redis.Redis(port=server.resp_port, protocol=2) as client:
        described = client.command()

        assert described["jobs.put"]["flags"] == ["write"]
        assert client.command_count() == len(described)


# --- redis-cli -----------------------------------------------------------------------------------


def test_redis_cli_explains_our_commands(server: Server) -> None:
    said = subprocess.run(
        [REDIS_CLI, "-p", str(server.resp_port)],
        input="help jobs.get\nhelp space\nhelp @qless\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    ).stdout

    said = re.sub(r"\x1b\[\d*m", "", said)
    assert "JOBS.GET id" in said
    assert "summary: Returns the job, or None if it does not exist." in said
    assert "SPACE [name]" in said
    assert "QLESS command now [argument [argument ...]]" in said


def test_redis_cli_completes_and_hints_our_commands(server: Server) -> None:
    """Typed at a terminal: a tab completes the name, and what follows is shown in grey."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "HOME": "/nonexistent"}
    process = subprocess.Popen(
        [REDIS_CLI, "-p", str(server.resp_port)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
    )
    os.close(slave)
    try:
        until(master, b"> ")
        os.write(master, b"jobs.heartb\t")
        completed = until(master, b"JOBS.HEARTBEAT")
        os.write(master, b" ")
        hinted = until(master, b"id worker")
    finally:
        process.kill()
        process.wait()
        os.close(master)

    assert b"JOBS.HEARTBEAT" in completed
    assert b"id worker" in hinted


def until(terminal: int, wanted: bytes) -> bytes:
    """Returns what the program has written when `wanted` is among it."""
    said = b""
    deadline = time.monotonic() + DEADLINE
    while wanted.lower() not in said.lower():
        readable, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert readable, said
        said += os.read(terminal, 4096)
    return said


# --- who takes it for Redis ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("GET", "a"), "GET is Meduza's here and takes one BSON document. There are no plain keys"),
        (("get", "user:1"), "ENTITIES"),
        (("GET", "a", "b"), "ENTITIES"),
        (("GET", ""), "ENTITIES"),
        (("GET", "schl\u00fcssel"), "ENTITIES"),
        (("DEL", "a"), "DEL is Meduza's here"),
        (("DEL", "a", "b"), "DEL is Meduza's here"),
        (("SET", "a", "1"), "There are no plain keys here"),
        (("HSET", "a", "b", "c"), "There are no plain keys here"),
        (("INCR", "a"), "METRICS.INCR"),
        (("LPUSH", "q", "1"), "JOBS.PUT"),
        (("XADD", "s", "*", "a", "1"), "JOBS.PUT"),
        (("SADD", "s", "1"), "EVENTS.SEND"),
        (("ZADD", "s", "1", "a"), "EVENTS.TOP"),
        (("EXPIRE", "a", "1"), "ttl"),
        (("WATCH", "a"), "MULTI"),
        (("BGSAVE",), "ADMIN.BACKUP"),
        (("PIGN",), "Did you mean PING?"),
        (("job.put", "x"), "Did you mean JOBS.PUT?"),
    ],
)
def test_a_user_of_redis_is_told_what_to_use(
    client: RawClient, words: tuple[str, ...], said: str
) -> None:
    refused = client.ask(*words)

    assert isinstance(refused, hiredis.ReplyError)
    assert str(refused).startswith("ERR ")
    assert said in str(refused)
    assert client.ask("PING") == b"PONG"


def test_every_operation_that_is_advised_exists() -> None:
    from holdfast.server.commands import COMMANDS
    from holdfast.server.redis_hints import _ADVICE

    named = {name for text in _ADVICE.values() for name in re.findall(r"[A-Z]+\.[A-Z]+", text)}

    assert {name for name in named if name.encode() not in COMMANDS} == set()
    assert len(named) > 8


def test_in_a_batch_it_is_refused_as_any_other_mistake(client: RawClient) -> None:
    client.ask("MULTI")

    assert "Meduza" in str(client.ask("GET", "a"))
    assert str(client.ask("EXEC")).startswith("EXECABORT")


def test_clients_of_meduza_get_documents_as_before(client: RawClient) -> None:
    for body in (bson.encode({"table": "no.Table", "filters": []}), bson.encode({})[:-1]):
        kind, reply = client.ask("GET", body)

        assert kind == b"RGET"
        assert bson.decode(reply)["Response"]["error"]


def test_the_cost_of_a_command_is_told_in_whole_sentences() -> None:
    costs = {name: each.cost for name, each in OPERATIONS.items() if each.cost}

    assert costs["jobs.put"].endswith("each tag adds 4, each dependency 3, a batch 2.")
    assert costs["jobs.complete"] == "Reads 4 keys, writes 6."
    assert [name for name, cost in costs.items() if not cost.endswith(".")] == []


def test_the_summary_of_a_command_is_a_whole_sentence() -> None:
    summaries = {name: each.summary for name, each in OPERATIONS.items()}

    assert summaries["jobs.put"].startswith("Puts a job into `queue`")
    assert [name for name, said in summaries.items() if not said.endswith(".")] == []
