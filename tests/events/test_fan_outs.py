"""Look-ups that find too much or nothing, and fan-outs that continue in background steps."""

from typing import Any

import pytest

from holdfast.errors import BadInput, ExpandsTooFar, InvalidEventSchema
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send, values

SOCIAL: dict[str, Any] = {
    "follow": [{"targets": ["[user].followers"], "add": "follower"}],
    "unfollow": [{"targets": ["[user].followers"], "remove": "follower"}],
    "post": [{"targets": ["[user].followers.feed"], "add": "post"}],
    "boost": [{"targets": ["[user].followers.feed"], "add": "post", "fan_out": "background"}],
    "count": [
        {
            "targets": ["['liked']", "[user].followers", "[@day]"],
            "count_frequency": "post",
            "fan_out": "background",
        }
    ],
}


@pytest.fixture
def social(store: Store) -> Store:
    """A store whose look-ups may find 300 members, with 1,000 followers of ann."""
    store.events.deploy(SOCIAL)
    store.events.configure(looked_up_members=300, fan_out_keys=1_000)
    store.events.send({"name": "follow", "attributes": {"user": "ann", "follower": names(1_000)}})
    return store


def names(count: int, begin: int = 0) -> list[str]:
    return [f"u{number}" for number in range(begin, begin + count)]


def reached(store: Store, post: str, besides: tuple[str, ...] = ()) -> set[str]:
    """The users whose feed has the post."""
    users = [user for user in (*names(1_200), "x" * 200) if user not in besides]
    return {user for user in users if store.events.contains(f"{user}:feed", post) is not None}


def boost(store: Store, user: Any = "ann", post: str = "p") -> Any:
    return store.events.send({"name": "boost", "attributes": {"user": user, "post": post}})


# --- nothing is cut silently ----------------------------------------------------------------------


def test_a_look_up_that_finds_too_many_members_is_refused_with_their_number(
    social: Store, send: Send
) -> None:
    with pytest.raises(ExpandsTooFar, match="ann:followers finds 1000 members, the limit is 300"):
        send("post", user="ann", post="p")

    assert reached(social, "p") == set()


def test_explain_says_that_a_look_up_finds_too_many_members(social: Store) -> None:
    [handler] = social.events.explain(
        {"name": "post", "attributes": {"user": "ann", "post": "p"}}
    ).handlers

    assert handler.error == "the look-up of ann:followers finds 1000 members, the limit is 300"


@pytest.mark.parametrize(
    ("user", "reason"), [("nobody", "unknown"), ("left", "empty"), ("ranked", "leaderboard")]
)
def test_a_look_up_that_finds_nothing_is_reported(
    store: Store, send: Send, user: str, reason: str
) -> None:
    rank = {"targets": ["['ranked:followers']"], "count_frequency": "'x'"}
    store.events.deploy({**SOCIAL, "rank": [rank]})
    send("follow", user="left", follower="bob")
    send("unfollow", user="left", follower="bob")
    send("rank")

    reply = send("post", user=user, post="p")
    [explained] = store.events.explain(
        {"name": "post", "attributes": {"user": user, "post": "p"}}
    ).handlers

    [empty] = reply.empty
    assert (empty.handler, empty.key, empty.reason) == ("post[0]", f"{user}:followers", reason)
    assert explained.empty == [empty]
    assert (reply.keys, reply.skipped) == (0, [])


def test_of_several_keys_that_are_looked_up_in_vain_the_first_is_named(
    social: Store, send: Send
) -> None:
    [empty] = send("post", user=["nobody", "nowhere"], post="p").empty

    assert (empty.key, empty.others) == ("nobody:followers", 1)


def test_a_distinct_counter_that_was_off_says_so(store: Store, send: Send) -> None:
    off = {"targets": ["['off']"], "add": "v", "store_distinct_counters": False}
    store.events.deploy({"e": [off, {"targets": ["['on']"], "add": "v"}]})
    send("e", v=["a", "b"])

    found = store.events.distinct("off")

    assert (found.count, found.exact, found.incomplete) == (0, False, True)
    assert store.events.distinct("on").incomplete is False


# --- in the background ----------------------------------------------------------------------------


@pytest.mark.every_engine
def test_a_large_fan_out_continues_after_the_commit(social: Store) -> None:
    reply = boost(social)

    [report] = reply.background
    assert (report.handler, report.keys, report.done) == ("boost[0]", 1_000, 0)
    assert social.events.continue_fan_outs() > 2
    assert reached(social, "p") == set(names(1_000))
    [finished] = social.events.fan_outs()
    assert (finished.id, finished.done, finished.failed) == (report.id, 1_000, 0)
    assert finished.finished is not None


def test_a_small_fan_out_happens_in_the_transaction_of_its_event(social: Store) -> None:
    social.events.configure(looked_up_members=1_000)

    reply = boost(social)

    assert (reply.keys, reply.background) == (1_000, [])


def test_later_writes_continue_a_fan_out(social: Store, clock: Clock, send: Send) -> None:
    boost(social)

    for number in range(10):
        clock.advance(seconds=2)
        send("follow", user="bob", follower=f"f{number}")

    assert reached(social, "p") == set(names(1_000))


def test_a_sweep_continues_a_fan_out(social: Store, clock: Clock) -> None:
    boost(social)

    for _ in range(10):
        clock.advance(seconds=1)
        social.sweep()

    assert reached(social, "p") == set(names(1_000))


@pytest.mark.every_engine
def test_a_fan_out_reaches_the_members_that_the_set_had_at_the_event(
    social: Store, clock: Clock, send: Send
) -> None:
    boost(social)
    social.events.continue_fan_outs(most=1)
    clock.advance(seconds=1)

    send("unfollow", user="ann", follower=[*names(20), *names(20, 900)])
    send("follow", user="ann", follower=[*names(20, 500), *names(100, 1_000), "x" * 200])
    send("unfollow", user="ann", follower="u1050")
    send("follow", user="ann", follower=names(5))
    social.events.continue_fan_outs()

    assert reached(social, "p") == set(names(1_000))


def test_a_fan_out_reads_the_members_of_a_set_that_is_gone(
    social: Store, clock: Clock, send: Send
) -> None:
    boost(social)
    social.events.continue_fan_outs(most=1)

    social.events.forget("ann:followers")
    for _ in range(5):
        social.sweep()
    send("follow", user="ann", follower=["later"])
    social.events.continue_fan_outs()

    assert reached(social, "p") == set(names(1_000))
    assert values(social, "later:feed") == []


def test_a_member_of_several_sets_is_written_once(social: Store, send: Send) -> None:
    send("follow", user="bob", follower=names(600, 500))
    send("follow", user="cid", follower=["u1", "u1150"])

    boost(social, user=["ann", "bob", "cid"])
    social.events.continue_fan_outs(most=3)
    send("unfollow", user="ann", follower=["u700", "u999"])
    social.events.continue_fan_outs()

    assert reached(social, "p") == set(names(1_100)) | {"u1150"}
    assert {social.events.gross(f"{user}:feed") for user in names(1_100)} == {1}


def test_a_fan_out_may_count_on_leaderboards_and_have_several_targets(
    social: Store, clock: Clock, send: Send
) -> None:
    day = "2023-11-14"

    send("count", user="ann", post="p", _at=f"{day}T12:00Z")
    social.events.continue_fan_outs()

    boards = [social.events.top(f"liked:{user}:{day}") for user in names(1_000)]
    assert {(entry.value, entry.count) for board in boards for entry in board} == {("p", 1)}
    assert all(len(board) == 1 for board in boards)


def test_a_long_list_attribute_is_fanned_out_in_steps(social: Store, send: Send) -> None:
    social.events.deploy(
        {"tag": [{"targets": ["['tagged']", "[who]"], "add": "'t'", "fan_out": "background"}]},
        name="tags",
    )

    reply = send("tag", who=names(1_500))
    social.events.continue_fan_outs()

    assert reply.background[0].keys == 1_500
    assert all(values(social, f"tagged:{who}") == ["t"] for who in names(1_500))


def test_keys_that_can_not_be_written_are_counted_with_the_reason(
    social: Store, send: Send
) -> None:
    rank = {"targets": ["['u7:feed', 'u8:feed']"], "count_frequency": "'x'"}
    social.events.deploy({"rank": [rank]}, name="rank")
    send("rank")

    boost(social)
    social.events.continue_fan_outs()

    [report] = social.events.fan_outs()
    assert report.failed == 2
    assert report.error is not None
    assert report.error.endswith(":feed holds a leaderboard")
    assert reached(social, "p", besides=("u7", "u8")) == set(names(1_000)) - {"u7", "u8"}


def test_what_an_undone_transaction_began_is_not_continued(social: Store) -> None:
    def work(tx: Any) -> None:
        tx.events.send({"name": "boost", "attributes": {"user": "ann", "post": "p"}})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        social.transact(work)

    assert social.events.continue_fan_outs() == 0
    assert social.events.fan_outs() == []


def test_explain_says_how_many_keys_a_fan_out_would_write(social: Store) -> None:
    [handler] = social.events.explain(
        {"name": "boost", "attributes": {"user": "ann", "post": "p"}}
    ).handlers

    assert (handler.background, handler.keys) == (1_000, [])
    assert social.events.fan_outs() == []


def test_a_finished_fan_out_is_forgotten_after_a_day(social: Store, clock: Clock) -> None:
    boost(social)
    social.events.continue_fan_outs()

    clock.advance(seconds=86_401)
    social.sweep()

    assert social.events.fan_outs() == []


def test_fan_outs_of_a_batch_are_reported(social: Store) -> None:
    events = [{"name": "boost", "attributes": {"user": "ann", "post": p}} for p in ("p", "q")]

    reply = social.events.send_many(events)
    social.events.continue_fan_outs()

    assert [report.keys for report in reply.background] == [1_000, 1_000]
    assert reached(social, "p") == reached(social, "q") == set(names(1_000))


@pytest.mark.parametrize("fan_out", ["later", None, True])
def test_a_handler_knows_two_kinds_of_fan_out(store: Store, fan_out: Any) -> None:
    with pytest.raises(InvalidEventSchema, match=r"fan_out: expected 'refuse' or 'background'"):
        store.events.deploy({"e": [{"targets": ["['x']"], "add": "v", "fan_out": fan_out}]})


def test_a_handler_that_enqueues_has_no_fan_out(store: Store) -> None:
    job = {"queue": "q", "klass": "K"}
    with pytest.raises(InvalidEventSchema, match="writes no keys"):
        store.events.deploy({"e": [{"enqueue": job, "fan_out": "background"}]})


def test_a_fan_out_has_bounds(social: Store, send: Send) -> None:
    social.events.deploy(
        {"e": [{"targets": ["[a]", "[b]"], "add": "'v'", "fan_out": "background"}]}, name="wide"
    )
    social.events.configure(fan_out_keys=100_000)

    with pytest.raises(ExpandsTooFar, match="1001 writes for each member"):
        send("e", a=names(1_001), b=names(1_001))
    with pytest.raises(BadInput, match="limit must be from 1 to"):
        social.events.fan_outs(limit=0)
