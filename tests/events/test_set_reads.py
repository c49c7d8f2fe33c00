"""Members of several sets read as one, bounded by time, in pages."""

from itertools import pairwise
from typing import Any

import pytest

from holdfast.errors import BadInput
from holdfast.store import Store

SCHEMA = {
    "add": [{"targets": ["[key]"], "add": "value"}],
    "remove": [{"targets": ["[key]"], "remove": "value"}],
}


def add(store: Store, key: str, *members: tuple[str, int]) -> None:
    store.events.send_many(
        [
            {"name": "add", "attributes": {"key": key, "value": value}, "at": at}
            for value, at in members
        ]
    )


@pytest.fixture
def two(store: Store) -> Store:
    """The sets x and y of Flux's examples, in milliseconds."""
    store.events.deploy(SCHEMA)
    add(store, "x", ("b", 8), ("a", 10))
    add(store, "y", ("d", 3), ("a", 4), ("c", 6), ("b", 9))
    return store


def names(store: Store, *keys: str, **options: Any) -> list[str]:
    return [member.value for member in store.events.members(keys, **options).members]


def walk(store: Store, keys: Any, limit: int, **options: Any) -> list[tuple[str, int]]:
    """All pages one after the other."""
    found: list[tuple[str, int]] = []
    after: str | None = None
    while True:
        page = store.events.members(keys, limit, after, **options)
        assert len(page.members) <= limit
        found += [(member.value, member.at) for member in page.members]
        after = page.next
        if after is None:
            return found


@pytest.mark.every_engine
def test_several_sets_are_read_as_one_each_value_at_its_newest_place(two: Store) -> None:
    page = two.events.members(["x", "y"])

    assert [(m.value, m.at) for m in page.members] == [("a", 10), ("b", 9), ("c", 6), ("d", 3)]
    assert page.next is None


def test_bounds_choose_the_newest_place_within_them(two: Store) -> None:
    assert names(two, "x", "y", until=8) == ["b", "c", "a", "d"]
    assert names(two, "x", "y", since=6) == ["a", "b"]
    assert names(two, "x", "y", since=3, until=6) == ["c", "a"]
    assert names(two, "x", "y", since=10) == []
    assert names(two, "x", since="1970-01-01T00:00:00.009Z") == ["a"]


def test_an_intersection_has_what_all_sets_have(two: Store) -> None:
    assert names(two, "x", "y", op="intersection") == ["a", "b"]
    assert names(two, "x", "y", op="intersection", until=8) == []
    assert names(two, "x", "nothing", op="intersection") == []


def test_a_difference_has_what_only_the_first_set_has(two: Store) -> None:
    assert names(two, "y", "x", op="difference") == ["c", "d"]
    assert names(two, "x", "y", op="difference") == []
    assert names(two, "x", "y", op="difference", since=8) == ["a"]


def test_the_same_key_twice_is_the_same_as_once(two: Store) -> None:
    assert names(two, "x", "x") == ["a", "b"]
    assert names(two, "x", "x", op="intersection") == ["a", "b"]


@pytest.mark.every_engine
@pytest.mark.parametrize("op", ["union", "intersection", "difference"])
def test_pages_hold_each_member_once_in_sets_of_every_size(store: Store, op: Any) -> None:
    store.events.deploy(SCHEMA)
    contents = {
        "small": {f"v{n}": 100 + n // 3 for n in range(0, 30)},
        "packed": {f"v{n}": 90 + n // 5 for n in range(10, 150)},
        "large": {f"v{n}": 50 + n // 7 for n in range(5, 450)},
    }
    for key, members in contents.items():
        add(store, key, *members.items())
    keys = list(contents)

    walked = walk(store, keys, 7, op=op)

    sets = [set(members) for members in contents.values()]
    expected = {
        "union": sets[0] | sets[1] | sets[2],
        "intersection": sets[0] & sets[1] & sets[2],
        "difference": sets[0] - sets[1] - sets[2],
    }[op]
    assert len(walked) == len(expected)
    assert {value for value, _ in walked} == expected
    assert all(first[1] >= second[1] for first, second in pairwise(walked))
    if op != "difference":
        newest = {v: max(m[v] for m in contents.values() if v in m) for v in expected}
        assert dict(walked) == newest


def test_a_page_goes_on_where_the_one_before_ended_whatever_changed(store: Store) -> None:
    store.events.deploy(SCHEMA)
    add(store, "k", *((f"v{n}", 1_000) for n in range(9)))
    page = store.events.members("k", 3)
    seen = [member.value for member in page.members]

    store.events.send({"name": "remove", "attributes": {"key": "k", "value": [seen[-1], "v1"]}})
    add(store, "k", ("new", 2_000), ("v2", 2_001))
    rest = [member.value for member in store.events.members("k", 100, page.next).members]

    assert seen == ["v8", "v7", "v6"]
    assert rest == ["v5", "v4", "v3", "v0"]


def test_a_page_of_large_sets_goes_on_behind_a_member_that_is_gone(store: Store) -> None:
    store.events.deploy(SCHEMA)
    add(store, "k", *((f"v{n}", 1_000) for n in range(400)))
    page = store.events.members("k", 3)

    gone = [member.value for member in page.members]
    store.events.send({"name": "remove", "attributes": {"key": "k", "value": gone}})
    rest = store.events.members("k", 2, page.next)

    assert [member.value for member in rest.members] == ["v396", "v395"]


def test_the_first_page_of_many_large_sets_reads_a_few_rows_of_each(store: Store) -> None:
    store.events.deploy({"add": [{"targets": ["[keys]"], "add": "values"}]})
    keys = [f"k{n}" for n in range(50)]
    many = {"keys": keys, "values": [f"v{n}" for n in range(300)]}
    store.events.send({"name": "add", "attributes": many})
    reads = 0

    def count(tx: Any) -> None:
        nonlocal reads
        scan = tx.raw.scan

        class Counting:
            space, now, get = tx.raw.space, tx.raw.now, tx.raw.get

            def scan(self, *args: Any, **options: Any) -> Any:
                nonlocal reads
                for pair in scan(*args, **options):
                    reads += 1
                    yield pair

        from holdfast.events import Events

        page = Events(Counting()).members(keys, 50)  # type: ignore[arg-type]  # it only reads
        assert len(page.members) == 50

    store.transact(count)
    assert reads < 5_000  # of 15,000


def test_a_sparse_intersection_gives_short_pages_that_come_to_an_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.events.set_reads.MAX_WALKED_MEMBERS", 20)
    store.events.deploy(SCHEMA)
    add(store, "a", *((f"a{n}", n) for n in range(50)), ("both", 1))
    add(store, "b", *((f"b{n}", n) for n in range(50)), ("both", 2))

    page = store.events.members(["a", "b"], 10, op="intersection")

    assert page.members == []
    assert page.next is not None
    assert walk(store, ["a", "b"], 10, op="intersection") == [("both", 2)]


@pytest.mark.parametrize("options", [{"op": "both"}, {"since": "soon"}, {"last": "soon"}])
def test_arguments_that_make_no_sense_are_refused(two: Store, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        two.events.members(["x", "y"], **options)
