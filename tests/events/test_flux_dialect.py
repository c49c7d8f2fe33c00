"""The flux dialect: what it reads otherwise than the native one, and the deviations from Flux."""

from typing import Any

import pytest

from holdfast.errors import BadInput, InvalidEvent, InvalidEventSchema, UnknownSchema
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import values

AT = 1_344_427_200  # 2012-08-08T12:00:00Z, a Wednesday


def deploy(store: Store, schema: Any) -> None:
    store.events.deploy(schema, "f", "flux")


def send(store: Store, name: str, score: int | None = None, **attributes: Any) -> Any:
    event: dict[str, Any] = {"name": name, "attributes": attributes}
    if score is not None:
        event["score"] = score
    return store.events.send(event, "f")


def handler(target: str = "['k']", value: str = "v", **fields: Any) -> dict[str, Any]:
    return {"targets": [target], "add": value, **fields}


def keys(store: Store) -> list[str]:
    return [info.key for info in store.events.keys(limit=1_000).keys]


# --- the dialect ----------------------------------------------------------------------------------


def test_a_prefix_matches_character_by_character(store: Store) -> None:
    deploy(store, {"a": [handler("[n]")], "": [handler("['all']", "n")]})

    for name in ("a.b", "ab", "a:b", ":x", "b"):
        send(store, name, n=name, v="v")

    assert set(keys(store)) == {"a.b", "ab", "a:b", "all"}
    assert store.events.size("all") == 5


def test_handlers_run_in_the_order_of_the_text(store: Store) -> None:
    deploy(store, {"ab": [handler(max_stored_values=1)], "a": [handler(value="w")]})

    send(store, "ab", v="first", w="second")

    assert values(store, "k") == ["second", "first"]


def test_the_last_step_names_in_every_target_and_for_boards_too(store: Store) -> None:
    deploy(
        store,
        {
            "e": [
                {"targets": ["[u].fol", "['feed']"], "add": "v"},
                {"targets": ["[u].fol"], "count_frequency": "v"},
            ]
        },
    )

    send(store, "e", u="u", v="x")

    assert values(store, "u:fol:feed") == ["x"]
    assert store.events.top("u:fol")[0].value == "x"


def test_identifiers_and_steps_are_nearly_any_text(store: Store) -> None:
    deploy(store, {"e": [handler("[my user!].the feed.2012-x")]})
    deploy(store, {"e": [handler("[my user!].fol-lö wers")]})

    store.events.send({"name": "e", "attributes": {"my user!": "ann", "v": "x"}}, "f")

    assert values(store, "ann:fol-lö wers") == ["x"]


def test_labels_are_those_of_flux(store: Store) -> None:
    labels = "[@daily, @weekly, @monthly, @day, @week, @month]"
    deploy(store, {"e": [handler(labels)]})
    store.events.configure(timezone="Asia/Tokyo")

    send(store, "e", AT, v="x")
    send(store, "e", 1_325_376_000, v="y")  # 2012-01-01, a Sunday
    send(store, "e", 1_293_840_000, v="z")  # 2011-01-01, before the first Sunday

    assert set(keys(store)) == {
        *("daily-08-08-12", "weekly-32-12", "monthly-08-12"),
        *("daily-01-01-12", "weekly-01-12", "monthly-01-12"),
        *("daily-01-01-11", "weekly-00-11", "monthly-01-11"),
    }


def test_unique_ids_grow_and_are_fresh_for_each_evaluation(store: Store) -> None:
    deploy(store, {"e": [handler(value="@unique_id"), handler(value="@uniqueId")]})

    send(store, "e")

    found = [int(value) for value in values(store, "k")]
    assert len(set(found)) == 2
    assert all(number >> 20 == int(store.read_clock()) for number in found)


def test_an_attribute_hides_a_built_in_of_its_name(store: Store) -> None:
    deploy(store, {"e": [handler("[@event_name, @daily]"), handler("['n']", "@eventName")]})

    attributes = {"@event_name": "mine", "@daily": "today", "v": "x"}
    store.events.send({"name": "e", "attributes": attributes}, "f")

    assert keys(store) == ["mine", "n", "today"]
    assert values(store, "n") == ["e"]


def test_of_several_operations_the_first_counts_and_unknown_fields_are_ignored(
    store: Store,
) -> None:
    deploy(store, {"e": [handler(remove="v", count_frequency="v", colour="red")]})

    send(store, "e", v="x")

    assert [(info.key, info.kind) for info in store.events.keys().keys] == [("k", "set")]


def test_an_empty_text_is_no_value(store: Store) -> None:
    deploy(store, {"e": [handler()]})

    send(store, "e", v="")

    assert keys(store) == []


@pytest.mark.parametrize("many", [1, 40, 270, 300, 600])
def test_an_add_takes_the_time_given_older_or_not(store: Store, many: int) -> None:
    deploy(store, {"e": [handler()]})
    events = [
        {"name": "e", "attributes": {"v": f"m{number}"}, "score": 1_000 + number}
        for number in range(many)
    ]
    store.events.send_many(events, "f")

    send(store, "e", 5, v="m0")

    assert store.events.contains("k", "m0").at == 5_000  # type: ignore[union-attr]  # it is there
    assert store.events.size("k") == many
    assert store.events.members("k", limit=many).members[-1].value == "m0"


def test_the_same_score_again_leaves_the_place(store: Store) -> None:
    deploy(store, {"e": [handler()]})

    for value in ("a", "b", "a"):
        send(store, "e", 7, v=value)

    assert values(store, "k") == ["b", "a"]


@pytest.mark.parametrize("many", [2, 40, 300])
def test_the_same_score_again_leaves_the_place_in_a_set_of_any_size(
    store: Store, many: int
) -> None:
    deploy(store, {"e": [handler()]})
    for number in range(many):
        send(store, "e", 7, v=f"m{number}")

    send(store, "e", 7, v="m0")

    assert store.events.members("k", limit=many).members[-1].value == "m0"


@pytest.mark.parametrize("many", [2, 40, 300])
def test_an_add_without_a_score_comes_last_even_in_one_transaction(store: Store, many: int) -> None:
    deploy(store, {"e": [handler()]})
    added = [f"m{number}" for number in range(many)]

    store.events.send_many(
        [{"name": "e", "attributes": {"v": value}} for value in [*added, "m0"]], "f"
    )

    found = [member.value for member in store.events.members("k", limit=many).members]
    assert found == ["m0", *reversed(added[1:])]


@pytest.mark.parametrize("many", [1, 40, 300])
@pytest.mark.parametrize("score", [None, 2_000_000_000])
def test_an_add_moves_a_member_back_from_the_future(
    store: Store, many: int, score: int | None
) -> None:
    deploy(store, {"e": [handler()]})
    for number in range(many):
        send(store, "e", 2_100_000_000 + number, v=f"m{number}")

    send(store, "e", score, v="m0")

    assert store.events.members("k", limit=many).members[-1].value == "m0"
    assert store.events.size("k") == many


def test_a_set_and_a_board_are_at_one_key(store: Store) -> None:
    deploy(store, {"e": [handler(), {"targets": ["['k']"], "count_frequency": "v"}]})

    send(store, "e", v="x")
    send(store, "e", v="x")

    assert values(store, "k") == ["x"]
    assert store.events.top("k")[0].count == 2
    assert [info.kind for info in store.events.keys().keys] == ["set", "leaderboard"]
    assert store.events.describe("k").kinds == ["set", "leaderboard"]
    assert store.events.forget("k")
    assert keys(store) == []
    assert store.events.top("k") == []


def test_a_board_beside_a_set_expires_by_itself(store: Store, clock: Clock) -> None:
    board = {"targets": ["['k']"], "count_frequency": "v", "expire_after": 60}
    deploy(store, {"e": [handler(), board]})
    send(store, "e", v="x")

    clock.advance(seconds=61)
    store.sweep()

    assert [info.kind for info in store.events.keys().keys] == ["set"]


def test_a_board_keeps_no_counters(store: Store) -> None:
    deploy(store, {"e": [{"targets": ["['k']"], "count_frequency": "v"}]})

    send(store, "e", v="x")

    assert store.events.gross("k") == store.events.distinct("k").count == 0


def test_a_flux_schema_runs_only_for_events_that_are_addressed_to_it(store: Store) -> None:
    deploy(store, {"e": [handler()]})

    assert store.events.send({"name": "e", "attributes": {"v": "x"}}).handlers == 0
    assert store.events.dialects() == {"f": "flux"}
    assert store.events.explain({"name": "e"}, "f").dialect == "flux"
    with pytest.raises(UnknownSchema):
        store.events.send({"name": "e"}, "g")


def test_a_native_schema_may_be_addressed_too(store: Store) -> None:
    store.events.deploy({"e": [handler("['one']")]}, "one")
    store.events.deploy({"e": [handler("['two']")]}, "two")

    store.events.send({"name": "e:x", "attributes": {"v": "x"}}, "two")

    assert keys(store) == ["two"]


def test_an_event_may_carry_handlers_in_the_native_dialect_too(store: Store) -> None:
    store.events.send({"name": "e", "attributes": {"v": "x"}, "handlers": [handler()]})

    assert values(store, "k") == ["x"]
    with pytest.raises(InvalidEvent, match="exactly one operation"):
        store.events.send({"name": "e", "handlers": [{"targets": ["['k']"]}]})


def test_text_with_comments_is_a_schema_in_both_dialects(store: Store) -> None:
    text = '{"e": [{"targets": ["[\'//k\']"], /* why */ "add": "v"}]} // end'

    store.events.deploy(text)
    deploy(store, text)

    assert store.events.schemas()["default"] == store.events.schemas()["f"]


@pytest.mark.parametrize("text", ["[]", "{", '"x"'])
def test_only_an_object_is_a_schema(store: Store, text: str) -> None:
    with pytest.raises(InvalidEventSchema):
        deploy(store, text)


def test_the_flux_dialect_has_no_time_zone(store: Store) -> None:
    with pytest.raises(BadInput, match="no time zone"):
        store.events.deploy({}, "f", "flux", timezone="Asia/Tokyo")


# --- deviations from the running original ---------------------------------------------------------


def test_d1_sets_are_bounded_by_place(store: Store) -> None:
    deploy(store, {"e": [handler(max_stored_values=2)]})

    for value, score in (("a", 5), ("b", 9), ("c", 7), ("d", 1)):
        send(store, "e", score, v=value)

    assert values(store, "k") == ["b", "c"]
    assert store.events.distinct("k").count == 4


def test_d8_a_board_keeps_a_hundred(store: Store) -> None:
    deploy(store, {"e": [{"targets": ["['k']"], "count_frequency": "v"}]})

    send(store, "e", v=[str(number) for number in range(150)])

    assert len(store.events.top("k")) == 100


def test_d9_the_built_ins_of_the_document_are_there(store: Store) -> None:
    deploy(store, {"e": [handler("['ip']", "@request_ip"), handler("[@day]")]})

    store.events.send({"name": "e", "ip": "10.0.0.1", "score": AT, "attributes": {"v": "x"}}, "f")

    assert values(store, "ip") == ["10.0.0.1"]
    assert values(store, "daily-08-08-12") == ["x"]


@pytest.mark.parametrize(
    "broken",
    [
        "text",
        {"targets": "['k']", "add": "v"},
        {"targets": ["k"], "add": "v"},
        {"targets": ["['k'"], "add": "v"},
        {"targets": ["['k']"], "add": 5},
        {"add": "v"},
    ],
)
def test_d10_a_malformed_handler_is_skipped_alone(store: Store, broken: Any) -> None:
    deploy(store, {"e": [handler("['one']"), broken, handler("['two']")], "x": "none"})

    reply = send(store, "e", v="x")

    assert reply.handlers == 2
    assert keys(store) == ["one", "two"]
    assert len(store.events.problems("f")) == 2


def test_d12_and_d18_a_name_without_value_skips_its_handler(store: Store) -> None:
    deploy(store, {"e": [handler("[@unknown]"), handler("[missing].followers"), handler()]})

    reply = send(store, "e", v="x")

    assert [skipped.missing for skipped in reply.skipped] == ["@unknown", "missing"]
    assert keys(store) == ["k"]


@pytest.mark.parametrize("spelling", ["counts", "counters"])
def test_d13_both_spellings_switch_counters_off(store: Store, spelling: str) -> None:
    off: dict[str, Any] = {f"store_gross_{spelling}": False, f"store_distinct_{spelling}": False}
    deploy(store, {"e": [handler(**off)]})
    store.events.deploy({"e": [handler("['native']", **off)]})

    send(store, "e", v="x")
    store.events.send({"name": "e", "attributes": {"v": "x"}})

    for key in ("k", "native"):
        assert (store.events.gross(key), store.events.distinct(key).count) == (0, 0)
        assert values(store, key) == ["x"]


def test_d14_and_d15_numbers_booleans_and_lists_are_values(store: Store) -> None:
    deploy(store, {"e": [handler("[t]")]})

    send(store, "e", t=["a", "b"], v=[7, True, 1.5])

    assert sorted(values(store, "a")) == sorted(values(store, "b")) == ["1.5", "7", "true"]


def test_d20_dots_and_commas_are_part_of_a_literal(store: Store) -> None:
    deploy(store, {"e": [handler("['a.b,c'].d")]})

    send(store, "e", v="x")

    assert keys(store) == ["a.b,c:d"]


def test_d21_keys_that_are_not_ascii_are_counted(store: Store) -> None:
    deploy(store, {"e": [handler("['größe']")]})

    send(store, "e", v="ü")

    assert (store.events.gross("größe"), store.events.distinct("größe").count) == (1, 1)


def test_d26_a_key_that_expands_twice_is_written_once(store: Store) -> None:
    deploy(store, {"e": [handler("['a','a']")]})

    send(store, "e", v="x")

    assert store.events.gross("a") == 1


def test_maxstoredvalues_of_the_older_code_is_understood(store: Store) -> None:
    deploy(store, {"e": [handler(maxStoredValues=1)]})

    send(store, "e", v=["x", "y"])

    assert values(store, "k") == ["y"]
