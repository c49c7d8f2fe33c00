"""Spaces: isolated from each other, found by name, dropped in bounded steps."""

import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import pytest

import holdfast
from holdfast.defaults import DEFAULT_SPACE
from holdfast.errors import BadInput, OutsideSpace, UnknownSpace
from holdfast.keys import pack
from holdfast.limits import CLEARED_PER_STEP, MAX_SPACE_NAME_BYTES
from holdfast.store import Space, Store
from holdfast.testing import crash_at_write
from tests.plain_keys import drop_large, get_from, keys_below, put_in, put_many
from tests.processes import start
from tests.stores import Stores

pytestmark = pytest.mark.every_engine

# --- spaces ---------------------------------------------------------------------------------------


def test_a_space_is_there_from_its_first_use_until_it_is_dropped(store: Store) -> None:
    before = store.has_space("one")
    store.space("one")
    then = store.has_space("one")
    store.drop_space("one")

    assert (before, then, store.has_space("one")) == (False, True, False)
    assert store.has_space("default")


def test_a_store_is_itself_its_default_space(store: Store) -> None:
    put_in(store, b"k", b"v")

    assert store.name == DEFAULT_SPACE
    assert get_from(store.space(DEFAULT_SPACE), b"k") == b"v"


def test_spaces_hold_the_same_keys_and_do_not_see_each_other(store: Store) -> None:
    ann, bob = store.space("ann"), store.space("bob")

    put_in(ann, b"k", b"ann's")
    put_in(bob, b"k", b"bob's")

    assert (get_from(ann, b"k"), get_from(bob, b"k")) == (b"ann's", b"bob's")
    assert get_from(store, b"k") is None


def test_a_transaction_can_not_write_to_another_space(store: Store) -> None:
    other = store.space("other")._runner.prefix

    with pytest.raises(OutsideSpace):
        store.transact(lambda tx: tx._tx.put(other + b"k", b""))


def test_spaces_are_listed_by_name_and_are_there_after_a_reopen(stores: Stores) -> None:
    url = stores.url()
    names = ["Zoë", "a/b: c", "n" * MAX_SPACE_NAME_BYTES]
    with holdfast.open(url) as store:
        for name in names:
            put_in(store.space(name), b"k", name.encode())

    with holdfast.open(url) as store:
        assert store.spaces() == sorted([DEFAULT_SPACE, *names])
        assert [get_from(store.space(name), b"k") for name in names] == [n.encode() for n in names]
        assert store.spaces() == sorted([DEFAULT_SPACE, *names])


@pytest.mark.parametrize("name", ["", "n" * (MAX_SPACE_NAME_BYTES + 1), "ö" * 128, "\ud800"])
def test_a_name_that_is_empty_too_long_or_no_text_is_refused(store: Store, name: str) -> None:
    with pytest.raises(BadInput):
        store.space(name)


def test_what_is_no_string_can_not_name_a_space(store: Store) -> None:
    with pytest.raises(BadInput, match=r"7 can't name a space.*1 to 255 bytes"):
        store.space(7)  # type: ignore[arg-type]  # that is the point


def open_spaces(url: str, count: int, connection: Connection) -> None:
    with holdfast.open(url, durability="interval") as store:
        connection.recv()
        spaces = [store.space(f"space {number}") for number in range(count)]
        connection.send([space._runner.prefix for space in spaces])


def test_processes_that_create_a_space_at_the_same_time_get_the_same_one(stores: Stores) -> None:
    url, count = stores.url(), 50
    children = [start(open_spaces, url, count) for _ in range(4)]

    for child in children:
        child.send("go")
    prefixes = [child.receive() for child in children]

    assert all(child.join() == 0 for child in children)
    assert prefixes == [prefixes[0]] * 4
    assert len(set(prefixes[0])) == count


# --- the end of a space ---------------------------------------------------------------------------


def test_a_space_is_dropped_in_bounded_steps_with_its_progress(store: Store) -> None:
    space = store.space("large")
    put_many(space, 2 * CLEARED_PER_STEP + 1)
    progress: list[int] = []

    store.drop_space("large", progress=progress.append)

    assert progress == [CLEARED_PER_STEP, 2 * CLEARED_PER_STEP, 2 * CLEARED_PER_STEP + 1]
    assert store.spaces() == [DEFAULT_SPACE]
    assert keys_below(store, space) == 1  # the marker, for those who still hold it


def test_others_write_between_the_steps_of_a_drop(store: Store) -> None:
    put_many(store.space("large"), 2 * CLEARED_PER_STEP)
    neighbour = store.space("neighbour")

    with ThreadPoolExecutor(1) as pool:

        def write_beside(removed: int) -> None:
            pool.submit(put_in, neighbour, b"%d" % removed).result(timeout=30)

        store.drop_space("large", progress=write_beside)

    assert get_from(neighbour, b"%d" % CLEARED_PER_STEP) == b""


def test_a_call_in_a_dropped_space_raises_and_changes_nothing(store: Store) -> None:
    held = store.space("gone")
    put_many(held, 2 * CLEARED_PER_STEP)
    met: list[Any] = []

    def use_it(removed: int) -> None:
        for call in (
            lambda: put_in(held, b"new"),
            lambda: get_from(held, b"000000"),
            lambda: held.transaction().__enter__(),
            held.sweep,
        ):
            with pytest.raises(UnknownSpace, match=r"dropped.*store\.space\(name\)"):
                call()
            met.append(removed)

    store.drop_space("gone", progress=use_it)
    use_it(0)

    assert len(met) == 12
    assert keys_below(store, held) == 1


def hold_a_space(url: str, connection: Connection) -> None:
    with holdfast.open(url) as store:
        space = store.space("shared")
        put_in(space, b"k", b"v")
        connection.send("open")
        connection.recv()
        try:
            put_in(space, b"k", b"late")
            connection.send("written")
        except UnknownSpace as error:
            connection.send(error.code)
        connection.send(get_from(store.space("shared"), b"k"))


def test_another_process_that_holds_a_dropped_space_writes_nothing(stores: Stores) -> None:
    url = stores.url()
    child = start(hold_a_space, url)
    assert child.receive() == "open"

    with holdfast.open(url) as store:
        held = store.space("shared")
        store.drop_space("shared")

        assert child.ask("go on") == "unknown_space"
        assert child.receive() is None
        assert child.join() == 0
        assert keys_below(store, held) == 1


def test_a_dropped_name_can_be_created_again_and_is_empty(store: Store) -> None:
    old = store.space("again")
    put_in(old, b"k", b"old")
    store.drop_space("again")

    new = store.space("again")

    assert get_from(new, b"k") is None
    put_in(new, b"k", b"new")
    with pytest.raises(UnknownSpace):
        put_in(old, b"k", b"old")
    assert get_from(new, b"k") == b"new"


def test_a_name_created_again_while_the_old_space_is_emptied_stays(store: Store) -> None:
    put_many(store.space("again"), CLEARED_PER_STEP)

    store.drop_space("again", progress=lambda _: put_in(store.space("again"), b"k", b"new"))

    assert get_from(store.space("again"), b"k") == b"new"


def test_a_space_that_two_drop_at_the_same_time_is_dropped_once(store: Store) -> None:
    for number in range(20):
        space = store.space("twice")
        put_in(space, b"k")
        together = threading.Barrier(2)

        def drop(together: threading.Barrier = together) -> None:
            together.wait()
            store.drop_space("twice")

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(drop), pool.submit(drop)]:
                done.result()

        assert store.spaces() == [DEFAULT_SPACE], number
        assert keys_below(store, space) == 1


def test_dropping_what_is_not_there_is_no_error(store: Store) -> None:
    store.drop_space("never there")

    assert store.spaces() == [DEFAULT_SPACE]


def test_the_number_of_a_dropped_space_is_never_used_again(store: Store) -> None:
    first = store.space("a")._runner.prefix
    store.drop_space("a")

    assert pack(0) < first < store.space("b")._runner.prefix


@pytest.mark.parametrize("write", [1, 2, 3, 4, 5])
def test_a_drop_that_a_crash_interrupts_is_finished_later(stores: Stores, write: int) -> None:
    """The writes: the name goes, the list of drops grows, the marker, and a clear for each step."""
    url = stores.url()
    with holdfast.open(url, durability="interval") as store:
        prefix = store.space("large")._runner.prefix
        put_many(store.space("large"), CLEARED_PER_STEP + 1)

    assert crash_at_write(url, drop_large, n=write, durability="interval")

    with holdfast.open(url, durability="interval") as store:
        old = Space(store.engine, "large", prefix)
        assert ("large" in store.spaces()) is (write <= 2)
        store.resume_drops()
        assert keys_below(store, old) == (CLEARED_PER_STEP + 1 if write <= 2 else 1)
        assert get_from(store.space("large"), b"000000") == (b"" if write <= 2 else None)
        store.resume_drops()
        assert store.check() == []
