"""What a read of many keys costs has a bound: keys times members, candidates or steps."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from holdfast.errors import BadInput, BatchTooLong
from holdfast.store import Store

READS: dict[str, Callable[[Any, list[str]], object]] = {
    "members": lambda events, keys: events.members(keys, op="intersection"),
    "keep_members": lambda events, keys: events.keep_members(keys),
    "top": lambda events, keys: events.top([f"b{key}" for key in keys]),
    "keep_top": lambda events, keys: events.keep_top([f"b{key}" for key in keys]),
    "distinct": lambda events, keys: events.distinct(keys, since=1),
    "keep_distinct": lambda events, keys: events.keep_distinct(keys, since=1),
    "gross": lambda events, keys: events.gross([f"w{key}" for key in keys], since=1),
    "aggregate": lambda events, keys: events.aggregate([f"n{key}" for key in keys]),
    "series": lambda events, keys: events.series("{minute}", "p95", 0, 60_000 * (len(keys) - 1)),
}


@pytest.mark.parametrize("read", READS)
def test_a_read_of_many_keys_that_takes_long_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    handlers = [
        {"targets": ["[k]"], "add": "v"},
        {"targets": ["[b]"], "count_frequency": "v"},
        {"targets": ["[w]"], "add": "v", "windowed_counters": True},
    ]
    attributes = {"k": ["1", "2"], "b": ["b1", "b2"], "w": ["w1", "w2"], "v": ["x", "y"]}
    store.events.send({"name": "e", "attributes": attributes, "handlers": handlers})
    READS[read](store.events, ["1", "2"])
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)

    with pytest.raises(BatchTooLong, match="Ask for fewer keys"):
        READS[read](store.events, ["1", "2"])
    READS[read](store.events, ["1"])


def test_a_template_is_no_longer_than_a_key(store: Store) -> None:
    template = "x" * 4_096 + "{minute}"

    with pytest.raises(BadInput, match="the template has 4104 letters, at most 4096 fit"):
        store.events.gross(template, last="1h")
    with pytest.raises(BadInput, match="the template has 4104 letters"):
        store.events.series(template, "gross", 0, 60_000)
