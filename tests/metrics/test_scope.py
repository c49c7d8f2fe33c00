"""Metrics with a bound prefix and namespace."""

from typing import Any

import pytest

from holdfast.errors import BadMetricKey, EmptyPrefix
from holdfast.metrics import Metrics
from holdfast.store import Store, Tx

SPECS: Any = {"edits": {}, "load": {"type": "gauge"}}


@pytest.mark.every_engine
def test_calls_of_scoped_metrics_need_no_prefix_and_no_namespace(store: Store) -> None:
    app = store.metrics.scoped(prefix="app", namespace="web")
    app.define(SPECS)

    app.incr("edits", ["ann"], 3)

    assert app.rate("edits", ["ann"], latest=3600).total == 3
    where: Any = {"prefix": "app", "namespace": "web"}
    assert store.metrics.rate("edits", ["ann"], latest=3600, **where).total == 3
    assert store.metrics.rate("edits", ["ann"], latest=3600, prefix="app").total == 0


def test_a_call_that_names_its_namespace_keeps_it(store: Store) -> None:
    app = store.metrics.scoped(prefix="app", namespace="web")
    app.define(SPECS)

    app.incr("edits", namespace="api")

    assert app.rate("edits", latest=3600).total == 0
    assert app.rate("edits", latest=3600, namespace="api").total == 1


def test_a_scope_within_a_scope_keeps_what_it_does_not_name(store: Store) -> None:
    web = store.metrics.scoped(prefix="app").scoped(namespace="web")
    web.define(SPECS)

    web.incr("edits")

    [bucket] = store.metrics.buckets(prefix="app").buckets
    assert bucket.startswith("web:app:edits")


def test_writers_readers_and_limiters_have_the_scope_of_their_maker(store: Store) -> None:
    app = store.metrics.scoped(prefix="app", namespace="web")
    with app.writer(SPECS) as writer:
        writer.incr("edits")

    reader = app.reader(SPECS)
    limiter = app.limiter({"calls": "1/minute"})
    limiter.require("calls", ["ann"])

    assert writer.where == {"prefix": ("app",), "namespace": "web"}
    assert reader.get_rate("edits", None, reader.latest(3600)).total() == 1
    assert not limiter.try_incr("calls", ["ann"]).allowed
    assert store.metrics.limiter({"calls": "1/minute"}, "app").try_incr("calls", ["ann"]).allowed


def test_a_transaction_has_scoped_metrics_too(store: Store) -> None:
    store.metrics.define(SPECS, prefix="app")

    def work(tx: Tx) -> Metrics:
        app = tx.metrics.scoped(prefix="app", namespace="web")
        app.incr("edits")
        app.limiter({"calls": "5/minute"}).require("calls", ["ann"])
        with app.writer({"edits": {}}) as writer:
            writer.incr("edits")
        return app

    app = store.transact(work)

    assert type(app) is Metrics
    web = store.metrics.scoped(prefix="app", namespace="web")
    assert web.rate("edits", latest=3600).total == 2
    assert not web.limiter({"calls": "5/minute"}).peek("calls", ["ann"], 5).allowed


def test_a_scoped_exposition_shows_its_prefix_alone(store: Store) -> None:
    for prefix in ("app", "other"):
        store.metrics.define({"edits": {"expose": True, "lifetime": True}}, prefix=prefix)

    shown = store.metrics.scoped(prefix="app").prometheus()

    assert "app_edits_total" in shown
    assert "other_edits" not in shown
    assert "other_edits_total" in store.metrics.scoped(namespace="web").prometheus()


def test_a_scope_that_no_call_could_use_is_refused_at_once(store: Store) -> None:
    with pytest.raises(EmptyPrefix):
        store.metrics.scoped(prefix=[])
    with pytest.raises(BadMetricKey, match="a namespace must be a non-empty string"):
        store.metrics.scoped(namespace="")
