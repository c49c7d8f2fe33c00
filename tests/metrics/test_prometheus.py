"""Metrics as scrapers read them, checked by a parser that is not ours."""

import itertools
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from holdfast import call_time
from holdfast.metrics import call_timers, prometheus
from holdfast.store import Store
from holdfast.testing import Clock

SPECS: Any = {
    "sold": {"lifetime": True, "expose": True, "help": 'What was "sold"\nso \\ far'},
    "hits": {"expose": True, "sequences": [{"timeStep": 10, "expiry": 60}]},
    "load": {"type": "gauge", "expose": True, "resolution": 0.5},
    "wait": {"type": "distribution", "expose": True, "sequences": [{"timeStep": 10, "expiry": 60}]},
    "hidden": {"lifetime": True},
}


@pytest.fixture(autouse=True)
def _written(store: Store, clock: Clock) -> None:
    clock.set(1000)
    metrics = store.metrics
    metrics.define(SPECS, prefix=["My App"])
    where: Any = {"prefix": ["My App"]}
    metrics.incr("sold", {"user_id": 1}, 3, **where)
    metrics.incr("sold", {"user_id": 2}, 5, namespace="de", **where)
    metrics.incr("sold", {"global": True, "components": ['a"b', "x:y"]}, 4, **where)
    metrics.incr("hits", None, 30, at=990, **where)
    metrics.set("load", None, 1.5, **where)
    metrics.incr("hidden", **where)
    for value in range(1, 101):
        metrics.record("wait", ["route", "/"], value, **where)


def _samples(text: str, reader: Any = read_text) -> dict[str, Any]:
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in reader(text)
        for sample in family.samples
    }


def test_all_types_are_exposed_with_their_labels(store: Store) -> None:
    found = _samples(store.metrics.prometheus())

    assert found["My_App_sold_total[('scope', 'local'), ('user_id', '1')]"] == 3
    assert found["My_App_sold_total[('scope', 'de'), ('user_id', '2')]"] == 5
    entity = "('entity', 'a\"b:x%3Ay')"
    assert found[f"My_App_sold_total[{entity}, ('scope', 'global')]"] == 4
    assert found["My_App_hits_per_second[('scope', 'local'), ('window', '60')]"] == 0.5
    assert found["My_App_load[('scope', 'local')]"] == 1.5
    labels = "('route', '/'), ('scope', 'local')"
    assert found[f"My_App_wait_sum[{labels}]"] == 5050
    assert found[f"My_App_wait_count[{labels}]"] == 100
    assert found[f"My_App_wait[('quantile', '0.5'), {labels}]"] == pytest.approx(49.9, 0.01)
    assert "hidden" not in store.metrics.prometheus()


def test_openmetrics_names_the_family_and_ends_with_eof(store: Store) -> None:
    text = store.metrics.prometheus(openmetrics=True)

    assert text.endswith("# EOF\n")
    assert "# TYPE My_App_sold counter" in text
    assert "# TYPE My_App_sold_total counter" in store.metrics.prometheus()
    assert len(_samples(text, read_open)) == len(_samples(store.metrics.prometheus()))


def test_the_highest_series_come_first(store: Store) -> None:
    lines = [line for line in store.metrics.prometheus().splitlines() if "sold_total{" in line]

    assert [int(line.rsplit(" ", 1)[1]) for line in lines] == [5, 4, 3]


def test_what_is_too_much_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_EXPOSED_SERIES", 2)

    text = store.metrics.prometheus()

    assert text.count("My_App_sold_total{") == 2
    assert 'holdfast_series_left_out{metric="My App:sold"} 1' in text


@pytest.mark.parametrize("kind", ["counter", "lifetime", "gauge", "distribution"])
def test_a_scrape_that_takes_too_long_ends_and_names_the_first_metric_that_is_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    spec: Any = {"lifetime": True} if kind == "lifetime" else {"type": kind}
    store.metrics.define({"large": {**spec, "expose": True}}, prefix=["Other"])
    with store.metrics.writer({"large": {**spec, "expose": True}}, prefix=["Other"]) as writer:
        write = {"gauge": writer.set, "distribution": writer.record}.get(kind, writer.incr)
        for number in range(20):
            write("large", ["user", number], 1)
    store.metrics.define({"last": {"lifetime": True, "expose": True}}, prefix=["Zoo"])
    seconds = itertools.count()  # a second passes between two looks at the clock
    monkeypatch.setattr(call_time, "thread_time", lambda: float(next(seconds)))
    monkeypatch.setattr(call_timers, "MAX_SCRAPE_SECONDS", 22.0)

    text = store.metrics.prometheus(prefix=["Other"])
    whole = store.metrics.prometheus()

    assert 'holdfast_scrape_cut{metric="Other:large"} 1' in text
    assert "Other_large" not in text
    assert "My_App_sold_total{" in whole  # what came before the time was over
    assert 'holdfast_scrape_cut{metric="Other:large"} 1' in whole
    assert "Zoo_last" not in whole


def test_a_name_or_a_series_that_is_taken_is_left_out_and_counted(store: Store) -> None:
    exposed: dict[str, Any] = {"lifetime": True, "expose": True}
    store.metrics.define({"b_c": exposed}, prefix=["a"])
    store.metrics.define({"c": exposed}, prefix=["a", "b"])
    store.metrics.define({"b_c_total": {"type": "gauge", "expose": True}}, prefix=["a"])
    for entity in (["u", 1], ["x"], ["entity", "x"]):  # the last two have the same labels
        store.metrics.incr("b_c", entity, prefix=["a"])
    for entity in (["u", 1], ["u", 2]):
        store.metrics.incr("c", entity, prefix=["a", "b"])
    store.metrics.set("b_c_total", None, 5, prefix=["a"])

    text = store.metrics.prometheus(openmetrics=True)
    families = {family.name: family for family in read_open(text)}  # type: ignore[no-untyped-call]  # it has no types

    shown = [sample.labels for sample in families["a_b_c"].samples]
    assert [labels.get("u", labels.get("entity")) for labels in shown] == ["x", "1", "2"]
    left_out = families["holdfast_series_left_out"].samples
    assert {sample.labels["metric"]: sample.value for sample in left_out} == {
        "a:b_c": 1,
        "a:b:c": 1,
        "a:b_c_total": 1,
    }


def test_quantiles_are_of_the_window_and_sum_and_count_of_the_whole_life(
    store: Store, clock: Clock
) -> None:
    clock.advance(seconds=5000)
    store.sweep()

    text = store.metrics.prometheus()

    assert "My_App_wait_count" in text
    assert "quantile" not in text
    assert 'My_App_hits_per_second{scope="local",window="60"} 0.0' in text


def test_values_below_zero_do_not_spoil_a_page_of_openmetrics(store: Store) -> None:
    store.metrics.define({"balance": {"type": "distribution", "expose": True}})
    for value in (-7, -5, 3):
        store.metrics.record("balance", None, value)

    found = _samples(store.metrics.prometheus(openmetrics=True), read_open)
    in_text = _samples(store.metrics.prometheus())

    assert found["WRStats_balance_count[('scope', 'local')]"] == 3
    assert "WRStats_balance_sum[('scope', 'local')]" not in found
    assert in_text["WRStats_balance_sum[('scope', 'local')]"] == -9
    assert len([name for name in found if name.startswith("WRStats_balance[")]) == 0
    assert len([name for name in in_text if name.startswith("WRStats_balance[")]) == 3


def test_one_prefix_may_be_asked_for(store: Store) -> None:
    store.metrics.define({"x": {"expose": True, "lifetime": True}}, prefix="b")
    store.metrics.incr("x", prefix="b")

    assert store.metrics.prometheus(prefix="b") == (
        "# HELP b_x_total The counter 'x' under the prefix 'b'.\n"
        '# TYPE b_x_total counter\nb_x_total{scope="local"} 1\n'
    )


def test_the_accept_header_chooses_the_format() -> None:
    assert prometheus.content_type("application/openmetrics-text; version=1.0.0") == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    )
    assert prometheus.content_type("*/*") == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize(
    ("components", "labels"),
    [
        ([], {}),
        (["a", "1", "b", "2"], {"a": "1", "b": "2"}),
        (["a", "1", "a", "2"], {"entity": "a:1:a:2"}),
        (["scope", "1"], {"entity": "scope:1"}),
        (["__name__", "1"], {"entity": "__name__:1"}),
        (["1a", "1"], {"entity": "1a:1"}),
        (["a"], {"entity": "a"}),
    ],
)
def test_components_become_labels_if_they_look_like_names_and_values(
    components: list[str], labels: dict[str, str]
) -> None:
    assert dict(prometheus.labels("local", components)) == {"scope": "local", **labels}


def test_a_sum_beyond_all_doubles_is_written_as_scrapers_read_it(store: Store) -> None:
    store.metrics.define({"t": {"type": "distribution", "expose": True}})
    store.metrics.record("t", None, 1.7e308, 2)

    assert 'WRStats_t_sum{scope="local"} +Inf' in store.metrics.prometheus()


@pytest.mark.parametrize(("openmetrics", "read"), [(False, read_text), (True, read_open)])
def test_a_counter_is_there_before_it_has_counted(
    store: Store, openmetrics: bool, read: Any
) -> None:
    specs: Any = {
        "orders": {"expose": True, "lifetime": True},
        "clicks": {"expose": True},
        "times": {"expose": True, "type": "distribution"},
        "level": {"expose": True, "type": "gauge"},
    }
    store.metrics.define(specs, prefix="new")

    before = _samples(store.metrics.prometheus(openmetrics, prefix="new"), read)
    store.metrics.incr("orders", None, 2, prefix="new")
    after = _samples(store.metrics.prometheus(openmetrics, prefix="new"), read)

    local = "('scope', 'local')"
    assert before == {
        f"new_orders_total[{local}]": 0,
        f"new_clicks_per_second[{local}, ('window', '3600')]": 0,
        f"new_times_sum[{local}]": 0,
        f"new_times_count[{local}]": 0,
    }
    assert after[f"new_orders_total[{local}]"] == 2


@pytest.mark.parametrize(("openmetrics", "read"), [(False, read_text), (True, read_open)])
def test_every_family_says_what_it_is(store: Store, openmetrics: bool, read: Any) -> None:
    families = list(read(store.metrics.prometheus(openmetrics)))

    assert {family.name.removesuffix("_total"): family.type for family in families} == {
        "My_App_hits_per_second": "gauge",
        "My_App_load": "gauge",
        "My_App_sold": "counter",
        "My_App_wait": "summary",
    }
    assert all(family.documentation for family in families)


@pytest.mark.parametrize(("openmetrics", "read"), [(False, read_text), (True, read_open)])
def test_any_text_may_be_a_label(store: Store, openmetrics: bool, read: Any) -> None:
    odd = [
        'a"b',
        "back\\slash",
        "new\nline",
        "\\n",
        "",
        "}",
        "# EOF",
        "\u00e9\u4e2d",
        "a,b=c",
        "\r\t",
    ]
    store.metrics.define({"n": {"expose": True, "lifetime": True}}, prefix="odd")
    for text in odd:
        store.metrics.incr("n", ["text", text], prefix="odd")

    [family] = read(store.metrics.prometheus(openmetrics, prefix="odd"))

    assert {sample.labels["text"] for sample in family.samples} == set(odd)
