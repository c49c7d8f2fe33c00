"""The exposition: the text in which scrapers read the metrics whose spec has `expose`."""

from collections.abc import Sequence
from typing import Final

from holdfast.engine.contract import Reader
from holdfast.errors import BatchTooLong
from holdfast.limits import MAX_SCRAPE_SECONDS
from holdfast.metrics import registry
from holdfast.metrics.call_timers import timer_of_scrape
from holdfast.metrics.entity import readable
from holdfast.metrics.kinds import KINDS
from holdfast.metrics.layout import Keys
from holdfast.metrics.prometheus import ExpositionPage, Family, Sample, lines_of

LEFT_OUT: Final = "holdfast_series_left_out"
CUT: Final = "holdfast_scrape_cut"


def exposition(
    reader: Reader,
    now: float,
    *,
    prefix: tuple[str, ...] | None = None,
    own: Sequence[Family] = (),
    openmetrics: bool = False,
) -> str:
    """Returns the metrics whose spec has `expose`, of one prefix or of all. Reads their series.

    `own` comes first, and takes its names before the metrics do. After `MAX_SCRAPE_SECONDS` the
    other metrics are left out, and the family `holdfast_scrape_cut` names the first of them.
    """
    page = _page_of(own)
    left_out: dict[str, int] = {}
    timer = timer_of_scrape()
    for keys, name, stored in registry.every_spec(reader):
        try:
            timer.check()
            if not stored.metric.expose or prefix not in (None, keys.prefix):
                continue
            family = KINDS[stored.metric.type].family(reader, keys, name, stored.metric, now, timer)
        except BatchTooLong:
            page.add(_cut_family(readable(*keys.prefix, name)))
            break
        missing = page.add(family._replace(help=family.help or _default_help(keys, name, family)))
        if missing:
            left_out[readable(*keys.prefix, name)] = missing
    if left_out:
        page.add(_left_out_family(left_out))
    return _text(page, openmetrics)


def exposition_without_store(own: Sequence[Family], *, openmetrics: bool) -> str:
    """Returns families that are not in a store, for a store that does not answer."""
    return _text(_page_of(own), openmetrics)


def _page_of(own: Sequence[Family]) -> ExpositionPage:
    page = ExpositionPage()
    for family in own:
        page.add(family)
    page.close_families()
    return page


def _text(page: ExpositionPage, openmetrics: bool) -> str:
    lines = [line for family in page.families.values() for line in lines_of(family, openmetrics)]
    return "\n".join([*lines, "# EOF", ""] if openmetrics else [*lines, ""])


def _default_help(keys: Keys, name: str, family: Family) -> str:
    """Returns the help text of a metric whose spec has none."""
    said = "rate of a counter" if family.name.endswith("_per_second") else family.type
    return f"The {said} {name!r} under the prefix {readable(*keys.prefix)!r}."


def _cut_family(metric: str) -> Family:
    said = f"The first metric left out: a scrape takes {MAX_SCRAPE_SECONDS:g} s of processor time."
    return Family(CUT, "gauge", said, [[Sample("", (("metric", metric),), 1)]])


def _left_out_family(left_out: dict[str, int]) -> Family:
    series = [[Sample("", (("metric", name),), count)] for name, count in left_out.items()]
    return Family(
        LEFT_OUT, "gauge", "Series that were too many, or whose names were taken.", series
    )
