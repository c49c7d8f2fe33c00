"""Engines with remote state are sorted maps, whatever is lost on the way or changed by others."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.contract import Transaction
from holdfast.engine.long_keys import LongKeys
from holdfast.errors import (
    Conflict,
)
from tests.engine.memory_backend import MemoryBackend
from tests.engine.memory_engine import Undone, open_memory, step
from tests.engine.model import END, apply, compare, keys, operation, short_keys, transactions

RULES = [None, LongKeys(511), LongKeys(24)]


@settings(max_examples=150, deadline=None)
@given(
    history=transactions,
    begin=keys | short_keys,
    end=keys | short_keys,
    rule=st.sampled_from(RULES),
    reads=st.booleans(),
    faults=st.randoms(use_true_random=False),
)
def test_it_is_a_sorted_map_whatever_is_lost_on_the_way(
    history: Any, begin: bytes, end: bytes, rule: LongKeys | None, reads: bool,
    faults: random.Random,
) -> None:  # fmt: skip
    backend = MemoryBackend(rule)
    engine = open_memory(backend)
    engine._reconnector.stopped.wait = lambda timeout=None: False  # type: ignore[method-assign]  # no pauses
    backend.fault = lambda message: (
        "" if faults.random() < 0.7 else faults.choice(["unreachable", "lost before", "lost after"])
    )
    model: dict[bytes, bytes] = {}
    for operations, keep in history:
        work = step(operations, keep, model)

        def run(tx: Transaction, work: Any = work) -> dict[bytes, bytes]:
            attempt: dict[bytes, bytes] = work(tx)
            if reads:
                compare(tx, attempt, begin, end)
            return attempt

        try:
            model = engine.transact(run)
        except Undone:
            assert not keep
    backend.fault = lambda message: ""
    with engine.view() as view:
        compare(view, model, begin, end)
        compare(view, model, b"", END)
    engine.close()


@settings(max_examples=100, deadline=None)
@given(
    group=st.lists(st.tuples(st.lists(operation, max_size=5), st.booleans()), max_size=6),
    rule=st.sampled_from(RULES),
    read=st.lists(keys | short_keys, max_size=4),
)
def test_each_transaction_of_a_group_succeeds_or_fails_alone(
    group: Any, rule: LongKeys | None, read: list[bytes]
) -> None:
    engine = open_memory(MemoryBackend(rule))

    def work(operations: Any, keep: bool) -> Any:
        def run(tx: Transaction) -> None:
            for each in operations:
                apply(tx, {}, each)
                tx.get_many(read)
            if not keep:
                raise Undone

        return run

    outcomes = engine.transact_many([work(*each) for each in group])

    model: dict[bytes, bytes] = {}
    scratch = open_memory(MemoryBackend())
    with engine.view() as view:
        stored = dict(view.scan(b"", END))
    with scratch.transaction() as tx:
        for operations, keep in group:
            for each in operations if keep else ():
                apply(tx, model, each)
    assert stored == model
    for (_, keep), outcome in zip(group, outcomes, strict=True):
        assert isinstance(outcome.error, Undone) is not keep


@settings(max_examples=150, deadline=None)
@given(
    history=st.lists(
        st.tuples(st.integers(0, 1), st.lists(operation, max_size=4), st.booleans()), max_size=12
    ),
    begin=short_keys,
    end=short_keys,
    rule=st.sampled_from(RULES),
)
def test_engines_that_remember_what_others_have_changed_see_one_sorted_map(
    history: Any, begin: bytes, end: bytes, rule: LongKeys | None
) -> None:
    backend = MemoryBackend(rule)
    engines = [open_memory(backend), open_memory(backend)]
    model: dict[bytes, bytes] = {}
    for number, operations, keep in history:
        work = step(operations, keep, model)

        def run(tx: Transaction, work: Any = work) -> Any:
            before = [list(tx.scan(begin, end, limit=2)), list(tx.scan(begin, end, reverse=True))]
            return before, work(tx)

        inside = sorted(pair for pair in model.items() if begin <= pair[0] < end)
        try:
            before, model = engines[number].transact(run)
        except Undone:
            assert not keep
        else:
            assert before == [inside[:2], inside[::-1]]
    with engines[0].view() as view:
        compare(view, model, b"", END)


reading = st.one_of(
    st.tuples(st.just("get"), short_keys),
    st.tuples(st.just("get_many"), st.lists(short_keys, max_size=3)),
    st.tuples(
        st.just("scan"), short_keys, short_keys, st.none() | st.integers(0, 3), st.booleans()
    ),
)
small_operation = st.one_of(
    st.tuples(st.just("put"), short_keys, st.binary(max_size=3)),
    st.tuples(st.just("put_all"), st.dictionaries(short_keys, st.binary(max_size=3), max_size=2)),
    st.tuples(st.just("delete"), short_keys),
    st.tuples(st.just("clear"), short_keys, short_keys),
    st.tuples(st.just("add"), st.sampled_from([b"#1", b"#2"]), st.integers(-5, 5)),
)


def do(tx: Transaction, call: tuple[Any, ...]) -> Any:
    name, *arguments = call
    if name == "get":
        return tx.get(arguments[0])
    if name == "get_many":
        return tx.get_many(arguments[0])
    if name == "scan":
        begin, end, limit, reverse = arguments
        return list(tx.scan(begin, end, limit=limit, reverse=reverse))
    return apply(tx, {}, call)


@settings(max_examples=300, deadline=None)
@given(
    present=st.dictionaries(short_keys, st.binary(max_size=3), max_size=8),
    mine=st.lists(reading | small_operation, max_size=8),
    rivals=st.lists(st.lists(small_operation, max_size=2), max_size=2),
    rule=st.sampled_from(RULES),
)
def test_a_commit_is_refused_if_what_was_read_has_changed(
    present: Any, mine: Any, rivals: Any, rule: LongKeys | None
) -> None:
    """A transaction must have seen what it would see if it ran alone, at its commit."""
    backend = MemoryBackend(rule)
    engine, rival = open_memory(backend), open_memory(backend)
    with rival.transaction() as tx:
        for key, value in present.items():
            if not key.startswith(b"#"):
                tx.put(key, value)
    answers = []
    refused = False
    try:
        with engine.transaction() as tx:
            answers = [do(tx, call) for call in mine]
            for operations in rivals:
                rival.transact(step(operations, True, {}))
            after = MemoryBackend(rule)
            after.rows = dict(backend.rows)
    except Conflict:
        refused = True

    with open_memory(after).transaction() as alone:
        expected = [do(alone, call) for call in mine]
    writes = any(map(is_write, mine))
    if answers != expected:
        assert refused or not writes
    if writes and not refused:
        with open_memory(after).view() as wanted, engine.view() as stored:
            assert dict(stored.scan(b"", END)) == dict(wanted.scan(b"", END))


def is_write(call: Any) -> bool:
    """Whether it makes a transaction one that writes; to clear an empty range does not."""
    return call[0] in ("put", "delete", "add") or (call[0] == "clear" and call[1] < call[2])
