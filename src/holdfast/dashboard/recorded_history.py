"""The history that charts show: metrics that the server records in the space `system`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.dashboard.page_request import PageRequest
from holdfast.errors import HoldfastError
from holdfast.limits import MAX_RANKED_BUCKETS, MAX_RECORDED_REFUSALS
from holdfast.server.recorder import SPACE


class Range(NamedTuple):
    """The time range of a chart and its steps, in seconds."""

    label: str
    seconds: int
    step: int


RANGES = {
    "hour": Range("1 h", 3600, 60),
    "day": Range("1 d", 86400, 600),
    "week": Range("1 w", 7 * 86400, 3600),
}


class Recorded:
    """Reads recorded metrics for one request; a user who may not read them gets none."""

    def __init__(self, request: PageRequest, *, exists: bool) -> None:
        self._request = request
        self.exists = exists

    @classmethod
    async def of(cls, request: PageRequest) -> "Recorded":
        """Returns the history; it is empty if recording is off or the user may not read it."""
        if not request.may("metrics.series", space=SPACE):
            return cls(request, exists=False)
        found = await request.call_in(SPACE, "metrics.defined", names=["commits"])
        return cls(request, exists=bool(found))

    async def series(
        self,
        metric: str,
        entity: Sequence[str] | None = None,
        *,
        value: str = "total",
        span: Range = RANGES["hour"],
    ) -> tuple[list[float], list[float | None]]:
        """Returns times and values of a metric; both are empty if nothing was recorded.

        The current step is left out: it is incomplete, and would look like a drop.
        """
        if not self.exists:
            return [], []
        end = self._request.now // span.step * span.step
        arguments: dict[str, Any] = {"metric": metric, "value": value, "step": span.step}
        if entity is not None:
            arguments["entity"] = list(entity)
        try:
            found = await self._request.call_in(
                SPACE, "metrics.series", start=end - span.seconds, end=end,
                **arguments,
            )  # fmt: skip
        except HoldfastError:  # the metric is not defined: nothing was recorded so far
            return [], []
        return [found.start + at * found.step for at in range(len(found.values))], found.values

    async def jobs(
        self, what: str, queue: str | None = None, *, span: Range = RANGES["hour"]
    ) -> tuple[list[float], list[float | None]]:
        """Returns how many jobs were `put`, `completed` or `failed` in each minute of a range."""
        entity = ["space", self._request.space]
        entity += [] if queue is None else ["queue", queue]
        times, totals = await self.series(f"jobs_{what}", entity, value="last", span=span)
        return times, per_minute(totals, span.step)

    async def refusals(self, seconds: float = 86400) -> dict[str, float]:
        """Returns how often limits of this space refused within the last day, by condition."""
        if not self.exists:
            return {}
        try:
            found = await self._request.call_in(
                SPACE, "metrics.top", metric="refusals", latest=seconds,
                n=MAX_RECORDED_REFUSALS, most_buckets=MAX_RANKED_BUCKETS,
            )  # fmt: skip
        except HoldfastError:  # none so far, or more than a page can look at
            return {}
        wanted = ("space", self._request.space, "condition")
        by_entity = [(tuple(each.entity.components), each.total) for each in found]
        return {entity[3]: total for entity, total in by_entity if entity[:3] == wanted}

    async def by_queue(self, what: str, queues: Sequence[str]) -> dict[str, list[float | None]]:
        """Returns jobs by minute in the last hour for each of a page of queues."""
        return {queue: (await self.jobs(what, queue))[1] for queue in queues}


def per_minute(totals: Sequence[float | None], step: float) -> list[float | None]:
    """Returns the growth of a total by minute. It is unknown before the first value; a gap later
    counts as no growth.

    >>> per_minute([None, 10, 70, None, 130, 5], 60)
    [None, None, 60.0, 0.0, 60.0, 0.0]
    """
    grown: list[float | None] = []
    last: float | None = None
    for total in totals:
        if last is None:
            grown.append(None)
        else:
            grown.append(0.0 if total is None else max(0.0, total - last) * 60 / step)
        last = last if total is None else total
    return grown
