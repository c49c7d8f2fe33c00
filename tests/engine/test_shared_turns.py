"""Processes that share a log take turns: each reads what was committed since its last turn, and
nothing if that was its own."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.lmdb.unflushed_commits import UnflushedCommits
from holdfast.limits import MAX_DEFERRED_BYTES
from tests.engine.test_shared_log import (
    ALL,
    commits_wait,
    durability,
    neighbour_on,
    open_here,
    perform,
    put,
)

__all__ = ["commits_wait", "durability"]  # fixtures


def test_commits_in_a_row_read_what_others_appended_once(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[UnflushedCommits] = []
    follow = UnflushedCommits.follow

    def counted(unflushed: UnflushedCommits) -> Any:
        looks.append(unflushed)
        return follow(unflushed)

    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        put(engine, b"a", b"1")
        monkeypatch.setattr(UnflushedCommits, "follow", counted)
        for number in range(5):
            put(engine, b"a", b"%d" % number)
        alone = len(looks)
        other.ask(("put", b"b", b"2"))
        for number in range(5):
            put(engine, b"c", b"%d" % number)
        beside = len(looks) - alone

        assert (alone, beside) == (0, 1)
        assert other.ask(("look", b"", b"")) == {b"a": b"4", b"b": b"2", b"c": b"4"}
        assert other.ask(None) == "closed"


@pytest.mark.parametrize("step", ["flush", "clear", "put"])
def test_a_process_that_committed_last_sees_what_another_one_brings_into_lmdb_alone(
    tmp_path: Path, durability: str, step: str
) -> None:
    large = bytes(MAX_DEFERRED_BYTES)
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        put(engine, b"b", b"1")
        put(engine, b"e", b"1")

        other.ask((step, b"d", large))  # nothing that the log or the shared state would tell of

        expected = {b"b": b"1", b"e": b"1"}
        if step == "clear":
            del expected[b"b"]
        elif step == "put":
            expected[b"d"] = large
        assert engine.transact(lambda tx: dict(tx.scan(*ALL))) == expected
        put(engine, b"f", b"1")
        assert other.ask(("read", b"", b"")) == {**expected, b"f": b"1"}
        assert other.ask(None) == "closed"


def test_records_that_are_read_together_count_in_their_order(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        put(engine, b"old", b"1")
        put(engine, b"back", b"1")
        engine.stats()  # brings both into LMDB's file
        other = neighbour_on(tmp_path, durability)
        put(engine, b"here", b"1")

        for step in [
            ("put", b"new", b"1"),
            ("delete", b"new", b""),
            ("put", b"here", b"2"),
            ("delete", b"old", b""),
            ("delete", b"back", b""),
            ("put", b"back", b"2"),
            ("put", b"again", b"1"),
            ("delete", b"again", b""),
            ("put", b"again", b"2"),
        ]:
            other.ask(step)

        expected = {b"again": b"2", b"back": b"2", b"here": b"2"}
        assert engine.transact(lambda tx: dict(tx.scan(*ALL))) == expected
        assert perform(engine, "look", b"", b"") == expected
        assert other.ask(None) == "closed"
