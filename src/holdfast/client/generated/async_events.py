"""Events of a server for programs that `await`.

Made by `make client` from holdfast.client.events.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.client import conversions
from holdfast.client.async_subscriptions import AsyncKeySubscription
from holdfast.client.events import StreamTotal, steps
from holdfast.client.generated.events import AwaitedEvents
from holdfast.events import AnyEvent, Query, Result
from holdfast.events.layout import CHANGED
from holdfast.events.records import SendManyReply

if TYPE_CHECKING:
    from holdfast.client.generated.async_space import AsyncSpace


class AsyncEvents(AwaitedEvents):
    """The events of one space of a server."""

    _space: "AsyncSpace"

    async def read(self, queries: Sequence[Query]) -> list[Result]:
        """Answers many reads from one snapshot, each as if it were asked alone."""
        return conversions.answers(queries, await super().read(queries))

    async def send_stream(
        self, events: Iterable[AnyEvent], schema: str | None = None
    ) -> SendManyReply:
        """Ingests any number of events in bounded memory, a transaction for each 1,000."""
        total = StreamTotal()
        for step in steps(events):
            total.add(await self.send_many(step, schema))
        return total.reply

    def subscribe(self, key: str | None = None, *, prefix: str = "") -> AsyncKeySubscription:
        """Returns the changes of a key, or of all keys that begin with `prefix`, from now on."""
        wanted = prefix if key is None else key
        return AsyncKeySubscription(self._space.subscribe(CHANGED + wanted), key)
