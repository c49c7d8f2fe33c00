"""Sessions of the Valkey engine against a model that keeps every state there ever was.

A session reads one moment however often its space changes meanwhile, and its commit is refused if,
and only if, something that it has read was changed.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.contract import pack_counter, read_counter
from holdfast.engine.remote import (
    BackendSession,
    Commit,
    Conflicted,
    RangeRead,
    RemoteEngine,
    WalkedRange,
)
from tests.stores import Stores

pytestmark = pytest.mark.only_on("valkey", "cluster")

SPACE = b"A"
SESSIONS = 3

# Few keys, so that they meet: two that only their end tells apart, and a long one.
keys = st.sampled_from([b"Ab", b"Ab\x00", b"A" + b"d" * 600])
bounds = st.sampled_from([b"A", b"Ab", b"Ab\x00", b"A" + b"d" * 600, b"Ae", b"B"])
writes = st.one_of(
    st.tuples(st.just("put"), keys, st.sampled_from([b"", b"0", b"b"])),  # "b" names a key
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("clear"), bounds, bounds),
    st.tuples(st.just("add"), st.just(b"A#"), st.integers(-3, 3)),
)
numbers = st.integers(0, SESSIONS - 1)
steps = st.one_of(
    st.tuples(st.just("get"), numbers, keys | st.just(b"A#")),
    st.tuples(st.just("scan"), numbers, bounds, bounds, st.integers(1, 4), st.booleans()),
    st.tuples(st.just("named"), numbers, bounds, bounds, st.integers(1, 4)),
    st.tuples(st.just("commit"), numbers, st.lists(writes, max_size=4)),
    # One that has read nothing is never in conflict.
    st.tuples(st.just("write"), st.lists(writes, min_size=1, max_size=4)),
)


class Modelled:
    """A session and what it must see."""

    def __init__(self, session: BackendSession) -> None:
        self.session = session
        self.version: int | None = None  # of the state that it reads
        self.keys: set[bytes] = set()
        self.ranges: list[tuple[bytes, bytes]] = []

    def conflicts(self, changed: list[set[bytes]]) -> bool:
        if self.version is None:
            return False
        return any(
            key in self.keys or any(begin <= key < end for begin, end in self.ranges)
            for commit in changed[self.version :]
            for key in commit
        )


class History:
    """Every state that there was, and what each commit has changed."""

    def __init__(self) -> None:
        self.states: list[dict[bytes, bytes]] = [{}]
        self.changed: list[set[bytes]] = []

    def apply(self, commit: Commit) -> None:
        before = self.states[-1]
        state = {
            key: value
            for key, value in before.items()
            if key not in commit.deletes and not any(b <= key < e for b, e in commit.clears)
        }
        state.update(commit.puts)
        for key, delta in commit.adds.items():
            state[key] = pack_counter(read_counter(state.get(key)) + delta)
        touched = {key for key in before | state if before.get(key) != state.get(key)}
        # What is cleared and put again is changed on the way, even if it comes out the same.
        cleared = {k for k in before if any(b <= k < e for b, e in commit.clears)}
        if touched or cleared:
            self.states.append(state)
            self.changed.append(touched | cleared)


def commit_of(modelled: Modelled, operations: Any) -> Commit:
    commit = Commit(
        space=SPACE,
        keys=dict.fromkeys(modelled.keys, 0),
        ranges=[WalkedRange(begin, end, []) for begin, end in modelled.ranges],
        clears=[],
        puts={},
        deletes=[],
        adds={},
        notices=[],
    )
    for name, *arguments in operations:
        if name == "clear" and arguments[0] < arguments[1]:
            commit.clears.append((arguments[0], arguments[1]))
        elif name == "put" and arguments[0] not in commit.deletes:
            commit.puts[arguments[0]] = arguments[1]
        elif name == "delete" and arguments[0] not in commit.puts:
            commit.deletes.append(arguments[0])
        elif name == "add":
            commit.adds[arguments[0]] = arguments[1]
    if any(begin <= key < end for key in commit.adds for begin, end in commit.clears):
        commit.adds = {}  # the shared engine makes values of such
    return commit


def check_read(modelled: Modelled, history: History, name: str, *arguments: Any) -> None:
    if modelled.version is None:
        modelled.version = len(history.states) - 1
    state = history.states[modelled.version]
    if name == "get":
        [key] = arguments
        modelled.keys.add(key)
        [row], _ = modelled.session.fetch([key], [])
        assert (row and row.value) == state.get(key)
        return
    if name == "named":
        check_named(modelled, history, *arguments)
        return
    begin, end, limit, reverse = arguments
    if begin < end:
        modelled.ranges.append((begin, end))
    _, [pairs] = modelled.session.fetch([], [RangeRead(begin, end, limit, reverse)])
    expected = sorted(((k, v) for k, v in state.items() if begin <= k < end), reverse=reverse)
    assert [(key, row.value) for key, row in pairs] == expected[:limit]


def check_named(modelled: Modelled, history: History, begin: bytes, end: bytes, limit: int) -> None:
    """Rows that others name are there as they were, and all of those that were named last."""
    assert modelled.version is not None
    state = history.states[modelled.version]
    _, [pairs] = modelled.session.fetch([], [RangeRead(begin, end, limit, follow=SPACE)])
    found = {key: row.value for key, row in pairs}
    assert found.items() <= state.items()
    newest = sorted(pair for pair in history.states[-1].items() if begin <= pair[0] < end)
    names = [SPACE + value for _, value in newest[:limit]]
    assert found.keys() == {key for key in names if key in state}


def check_commit(modelled: Modelled, history: History, commit: Commit) -> None:
    if modelled.conflicts(history.changed):
        with pytest.raises(Conflicted):
            modelled.session.commit(commit)
    else:
        modelled.session.commit(commit)
        history.apply(commit)


def new_session(engine: RemoteEngine, number: int) -> BackendSession:
    """Returns a session, which has its turn at something of its own if it is the first."""
    backend: Any = engine.backend
    session: BackendSession = (
        backend.session(SPACE) if number else backend.turn_session(SPACE, [b"An"])
    )
    return session


@settings(max_examples=150, deadline=None)
@given(script=st.lists(steps, min_size=5, max_size=40))
def test_sessions_read_one_moment_and_conflict_exactly_when_it_was_changed(
    stores: Stores, script: Any
) -> None:
    history = History()
    with stores.open_engine() as engine:
        assert isinstance(engine, RemoteEngine)
        sessions = [Modelled(new_session(engine, number)) for number in range(SESSIONS)]
        for name, *step in script:
            if name == "write":
                blind = Modelled(engine.backend.session(SPACE))
                check_commit(blind, history, commit_of(blind, step[0]))
            elif name == "commit":
                modelled = sessions[step[0]]
                check_commit(modelled, history, commit_of(modelled, step[1]))
                sessions[step[0]] = Modelled(new_session(engine, step[0]))
            else:
                check_read(sessions[step[0]], history, name, *step[1:])
        for modelled in sessions:
            modelled.session.close()
