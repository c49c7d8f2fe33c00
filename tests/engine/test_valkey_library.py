"""The functions that run in the servers, called as the engine calls them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import valkey
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.contract import pack_counter, read_counter
from holdfast.engine.valkey.address import parse
from holdfast.engine.valkey.library import SpaceKeyNames, pack_list, source, unpack_list, version
from holdfast.limits import MAX_COUNTER, MIN_COUNTER
from tests.servers import Servers

pytestmark = pytest.mark.only_on("valkey")

SMALL = {  # what the library bounds, made small enough for a test to reach
    b"local WINDOW_MS = 60000": b"local WINDOW_MS = -1",
    b"local OLD_BYTES = 8 * 1024 * 1024": b"local OLD_BYTES = 1000",
}

Pair = tuple[bytes, bytes]
counters = st.integers(MIN_COUNTER, MAX_COUNTER) | st.sampled_from(
    [MIN_COUNTER, -1, 0, 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, MAX_COUNTER]
)


class Space:
    """A space that no other test uses, and the functions on it."""

    def __init__(self, client: "valkey.Valkey", name: bytes, library: bytes) -> None:
        self.client: Any = client  # its types say that every reply may have to be awaited
        self.names = SpaceKeyNames("test", name)
        self._library = library
        self._number = 0

    def call(self, function: str, keys: Sequence[bytes], *arguments: Any) -> Any:
        name = b"holdfast_%s_%s" % (self._library, function.encode())
        return self.client.execute_command("FCALL", name, len(keys), *keys, *arguments)

    def commit(
        self,
        *,
        at: Sequence[bytes] = (b"", b""),
        read: Sequence[bytes] = (),
        ranges: Sequence[Pair] = (),
        clears: Sequence[Pair] = (),
        deletes: Sequence[bytes] = (),
        puts: Sequence[Pair] = (),
        adds: Sequence[tuple[bytes, int]] = (),
        number: int | None = None,
        session: bytes = b"session",
    ) -> list[Any]:
        if number is None:
            self._number += 1
            number = self._number
        bounds = [bound for pair in ranges for bound in pair]
        parts: list[Any] = [session, number, *at, pack_list(read), pack_list(bounds), b"", b"c"]
        parts += [len(clears), len(deletes), len(puts), len(adds)]
        parts += [bound for pair in clears for bound in pair]
        parts += deletes
        parts += [part for pair in puts for part in pair]
        parts += [part for key, delta in adds for part in (key, pack_counter(delta))]
        return list(self.call("commit", self.names.commit(session), *parts))

    def claim(self, session: bytes, *, ms: int = 60_000, promise_ms: int = 60_000) -> int:
        return int(self.call("claim", [self.names.state], session, ms, promise_ms))

    def read(self, *keys: bytes, at: Sequence[bytes] = (b"", b"")) -> list[Any]:
        return list(self.call("read", self.names.read, *at, b"1", 1 << 20, len(keys), *keys))

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self.read(key)[3][0]
        return value

    def log_length(self) -> int:
        return int(self.client.xlen(self.names.log))


@contextmanager
def empty_server(servers: Servers) -> Iterator[Any]:  # the driver has few types
    with servers.lending("valkey") as url:
        [(host, port)] = parse(url).hosts
        with valkey.Valkey(host, port) as client:
            yield client


@pytest.fixture
def client(servers: Servers) -> Iterator["valkey.Valkey"]:
    with empty_server(servers) as client:
        client.execute_command("FUNCTION", "FLUSH")
        client.execute_command("FUNCTION", "LOAD", source())
        small = source().replace(version(), b"small")
        for usual, tiny in SMALL.items():
            assert usual in small
            small = small.replace(usual, tiny)
        client.execute_command("FUNCTION", "LOAD", small)
        yield client


@pytest.fixture
def space(client: "valkey.Valkey") -> Space:
    return Space(client, b"s", version())


@pytest.fixture
def small(client: "valkey.Valkey") -> Space:
    """A space whose log forgets at once what no view holds, and old values of 1,000 bytes."""
    return Space(client, b"small", b"small")


@given(parts=st.lists(st.binary(max_size=300)))
def test_a_list_comes_out_of_a_string_as_it_went_in(parts: list[bytes]) -> None:
    assert unpack_list(pack_list(parts)) == parts


@settings(max_examples=300, deadline=None)
@given(deltas=st.lists(counters, min_size=1, max_size=8))
def test_a_counter_is_exact_over_all_of_its_64_bits(servers: Servers, deltas: list[int]) -> None:
    with empty_server(servers) as client:
        client.execute_command("FUNCTION", "LOAD", "REPLACE", source())
        space = Space(client, b"n", version())
        number = 0

        for delta in deltas:
            reply = space.commit(adds=[(b"n", delta)])
            if MIN_COUNTER <= number + delta <= MAX_COUNTER:
                number += delta
                assert reply[0] == b"ok"
            else:
                assert reply == [b"counter", b"n", pack_counter(number)]

        assert read_counter(space.get(b"n")) == number


def test_nothing_of_a_commit_is_applied_if_one_of_its_numbers_can_not_be_added(
    space: Space,
) -> None:
    space.commit(puts=[(b"text", b"no counter"), (b"kept", b"1")])

    reply = space.commit(
        clears=[(b"k", b"l")], puts=[(b"new", b"1")], adds=[(b"n", 1), (b"text", 1)]
    )

    assert reply == [b"counter", b"text", b"no counter"]
    assert [space.get(key) for key in (b"kept", b"new", b"n")] == [b"1", None, None]


def test_a_commit_that_comes_again_is_not_applied_again(space: Space) -> None:
    first = space.commit(adds=[(b"n", 1)], number=7)

    assert space.commit(adds=[(b"n", 1)], number=7) == first
    assert read_counter(space.get(b"n")) == 1


def test_a_commit_that_comes_after_a_later_one_of_its_session_is_refused(space: Space) -> None:
    space.commit(adds=[(b"n", 1)], number=2)

    assert space.commit(adds=[(b"n", 1)], number=1) == [b"late"]
    assert read_counter(space.get(b"n")) == 1


def test_a_commit_that_was_refused_is_never_applied_even_if_it_comes_again_later(
    space: Space,
) -> None:
    space.commit(puts=[(b"n", b"no counter")])
    assert space.commit(adds=[(b"n", 1)], number=5)[0] == b"counter"

    space.client.hdel(space.names.values, b"n")
    space.client.zrem(space.names.keys, b"n")

    assert space.commit(adds=[(b"n", 1)], number=5) == [b"conflict"]
    assert space.get(b"n") is None


def test_a_commit_that_was_given_up_is_never_applied(space: Space) -> None:
    settled = space.call("settle", space.names.commit(b"session"), b"session", 1)

    assert settled == 0
    assert space.commit(puts=[(b"a", b"1")], number=1) == [b"conflict"]
    assert space.commit(puts=[(b"b", b"1")], number=2)[0] == b"ok"
    assert space.get(b"a") is None


def test_a_commit_that_was_applied_is_settled_as_such_however_often_one_asks(space: Space) -> None:
    space.commit(puts=[(b"a", b"1")], number=1)
    names = space.names.commit(b"session")

    assert [space.call("settle", names, b"session", 1) for _ in range(2)] == [1, 1]
    assert space.commit(puts=[(b"a", b"2")], number=1)[0] == b"ok"
    assert space.get(b"a") == b"1"


@settings(max_examples=200, deadline=None)
@given(key=st.binary(max_size=3), stem=st.sampled_from([0, 63, 64, 200]), data=st.data())
def test_a_range_that_was_read_holds_the_keys_that_it_holds_by_bytes(
    servers: Servers, key: bytes, stem: int, data: Any
) -> None:
    """Whatever the locale of the server says about their order."""
    stems = b"\xc3" * stem
    begin, end = (stems + data.draw(st.binary(max_size=3)) for _ in range(2))
    with empty_server(servers) as client:
        client.execute_command("FUNCTION", "LOAD", "REPLACE", source())
        space = Space(client, b"r", version())
        before = space.read()[:2]
        space.commit(puts=[(stems + key, b"1")])

        reply = space.commit(at=before, ranges=[(begin, end)], puts=[(b"other", b"1")])

        assert (reply == [b"conflict"]) is (begin <= stems + key < end)


# --- the log --------------------------------------------------------------------------------------


def test_the_log_forgets_what_no_one_needs(small: Space) -> None:
    for number in range(50):
        small.commit(puts=[(b"a", b"%d" % number)])

    assert small.log_length() <= 3


def test_the_log_reaches_back_to_a_view_that_lasts(small: Space) -> None:
    small.commit(puts=[(b"a", b"old")])
    moment = small.read()[:2]
    small.call("keep", (small.names.state, small.names.views), 60_000, moment[0])

    for number in range(20):
        small.commit(puts=[(b"a", b"%d" % number)])

    changes = small.read(at=moment)[2]
    assert unpack_list(changes[0][2]) == [b"+old"]
    assert len(changes) == 20


def test_a_view_that_is_over_holds_nothing(small: Space) -> None:
    small.commit(puts=[(b"a", b"old")])
    moment = small.read()[:2]
    small.call("keep", (small.names.state, small.names.views), -1, moment[0])

    for number in range(20):
        small.commit(puts=[(b"a", b"%d" % number)])

    assert small.log_length() <= 3
    assert small.read(at=moment)[2] is None


def test_a_commit_that_reaches_back_too_far_is_a_conflict(small: Space) -> None:
    moment = small.read()[:2]
    for number in range(20):
        small.commit(puts=[(b"a", b"%d" % number)])

    assert small.commit(at=moment, read=[b"never written"], puts=[(b"b", b"1")]) == [b"conflict"]


def test_of_a_large_clear_the_log_keeps_the_range_and_no_values(small: Space) -> None:
    small.commit(puts=[(b"k%03d" % number, bytes(100)) for number in range(30)])
    moment = small.read()[:2]

    small.commit(clears=[(b"k", b"l")])

    [[names, gone, old]] = small.read(at=moment)[2]
    assert (unpack_list(names), unpack_list(gone), old) == ([], [b"k", b"l"], None)


@pytest.mark.parametrize(
    ("read", "ranges", "conflicts"),
    [
        ([b"k7"], [], True),
        ([b"l"], [], False),
        ([], [(b"a", b"k")], False),
        ([], [(b"a", b"k\0")], True),
        ([], [(b"l", b"z")], False),
        ([], [(b"kz", b"z")], True),
    ],
)
def test_a_large_clear_is_in_conflict_with_what_was_read_inside_it(
    small: Space, read: list[bytes], ranges: list[Pair], conflicts: bool
) -> None:
    small.commit(puts=[(b"k%03d" % number, bytes(100)) for number in range(30)])
    moment = small.read()[:2]
    small.commit(clears=[(b"k", b"l")])

    reply = small.commit(at=moment, read=read, ranges=ranges, puts=[(b"m", b"1")])

    assert (reply == [b"conflict"]) is conflicts


# --- failovers ------------------------------------------------------------------------------------


def save(space: Space) -> dict[bytes, bytes]:
    """All that is stored, as a replica has it."""
    return {key: space.client.dump(key) for key in space.client.keys(b"test:*")}


def restore(space: Space, saved: dict[bytes, bytes]) -> None:
    for key in space.client.keys(b"test:*"):
        space.client.delete(key)
    for key, value in saved.items():
        space.client.restore(key, 0, value)


def test_what_was_read_of_commits_that_a_failover_lost_is_a_conflict(space: Space) -> None:
    space.commit(puts=[(b"a", b"1")])
    saved = save(space)
    space.commit(puts=[(b"a", b"lost")])
    moment = space.read(b"a")[:2]

    restore(space, saved)

    assert space.read(at=moment)[2] is None
    assert space.commit(at=moment, read=[b"a"], puts=[(b"b", b"1")]) == [b"conflict"]


def test_another_commit_with_the_number_of_a_lost_one_is_told_apart_from_it(space: Space) -> None:
    space.commit(puts=[(b"a", b"1")])
    saved = save(space)
    space.commit(puts=[(b"a", b"lost")])
    moment = space.read(b"a")[:2]

    restore(space, saved)
    space.commit(puts=[(b"a", b"2")], number=100)

    assert space.read()[0] == moment[0]
    assert space.commit(at=moment, read=[b"x"], puts=[(b"b", b"1")], number=101) == [b"conflict"]
    space.commit(puts=[(b"c", b"1")], number=102)
    assert space.commit(at=moment, read=[b"x"], puts=[(b"b", b"1")], number=103) == [b"conflict"]


def test_a_key_without_its_value_is_found_by_a_check(space: Space) -> None:
    space.commit(puts=[(b"a", b"1"), (b"b", b"1")])
    space.client.hdel(space.names.values, b"a")

    begin, problems = space.call("check", space.names.read, b"")

    assert begin == b""
    assert problems == [b"2 keys are in order, and 1 have a value", b"a key has no value: a"]


# --- claims ---------------------------------------------------------------------------------------


def test_a_claimed_space_takes_the_commits_of_one_session_only(space: Space) -> None:
    assert space.claim(b"session") == 0

    reply, left = space.commit(session=b"other", puts=[(b"Ab", b"2")])

    assert reply == b"claimed"
    assert 0 < left <= 60_000
    assert space.commit(puts=[(b"Ab", b"1")])[0] == b"ok"
    assert space.commit(session=b"other", puts=[(b"Ab", b"2")])[0] == b"ok"


def test_a_claim_that_is_released_or_over_stops_no_one(space: Space) -> None:
    space.claim(b"session")
    space.call("release", [space.names.state], b"other")
    assert space.claim(b"other") > 0
    space.call("release", [space.names.state], b"session")
    assert space.commit(session=b"other", puts=[(b"Ab", b"1")])[0] == b"ok"

    space.claim(b"other", ms=0)

    assert space.commit(puts=[(b"Ab", b"2")])[0] == b"ok"


def test_a_session_that_waits_comes_before_one_that_claims_again(space: Space) -> None:
    space.claim(b"session")
    assert space.claim(b"waiting") > 0
    assert space.claim(b"late") > 0

    space.commit(puts=[(b"Ab", b"1")])

    assert space.claim(b"session") > 0
    assert space.claim(b"late") > 0
    assert space.claim(b"waiting") == 0


def test_a_session_that_no_longer_waits_is_waited_for_a_moment_only(space: Space) -> None:
    space.claim(b"session")
    space.claim(b"gone", promise_ms=0)

    space.commit(puts=[(b"Ab", b"1")])

    assert space.claim(b"session") == 0
