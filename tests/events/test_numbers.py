"""Aggregates, weights, half-lives and windows."""

import random
from typing import Any

import pytest

from holdfast.errors import BadInput, InvalidEventSchema
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send

DAY = 86_400


@pytest.fixture
def shop(store: Store) -> Store:
    store.events.deploy(
        {
            "buy": [
                {"targets": ["['sales']", "[@day]"], "aggregate": "price"},
                {"targets": ["['buyers']", "[@day]"], "add": "who"},
                {"targets": ["['best']", "[@day]"], "count_frequency": "what", "weight": "price"},
                {"targets": ["['trend']"], "count_frequency": "what", "half_life": "1d"},
            ]
        }
    )
    return store


def buy(store: Store, what: str, price: Any, at: Any = None, who: str = "ann") -> Any:
    event = {"name": "buy", "attributes": {"what": what, "price": price, "who": who}}
    return store.events.send(event if at is None else {**event, "at": at})


@pytest.mark.every_engine
def test_numbers_are_summed_and_compared(shop: Store) -> None:
    for price, hour in ((5, 9), (-2, 12), (30, 10)):
        buy(shop, "a", price, f"2024-01-01T{hour:02}:00Z")

    found = shop.events.aggregate("sales:2024-01-01")

    assert (found.count, found.sum, found.min, found.max) == (3, 33, -2, 30)
    assert (found.avg, found.last) == (11.0, -2)
    assert shop.events.aggregate("unknown").count == 0


def test_a_sum_of_floats_does_not_drift(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['n']"], "aggregate": "n"}]})

    send("e", n=[0.1] * 1_000)
    send("e", n=1e16)
    send("e", n=-1e16)

    assert store.events.aggregate("n").sum == pytest.approx(100, abs=1e-9)


def test_percentiles_are_one_percent_close(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['n']"], "aggregate": "n"}]})
    chance = random.Random(1)
    numbers = sorted(chance.lognormvariate(3, 2) * chance.choice((1, 1, 1, -1)) for _ in range(999))

    send("e", n=numbers)

    found = store.events.aggregate("n", percentiles=[0, 10, 50, 99, 100]).percentiles
    for percent in (10, 50, 99):
        truth = numbers[round(percent / 100 * 998)]
        assert found[f"p{percent}"] == pytest.approx(truth, rel=0.011)
    assert (found["p0"], found["p100"]) == (numbers[0], numbers[-1])


def test_a_value_that_is_no_number_skips_the_handler_and_says_so(shop: Store) -> None:
    reply = buy(shop, "a", "free", "2024-01-01")

    errors = {each.handler: each.error for each in reply.skipped}
    assert errors["buy[0]"] == "expected a number, not 'free'"


def test_numbers_stand_beside_a_set_of_the_same_key_and_expire(
    store: Store, clock: Clock, send: Send
) -> None:
    life = {"targets": ["['k']"], "aggregate": "n", "expire_after": 60}
    store.events.deploy({"e": [{"targets": ["['k']"], "add": "n"}, life]})

    send("e", n=7)

    assert [(info.key, info.kind) for info in store.events.keys().keys] == [
        ("k", "set"),
        ("k", "numbers"),
    ]
    assert store.events.describe("k").numbers == 1
    clock.advance(seconds=30)
    send("e", n=8)
    clock.advance(seconds=61)
    store.sweep()
    assert store.events.aggregate("k").count == 0
    assert store.events.size("k") == 2
    assert store.events.forget("k")
    assert store.events.keys().keys == []


def test_a_weight_counts_as_much_as_it_says(shop: Store) -> None:
    for what, price in (("a", 5), ("b", 3), ("a", 10), ("b", 0)):
        buy(shop, what, price, "2024-01-01T12:00Z")

    top = shop.events.top("best:2024-01-01")

    assert [(entry.value, entry.count) for entry in top] == [("a", 15), ("b", 3)]


@pytest.mark.parametrize("weight", ["much", "-1", "1.5", str(2**40)])
def test_a_weight_is_a_whole_number(store: Store, send: Send, weight: str) -> None:
    store.events.deploy({"e": [{"targets": ["['b']"], "count_frequency": "'x'", "weight": "w"}]})

    [skipped] = send("e", w=weight).skipped

    assert skipped.error is not None
    assert skipped.error.startswith("a weight must be a whole number")


def test_a_weighted_board_keeps_its_promise_when_it_overflows(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {
                    "targets": ["['b']"],
                    "count_frequency": "v",
                    "weight": "w",
                    "max_stored_values": 5,
                }
            ]
        }
    )
    chance = random.Random(3)
    truth: dict[str, int] = {}
    events = []
    for _ in range(3_000):
        value, weight = f"v{int(2_500 * chance.random() ** 3)}", chance.randrange(5)
        truth[value] = truth.get(value, 0) + weight
        events.append({"name": "e", "attributes": {"v": value, "w": weight}})
    store.events.send_many(events)

    for entry in store.events.top("b", k=1_000):
        assert truth[entry.value] <= entry.count <= truth[entry.value] + entry.error


def test_a_board_with_a_half_life_ranks_what_is_frequent_now(shop: Store, clock: Clock) -> None:
    for _ in range(8):
        buy(shop, "old", 1)
    clock.advance(seconds=4 * DAY)
    buy(shop, "new", 1)

    first, second = shop.events.top("trend")

    assert (first.value, second.value) == ("new", "old")
    assert first.score == pytest.approx(1, rel=1e-3)
    assert second.score == pytest.approx(0.5, rel=1e-3)
    clock.advance(seconds=DAY)
    assert shop.events.top("trend")[0].score == pytest.approx(0.5, rel=1e-3)


def test_fading_counts_go_on_over_many_half_lives(shop: Store, clock: Clock) -> None:
    for number in range(100):
        for value in {"steady", f"v{number % 40}"}:
            buy(shop, value, 1)
        clock.advance(seconds=DAY)

    top = shop.events.top("trend", k=3)

    assert top[0].value == "steady"
    assert top[0].score == pytest.approx(1, rel=0.01)  # 1/2 + 1/4 + ...
    assert [entry.value for entry in top[1:]] == ["v19", "v18"]


def test_fading_boards_are_merged(store: Store, send: Send, clock: Clock) -> None:
    store.events.deploy({"e": [{"targets": ["[k]"], "count_frequency": "v", "half_life": 3600}]})
    send("e", k="a", v="x")
    send("e", k="b", v="x")
    clock.advance(seconds=3_600)
    send("e", k="b", v="y")

    found = store.events.top(["a", "b"], k=5)

    assert [(entry.value, round(entry.score or 0, 2)) for entry in found] == [("x", 1), ("y", 1)]


# --- windows --------------------------------------------------------------------------------------


def test_a_window_reads_the_steps_that_began_within_it(shop: Store, clock: Clock) -> None:
    for number in range(10):
        buy(shop, f"w{number}", number + 1, who=f"u{number}")
        clock.advance(seconds=DAY)
    clock.advance(seconds=-DAY)

    assert shop.events.distinct("buyers:{day}", last="7d").count == 7
    assert shop.events.gross("buyers:{day}", last=7 * DAY) == 7
    assert [entry.value for entry in shop.events.top("best:{day}", 2, last="3d")] == ["w9", "w8"]
    assert shop.events.aggregate("sales:{day}", last="2d").sum == 19
    assert len(shop.events.members("buyers:{day}", last="4d").members) == 4


def test_a_series_may_be_of_every_aggregate(shop: Store) -> None:
    for price in (1, 2, 6):
        buy(shop, "a", price, "2024-02-02T12:00Z")

    def series(by: str) -> list[Any]:
        points = shop.events.series("sales:{day}", by, "2024-02-01", "2024-02-02")
        return [point.value for point in points]

    assert series("sum") == [0, 9]
    assert (series("min"), series("max"), series("avg")) == ([None, 1], [None, 6], [None, 3.0])
    assert (series("count"), series("last")) == ([0, 3], [None, 6])
    assert series("p50") == [None, pytest.approx(2, rel=0.01)]


@pytest.mark.parametrize("by", ["p101", "median", "", None, 5])
def test_a_series_is_by_something_known(shop: Store, by: Any) -> None:
    with pytest.raises(BadInput, match="a series must be by"):
        shop.events.series("sales:{day}", by, "2024-02-01", "2024-02-02")


@pytest.mark.parametrize("key", ["sales", "sales:{moon}", "sales:{day}:{hour}"])
def test_a_window_needs_a_template(shop: Store, key: str) -> None:
    with pytest.raises(BadInput, match="needs one time label"):
        shop.events.distinct(key, last="7d")


def test_hours_and_quarters_are_labels(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[@hourly, @quarter, @quarterly]"], "add": "'v'"}]})

    send("e", _at="2012-08-08T18:43Z")

    assert [info.key for info in store.events.keys().keys] == ["2012-08-08T18", "2012-Q3"]
    points = store.events.series("{quarter}", "gross", "2011-12-31", "2012-Q4")
    assert [(point.label, point.value) for point in points] == [
        ("2011-Q4", 0),
        ("2012-Q1", 0),
        ("2012-Q2", 0),
        ("2012-Q3", 1),
        ("2012-Q4", 0),
    ]


def test_a_schema_may_have_a_time_zone_and_a_first_day_of_the_week(
    store: Store, send: Send
) -> None:
    handler = {"targets": ["[where]", "[@day, @week]"], "add": "'v'"}
    store.events.deploy({"e": [{**handler, "targets": ["['utc']", "[@day, @week]"]}]})
    store.events.deploy(
        {"e": [{**handler, "targets": ["['tokyo']", "[@day, @week]"]}]},
        name="tokyo",
        timezone="Asia/Tokyo",
        week_starts_on="sunday",
    )

    send("e", _at="2024-01-06T23:00Z")  # a Saturday; in Tokyo it is Sunday

    assert [info.key for info in store.events.keys().keys] == [
        "tokyo:2024-01-07",
        "tokyo:2024-W02",
        "utc:2024-01-06",
        "utc:2024-W01",
    ]
    weeks = store.events.series("tokyo:{week}", "gross", "2024-01-07", "2024-01-13", "tokyo")
    assert [(point.label, point.value) for point in weeks] == [("2024-W02", 1)]
    assert store.events.schemas()["tokyo"]["e"][0]["add"] == "'v'"


@pytest.mark.parametrize(
    "options", [{"timezone": "Nowhere"}, {"week_starts_on": "mon"}, {"dialect": "sql"}]
)
def test_options_of_a_schema_are_checked(store: Store, options: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        store.events.deploy({}, **options)  # type: ignore[arg-type]  # one of them each


@pytest.mark.parametrize("field", ["half_life", "weight"])
def test_only_a_leaderboard_has_weights_and_half_lives(store: Store, field: str) -> None:
    with pytest.raises(InvalidEventSchema, match=f"{field}: only a handler with count_frequency"):
        store.events.deploy({"e": [{"targets": ["['k']"], "add": "v", field: "1"}]})


def test_percentiles_are_named_as_they_were_asked_for(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['n']"], "aggregate": "n"}]})
    send("e", n=[1, 2, 3])

    found = store.events.aggregate("n", percentiles=[50.0, 99.99999, 100]).percentiles

    assert list(found) == ["p50", "p99.99999", "p100"]


def test_digits_with_underscores_are_no_number(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['n']"], "aggregate": "n"}]})

    reply = send("e", n="1_000")

    assert [each.error for each in reply.skipped] == ["expected a number, not '1_000'"]


def test_sums_and_numbers_beyond_64_bits_are_floats(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['n']"], "aggregate": "n"}]})

    for _ in range(10):
        send("e", n=2**63 - 1)
    send("e", n=10**25)
    send("e", n=-(10**25))

    found = store.events.aggregate("n", percentiles=[])
    assert (found.count, found.sum, found.max) == (12, 10.0 * 2**63, 1e25)


def test_a_sum_that_has_been_beyond_64_bits_stays_exact(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['n']"], "aggregate": "n"}]})

    for number in (2**62, 2**62, 3, -(2**62), -(2**62)):
        send("e", n=number)

    assert store.events.aggregate("n").sum == 3


def test_numbers_of_several_keys_have_a_sum_beyond_64_bits(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[k]"], "aggregate": "n"}]})
    for key in "abc":
        send("e", k=key, n=2**63 - 1)

    assert store.events.aggregate(["a", "b", "c"]).sum == 3.0 * 2**63
