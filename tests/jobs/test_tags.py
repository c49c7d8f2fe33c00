"""Tags: carried by jobs, indexed, counted."""

from collections.abc import Sequence

import pytest

from holdfast.errors import BadArgument, HoldfastError
from holdfast.store import Store
from tests.jobs.conftest import Qless


def put(qless: Qless, jid: str, tags: Sequence[object], now: float = 0) -> None:
    qless("put", now, "worker", "queue", jid, "klass", "{}", 0, "tags", tags)


def test_tags_are_added_in_order_and_only_once(qless: Qless) -> None:
    put(qless, "jid", ["b"])

    assert qless("tag", 0, "add", "jid", "a", "b", "c") == ["b", "a", "c"]
    assert qless("tag", 0, "remove", "jid", "a", "missing") == ["b", "c"]
    assert qless("get", 0, "jid")["tags"] == ["b", "c"]
    assert qless("tag", 0, "remove", "jid", "b", "c") == {}


def test_the_jobs_of_a_tag_come_in_the_order_in_which_they_got_it(qless: Qless) -> None:
    for jid, now in (("z", 2), ("b", 1), ("a", 1)):
        put(qless, jid, ["tag"], now)

    assert qless("tag", 3, "get", "tag") == {"total": 3, "jobs": ["a", "b", "z"]}
    assert qless("tag", 3, "get", "tag", 1, 1) == {"total": 3, "jobs": ["b"]}
    assert qless("tag", 3, "get", "tag", 0, -1)["jobs"] == ["a", "b", "z"]
    assert qless("tag", 3, "get", "tag", 0, 0)["jobs"] == ["a", "b", "z"]
    assert qless("tag", 3, "get", "tag", 1, 0)["jobs"] == {}
    assert qless("tag", 3, "get", "nothing") == {"total": 0, "jobs": {}}


def test_a_spawned_job_gets_its_tags_when_it_is_spawned(qless: Qless) -> None:
    qless("recur", 0, "queue", "often", "klass", "{}", "interval", 60, 0, "tags", ["tag"])
    put(qless, "jid", ["tag"], 100)
    qless("pop", 130, "queue", "worker", 10)

    assert qless("tag", 130, "get", "tag")["jobs"] == ["jid", "often-1", "often-2", "often-3"]


def test_numbers_stay_numbers_in_the_job_and_are_found_by_their_text(qless: Qless) -> None:
    put(qless, "jid", [7, 2.5, "x"])

    assert qless("get", 0, "jid")["tags"] == [7, 2.5, "x"]
    assert qless("tag", 0, "get", "7")["jobs"] == ["jid"]
    assert qless("tag", 0, "get", "2.5")["jobs"] == ["jid"]
    assert qless("tag", 0, "remove", "jid", "7") == [2.5, "x"]


def test_a_number_that_no_record_holds_is_refused_as_a_tag(qless: Qless, store: Store) -> None:
    with pytest.raises(BadArgument, match="more than 64 bits"):
        put(qless, "jid", [2**64])
    with pytest.raises(BadArgument, match="more than 64 bits"):
        qless("recur", 0, "queue", "r", "k", "{}", "interval", 60, 0, "tags", [-(2**64)])

    assert qless("get", 0, "jid") is None


def test_the_most_used_tags_are_those_of_at_least_two_jobs(qless: Qless) -> None:
    for n in range(4):
        put(qless, f"j{n}", ["all", f"only-{n}"] + (["half", "other-half"] if n % 2 else []))

    assert qless("tag", 0, "top") == ["all", "other-half", "half"]
    assert qless("tag", 0, "top", 1, 1) == ["other-half"]
    qless("cancel", 0, "j1")
    assert qless("tag", 0, "top") == ["all"]


def test_adding_a_tag_again_does_not_count_twice(qless: Qless) -> None:
    put(qless, "a", ["tag"])
    qless("tag", 0, "add", "a", "tag")
    qless("tag", 0, "remove", "a", "other")

    assert qless("tag", 0, "top") == {}


def test_adding_a_tag_again_makes_the_job_the_newest_of_its_jobs(qless: Qless) -> None:
    put(qless, "a", ["tag", "other"], 1)
    put(qless, "b", ["tag"], 2)

    assert qless("tag", 3, "add", "a", "tag") == ["tag", "other"]

    assert qless("tag", 3, "get", "tag")["jobs"] == ["b", "a"]


def test_the_index_follows_put_cancel_and_retention(qless: Qless) -> None:
    put(qless, "jid", ["a", "b"])
    put(qless, "jid", ["b", "c"], 1)
    assert qless("tag", 1, "get", "a")["jobs"] == {}
    assert qless("tag", 1, "get", "c")["jobs"] == ["jid"]

    qless("cancel", 1, "jid")
    assert qless("tag", 1, "get", "c") == {"total": 0, "jobs": {}}

    put(qless, "done", ["d"], 2)
    qless("config.set", 2, "jobs-history", -1)
    qless("pop", 2, "queue", "worker", 1)
    qless("complete", 2, "done", "worker", "queue", "{}")
    assert qless("tag", 2, "get", "d") == {"total": 0, "jobs": {}}


def test_duplicate_tags_collapse(qless: Qless) -> None:
    put(qless, "jid", ["a", "a", 1, "1"])

    assert qless("get", 0, "jid")["tags"] == ["a", 1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], 'Tag(): Arg "command" must be "add", "remove", "get" or "top"'),
        (["add"], 'Tag(): Arg "jid" missing'),
        (["remove"], 'Tag(): Arg "jid" missing'),
        (["add", "nobody", "tag"], "Tag(): Job nobody does not exist"),
        (["remove", "nobody", "tag"], "Tag(): Job nobody does not exist"),
        (["get"], 'Tag(): Arg "tag" missing'),
        (["get", "tag", "x"], 'Tag(): Arg "offset" not a number: x'),
        (["get", "tag", "0", "x"], 'Tag(): Arg "count" not a number: x'),
        (["top", "x"], 'Tag(): Arg "offset" not a number: x'),
        (["top", "0", "x"], 'Tag(): Arg "count" not a number: x'),
        (["foo"], 'Tag(): First argument must be "add", "remove" or "get"'),
    ],
)
def test_malformed_tag_commands_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(HoldfastError) as refused:
        qless("tag", 0, *words)

    assert refused.value.message == text


def test_tags_from_python(store: Store) -> None:
    store.jobs.put("queue", id="jid", tags=["a", 1])

    assert store.jobs.tag("jid", "b") == ("a", 1, "b")
    assert store.jobs.untag("jid", "a") == (1, "b")
    assert store.jobs.tagged(1).jobs == ("jid",)
    assert store.jobs.top_tags() == ()
    with pytest.raises(BadArgument):
        store.jobs.put("queue", tags=[None])  # type: ignore[list-item]  # what a caller without types may do
