"""The originals' keys, as clients may look at them."""

from collections.abc import Iterator

import pytest

from holdfast.compat.qless.virtual_keys import VirtualKeys
from holdfast.store import Store
from tests.jobs.conftest import Qless


@pytest.fixture
def keys(store: Store, qless: Qless) -> Iterator[VirtualKeys]:
    """The keys of a queue in which something is everywhere."""
    fill(qless)
    with store._runner.view() as reader:
        yield VirtualKeys(reader)  # type: ignore[arg-type]  # it only reads


def names(store: Store) -> set[str]:
    with store._runner.view() as reader:
        return set(VirtualKeys(reader).names())  # type: ignore[arg-type]  # it only reads


def fill(qless: Qless) -> None:
    qless("config.set", 0, "heartbeat", 30)
    for n, jid in enumerate(("run", "fail", "done", "wait", "also")):
        qless("put", n, "worker", "queue", jid, "klass", "{}", 0, "tags", ["tag"])
    qless("pop", 5, "queue", "worker", 3)
    qless("fail", 6, "fail", "worker", "group", "message")
    qless("complete", 7, "done", "worker", "queue", "{}")
    qless("put", 8, "worker", "queue", "later", "klass", "{}", 100)
    qless("put", 9, "worker", "queue", "after", "klass", "{}", 0, "depends", ["run"])
    qless("recur", 10, "queue", "often", "klass", "{}", "interval", 60, 120)
    qless("track", 11, "track", "wait")
    qless("pause", 12, "queue")


def test_keys_are_there_exactly_while_they_have_content(store: Store, qless: Qless) -> None:
    assert names(store) == set()
    fill(qless)

    jobs = {f"ql:j:{jid}" for jid in ("run", "fail", "done", "wait", "also", "later", "after")}
    lists = {f"ql:q:queue-{name}" for name in ("work", "locks", "scheduled", "depends", "recur")}
    rest = {"queues", "workers", "w:worker:jobs", "tracked", "completed", "tags", "t:tag"}
    others = {"failures", "paused_queues", "f:group", "config", "r:often"}
    statistics = {f"s:{kind}:0:queue" for kind in ("wait", "run", "stats")}
    assert names(store) == jobs | lists | {f"ql:{name}" for name in rest | others | statistics}

    while store.jobs.erase_some(100):
        pass
    assert names(store) == set()
    assert store.jobs.queues() == []


def test_lists_of_a_queue_have_counts_and_scores(keys: VirtualKeys) -> None:
    expected = {"work": 2, "locks": 1, "scheduled": 1, "depends": 1, "recur": 1}
    assert {name: keys.size(f"ql:q:queue-{name}") for name in expected} == expected

    scores = {
        ("recur", "often"): 130,
        ("locks", "run"): 35,
        ("scheduled", "later"): 108,
        ("depends", "after"): 9,
        ("work", "wait"): -3 / 1e10,
        ("work", "run"): None,
        ("locks", "nobody"): None,
        ("recur", "nobody"): None,
    }
    for (name, jid), score in scores.items():
        assert keys.score(f"ql:q:queue-{name}", jid) == score


def test_sorted_sets_have_members_lowest_score_first(keys: VirtualKeys) -> None:
    def scored(key: str) -> list[tuple[str, float]]:
        return list(keys.scored(key) or ())

    assert scored("ql:queues") == [("queue", 0)]
    assert scored("ql:workers") == [("worker", 5)]
    assert scored("ql:w:worker:jobs") == [("run", 35)]
    assert scored("ql:tracked") == [("wait", 11)]
    assert scored("ql:completed") == [("done", 7)]
    assert scored("ql:tags") == [("tag", 5)]
    assert [jid for jid, _ in scored("ql:t:tag")] == ["run", "fail", "done", "wait", "also"]
    assert [jid for jid, _ in scored("ql:q:queue-work")] == ["also", "wait"]
    assert keys.scored("ql:nothing") is None


def test_the_score_of_a_member_is_the_one_that_its_list_shows(keys: VirtualKeys) -> None:
    names = ("queues", "workers", "w:worker:jobs", "tracked", "completed", "tags", "t:tag")
    for key in (f"ql:{name}" for name in names):
        shown = list(keys.scored(key) or ())
        assert [(member, keys.score(key, member)) for member, _ in shown] == shown
        assert keys.score(key, "nobody") is None
    assert keys.score("ql:completed", "run") is keys.score("ql:t:other", "run") is None
    assert keys.score("ql:nothing", "run") is None


def test_other_keys_have_members_items_or_fields(keys: VirtualKeys) -> None:
    assert keys.members("ql:failures") == ["group"]
    assert keys.members("ql:paused_queues") == ["queue"]
    assert keys.members("ql:nothing") == []
    assert keys.items("ql:f:group") == ["fail"]
    assert keys.fields("ql:config") == {"heartbeat": "30"}
    assert keys.fields("ql:j:run")["state"] == "running"
    assert keys.fields("ql:r:often")["interval"] == 60
    assert keys.fields("ql:j:nobody") == keys.fields("ql:r:nobody") == keys.fields("ql:x") == {}
    kinds = {
        "ql:queues": "zset",
        "ql:q:other-work": "none",
        "ql:config": "hash",
        "ql:failures": "set",
        "ql:f:group": "list",
        "ql:nothing": "none",
    }
    assert {key: keys.kind(key) for key in kinds} == kinds


def test_statistics_can_be_read_by_day(keys: VirtualKeys) -> None:
    assert keys.fields("ql:s:stats:0:queue") == {"failures": 1, "failed": 1}
    wait = keys.fields("ql:s:wait:0:queue")
    assert (wait["total"], wait["mean"], wait["s5"], wait["s4"]) == (3, 4.0, 1, 1)
    assert keys.fields("ql:s:run:0:queue") == {"total": 1, "mean": 2.0, "vk": 0.0, "s2": 1}
    assert keys.kind("ql:s:run:0:queue") == "hash"
    assert keys.fields("ql:s:run:86400:queue") == {}
    assert keys.fields("ql:s:run:5:queue") == {}
