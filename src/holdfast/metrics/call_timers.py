"""The processor time that one call of metrics may take, where its work is a product."""

from holdfast.call_time import CallTimer
from holdfast.limits import (
    MAX_BATCH_SECONDS,
    MAX_MERGE_SECONDS,
    MAX_SCRAPE_SECONDS,
    MAX_WRITER_KEYS,
    SECONDS_PER_ITEM,
)


def timer_of_items(what: str, count: int) -> CallTimer:
    """Returns the timer of a call with `count` writes, hits or specs: other writers wait for it."""
    seconds = MAX_BATCH_SECONDS + min(count, MAX_WRITER_KEYS) * SECONDS_PER_ITEM
    return CallTimer(what, "Split the call: each part is its own transaction.", seconds)


def timer_of_scrape() -> CallTimer:
    """Returns the timer of a scrape, which reads all metrics with `expose`."""
    hint = "Expose fewer metrics, or metrics of fewer entities."
    return CallTimer("the scrape", hint, MAX_SCRAPE_SECONDS)


def timer_of_sketches() -> CallTimer:
    """Returns the timer of a read that merges sketches, which may have 65,536 bins each."""
    hint = "Ask for a shorter range, fewer points or fewer quantiles."
    return CallTimer("merging the sketches", hint, MAX_MERGE_SECONDS)
