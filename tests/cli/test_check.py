"""`holdfast check` finds damage that a test has planted, in every layer that keeps things twice."""

from collections.abc import Callable

import pytest

import holdfast
from holdfast.engine.contract import Transaction, pack_counter
from holdfast.entities import layout as entities
from holdfast.events import layout as events
from holdfast.events.record_cache import RecordCache
from holdfast.jobs import space_keys as jobs
from holdfast.keys import prefix_range
from holdfast.tables import layout as tables
from tests.cli.conftest import Command

SCHEMA = """
schema: shop
tables:
  Users:
    columns: {name: {type: Text}, age: {type: Int}}
    indexes: [{type: compound, columns: [name]}]
"""


def fill(store: holdfast.Store) -> None:
    """Something in every list and index that the layers have."""
    store.entities.deploy(SCHEMA)
    people = [{"id": f"user-{n}", "name": f"Ann {n}"} for n in range(20)]
    store.entities.put_raw("shop.Users", people)
    store.tables.create(
        {
            "table": "pages",
            "attributes": {"title": "string", "author": "string"},
            "index": [{"type": "hash", "attribute": "title"}],
            "secondaryIndexes": {"by": [{"type": "hash", "attribute": "author"}]},
        }
    )
    for number in range(5):
        store.tables.put("pages", {"title": f"page-{number}", "author": "ann"})
    store.jobs.put("emails", id="first", tags=["red"])
    store.jobs.put("emails", id="second", depends=["first"])
    store.jobs.put("emails", id="later", delay=60)
    store.events.deploy({"view": [{"targets": ["['viewers']"], "add": "who"}]})
    store.events.send_many([{"name": "view", "attributes": {"who": f"v{n}"}} for n in range(900)])


def delete_first(prefix: bytes) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        key, _ = next(iter(tx.scan(*prefix_range(prefix), limit=1)))
        tx.delete(key)

    return work


def overwrite(key: bytes, value: bytes) -> Callable[[Transaction], None]:
    return lambda tx: tx.put(key, value)


def lose_a_place_of_a_set(tx: Transaction) -> None:
    record = RecordCache(tx).record(b"viewers")
    assert record.has_rows
    delete_first(events.keys_of(tx.space).generation(record.generation) + events.PLACES)(tx)


DAMAGES: dict[str, tuple[Callable[[bytes], Callable[[Transaction], None]], str]] = {
    "an entry of an index of entities": (
        lambda space: delete_first(entities.keys_of(space).entries),
        "shop.Users: the entry of 'user-0' in index shop.Users__name_compound is missing",
    ),
    "an entity": (
        lambda space: delete_first(entities.keys_of(space).entities),
        "has an entry of 'user-0' without an entity",
    ),
    "the count of entities": (
        lambda space: overwrite(entities.keys_of(space).sizes + b"\x21", pack_counter(7)),
        "shop.Users: counts 7 entities, has 20",
    ),
    "an entry of an index of tables": (
        lambda space: delete_first(tables.keys_of(space).entries),
        "table pages: the entry of title='page-4' in index by is missing",
    ),
    "a row": (
        lambda space: delete_first(tables.keys_of(space).rows),
        "table pages: index by has an entry of title='page-0' without a row",
    ),
    "the place of a waiting job": (
        lambda space: delete_first(jobs.keys_of(space).queue("emails").work),
        "job first: it is waiting, but not in that list",
    ),
    "a job": (
        lambda space: delete_first(jobs.keys_of(space).jobs),
        "job first: it is in a list, but does not exist",
    ),
    "the tag of a job": (
        lambda space: delete_first(jobs.keys_of(space).tags),
        "job first: the list of tag 'red' lacks it",
    ),
    "a dependency": (
        lambda space: delete_first(jobs.keys_of(space).dependencies_of("second")),
        "job second: waits for 1 job, but 0 are listed",
    ),
    "a count of a queue": (
        lambda space: delete_first(jobs.keys_of(space).queue("emails").blocked),
        "queue emails: counts 0 scheduled jobs, has 1",
    ),
    "a member of a set": (
        lambda space: lose_a_place_of_a_set,
        "events key 'viewers': counts 900 members, has places for 899",
    ),
    "a record that is garbage": (
        lambda space: overwrite(jobs.keys_of(space).job("later"), b"\xc1"),
        "(4, 29, 'later') can't be read",
    ),
    "a key of nobody": (
        lambda space: overwrite(space + b"\x37", b"x"),
        "no layer knows the key (23)",
    ),
}


@pytest.fixture
def filled(store: holdfast.Store) -> holdfast.Store:
    fill(store)
    return store


def test_a_sound_store_has_no_problems(command: Command, filled: holdfast.Store) -> None:
    filled.space("other").jobs.put("emails")

    result = command("check", "--json")

    assert (result.code, result.json["problems"]) == (0, [])
    assert result.json["spaces"] == ["default", "other"]
    assert "nothing wrong" in command("check").out


@pytest.mark.parametrize("command", ["folder"], indirect=True)
@pytest.mark.parametrize("damage", DAMAGES)
def test_planted_damage_is_found(command: Command, filled: holdfast.Store, damage: str) -> None:
    plant, words = DAMAGES[damage]
    filled.engine.transact(plant(filled.prefix), space=filled.prefix)

    result = command("check")

    assert result.code == 3
    assert words in result.out


def test_damage_is_found_on_a_folder_and_on_a_server(
    command: Command, filled: holdfast.Store
) -> None:
    plant, words = DAMAGES["an entry of an index of entities"]
    filled.engine.transact(plant(filled.prefix), space=filled.prefix)

    result = command("check", "--json")

    assert result.code == 3
    assert any(words in each["problem"] for each in result.json["problems"])
    assert {each["space"] for each in result.json["problems"]} == {"default"}

    filled.entities.repair("shop.Users")

    assert command("check").code == 0


def test_one_space_can_be_looked_at_alone(command: Command, filled: holdfast.Store) -> None:
    other = filled.space("other")
    fill(other)  # type: ignore[arg-type]  # a space will do
    filled.engine.transact(delete_first(jobs.keys_of(other.prefix).jobs), space=other.prefix)

    assert command("check", "--space", "default").code == 0
    assert command("check", "--space", "other").code == 3
