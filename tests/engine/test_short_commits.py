"""Commits on a thread that must not be held up: short, all or nothing, in nobody's way."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, NotBegun, Outcome, Transaction, read_counter
from holdfast.engine.lmdb import flusher
from holdfast.limits import COMMITS_BEFORE_LOG, MAX_SHORT_OPERATIONS

Work = Callable[[Transaction], Any]


@pytest.fixture(params=["commit", "interval"])
def engine(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    # A flush that is due would have to be waited for.
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 3600.0)
    engine = open_engine(tmp_path / "store", durability=request.param)
    warm_up(engine)
    yield engine
    engine.close()


def warm_up(engine: Engine) -> None:
    """Has commits wait in the log, as those of a program do that runs for longer."""
    for _ in range(COMMITS_BEFORE_LOG + 2):
        engine.transact(lambda tx: tx.put(b"warm", b"up"))
    engine._overlay._log.sync_seconds = 0.0  # type: ignore[attr-defined]  # on a busy disk too


def try_one(engine: Engine, work: Work) -> Any:
    outcomes = engine.try_transact_many([work], spaces=[b""])
    return None if outcomes is None else outcomes[0].unwrap()


def run_group(
    engine: Engine,
    works: list[Work],
    *,
    spaces: list[bytes] | None = None,
    is_short: bool = True,
) -> list[Outcome[Any]]:
    """Runs a group as short ones run, or as any others if it has to wait."""
    spaces = [b""] * len(works) if spaces is None else spaces
    outcomes = engine.try_transact_many(works, spaces=spaces) if is_short else None
    return engine.transact_many(works, spaces=spaces) if outcomes is None else outcomes


def content(engine: Engine) -> dict[bytes, bytes]:
    with engine.view() as view:
        return dict(view.scan(b"", b"\xff"))


def put(key: bytes, value: bytes = b"") -> Work:
    def work(tx: Transaction) -> bytes:
        tx.put(key, value)
        return key

    return work


def test_a_short_transaction_is_committed_and_seen(engine: Engine, tmp_path: Path) -> None:
    assert try_one(engine, put(b"a", b"1")) == b"a"

    assert content(engine) == {b"a": b"1", b"warm": b"up"}
    engine.close()
    with open_engine(tmp_path / "store").view() as view:
        assert view.get(b"a") == b"1"


def test_one_that_fails_does_not_disturb_the_others_of_its_group(engine: Engine) -> None:
    def fail(tx: Transaction) -> None:
        tx.put(b"half", b"")
        raise ValueError("no")

    outcomes = engine.try_transact_many([put(b"a"), fail, put(b"b")], spaces=[b"", b"", b""])

    assert outcomes is not None
    assert [type(outcome.error) for outcome in outcomes] == [type(None), ValueError, type(None)]
    assert set(content(engine)) == {b"a", b"b", b"warm"}


@pytest.mark.parametrize("is_short", [True, False])
def test_a_group_of_which_none_fails_runs_each_work_once(engine: Engine, is_short: bool) -> None:
    ran = []

    def work(tx: Transaction) -> None:
        ran.append(tx.now)
        tx.put(b"n", b"%d" % len(ran))

    run_group(engine, [work] * 3, is_short=is_short)

    assert len(ran) == 3
    assert content(engine)[b"n"] == b"3"


@pytest.mark.parametrize("is_short", [True, False])
def test_a_work_that_has_not_begun_is_no_reason_to_run_the_others_again(
    engine: Engine, is_short: bool
) -> None:
    ran = []

    def refuse(tx: Transaction) -> None:
        raise NotBegun

    def work(tx: Transaction) -> None:
        ran.append(tx.now)
        tx.put(b"n", b"%d" % len(ran))

    outcomes = run_group(engine, [work, refuse, work], is_short=is_short)

    assert [type(outcome.error) for outcome in outcomes] == [type(None), NotBegun, type(None)]
    assert len(ran) == 2
    assert content(engine)[b"n"] == b"2"


def test_after_a_failure_the_next_groups_run_each_work_once(engine: Engine) -> None:
    ran = []

    def fail(tx: Transaction) -> None:
        ran.append(tx.now)
        tx.put(b"half", b"")
        raise ValueError("no")

    for _ in range(3):
        run_group(engine, [put(b"a"), fail])

    assert len(ran) == 4  # twice in the first group, to tell its writes from those of the others
    assert set(content(engine)) == {b"a", b"warm"}


def test_works_of_several_spaces_in_a_group_write_to_their_own(engine: Engine) -> None:
    def claim(tx: Transaction) -> None:
        tx.put(tx.space + b"here", b"")

    outcomes = run_group(engine, [claim, claim], spaces=[b"a", b"b"])

    assert [outcome.error for outcome in outcomes] == [None, None]
    assert set(content(engine)) == {b"ahere", b"bhere", b"warm"}


def test_each_of_a_group_sees_those_before_it(engine: Engine) -> None:
    def add(tx: Transaction) -> bytes | None:
        tx.add(b"n", 1)
        return tx.get(b"n")

    outcomes = engine.try_transact_many([add, add, add], spaces=[b""] * 3)

    assert outcomes is not None
    assert [read_counter(outcome.unwrap()) for outcome in outcomes] == [1, 2, 3]


def scan_all(tx: Transaction) -> None:
    for _ in tx.scan(b"", b"\xff"):
        pass


def write_much(tx: Transaction) -> None:
    for number in range(MAX_SHORT_OPERATIONS + 1):
        tx.put(b"long%d" % number, b"")


def read_much(tx: Transaction) -> None:
    tx.get_many([b"%d" % number for number in range(MAX_SHORT_OPERATIONS + 1)])


def write_large(tx: Transaction) -> None:
    tx.put(b"long", bytes(1024 * (MAX_SHORT_OPERATIONS + 1)))


def swallow(tx: Transaction) -> None:
    try:
        write_much(tx)
    except BaseException:
        tx.written.clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize("work", [scan_all, write_much, read_much, write_large, swallow])
def test_a_long_transaction_is_given_up_and_leaves_nothing(engine: Engine, work: Work) -> None:
    keys = [b"%d" % number for number in range(MAX_SHORT_OPERATIONS + 1)]
    engine.transact_many([put(key) for key in keys])
    engine.stats()  # has all of it in the file
    warm_up(engine)
    before = content(engine)

    assert engine.try_transact_many([put(b"a"), work], spaces=[b"", b""]) is None
    assert content(engine) == before
    assert engine.transact(lambda tx: work(tx) or "done") == "done"


def test_nobody_waits_for_another_thread(engine: Engine) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(tx: Transaction) -> None:
        begun.set()
        assert go_on.wait(30)
        tx.put(b"slow", b"")

    thread = threading.Thread(target=engine.transact, args=(wait,))
    thread.start()
    assert begun.wait(30)
    assert engine.try_transact_many([put(b"a")], spaces=[b""]) is None
    go_on.set()
    thread.join()

    assert set(content(engine)) == {b"slow", b"warm"}


def test_those_who_come_meanwhile_have_their_turn(engine: Engine) -> None:
    threads = [threading.Thread(target=engine.transact, args=(put(b"t%d" % n),)) for n in range(4)]

    def work(tx: Transaction) -> None:
        for thread in threads:
            thread.start()
        tx.put(b"a", b"")

    try_one(engine, work)
    for thread in threads:
        thread.join(30)

    assert set(content(engine)) == {b"a", b"warm", *(b"t%d" % n for n in range(4))}


def test_an_engine_that_was_closed_declines(engine: Engine) -> None:
    engine.close()

    assert engine.try_transact_many([put(b"a")], spaces=[b""]) is None


KEYS = st.sampled_from([b"a", b"b", b"c"])
WRITES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=4))), max_size=4)
WORKS = st.tuples(WRITES, st.booleans())  # with whether it fails in the end


def writing(writes: list[tuple[bytes, bytes | None]], *, fails: bool) -> Work:
    def work(tx: Transaction) -> list[bytes | None]:
        for key, value in writes:
            if value is None:
                tx.delete(key)
            else:
                tx.put(key, value)
        if fails:
            raise ValueError("no")
        return [tx.get(key) for key in (b"a", b"b", b"c")]

    return work


@settings(max_examples=30, deadline=None)
@given(groups=st.lists(st.tuples(st.booleans(), st.lists(WORKS, min_size=1, max_size=3))))
def test_short_and_other_commits_together_leave_what_a_dict_has(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[tuple[bool, list[tuple[list[tuple[bytes, bytes | None]], bool]]]],
) -> None:
    path = tmp_path_factory.mktemp("store")
    engine = open_engine(path, durability="interval")
    warm_up(engine)
    expected: dict[bytes, bytes | None] = {}
    for is_short, group in groups:
        works = [writing(writes, fails=fails) for writes, fails in group]
        outcomes = run_group(engine, works, is_short=is_short)
        for (writes, fails), outcome in zip(group, outcomes, strict=True):
            if fails:
                assert isinstance(outcome.error, ValueError)
                continue
            expected.update(writes)
            assert outcome.unwrap() == [expected.get(key) for key in (b"a", b"b", b"c")]
    engine.close()

    engine = open_engine(path, durability="interval")
    live = {key: value for key, value in expected.items() if value is not None}
    assert content(engine) == {**live, b"warm": b"up"}
    engine.close()
