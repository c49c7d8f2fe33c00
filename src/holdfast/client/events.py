"""Events of a server: the operations, streams of events, and the changes of keys."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.client import conversions
from holdfast.client.batches import Handle
from holdfast.client.generated.events import CalledEvents, RecordedEvents
from holdfast.events import AnyEvent, Query, Result
from holdfast.events.layout import CHANGED
from holdfast.events.records import EventError, FanOutReport, SendManyReply
from holdfast.events.store import KeySubscription
from holdfast.limits import EVENTS_PER_STREAM_STEP

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace


class ClientEvents(CalledEvents):
    """The events of one space of a server."""

    _space: "ClientSpace"

    def read(self, queries: Sequence[Query]) -> list[Result]:
        """Answers many reads from one snapshot, each as if it were asked alone."""
        return conversions.answers(queries, super().read(queries))

    def send_stream(self, events: Iterable[AnyEvent], schema: str | None = None) -> SendManyReply:
        """Ingests any number of events in bounded memory, a transaction for each 1,000."""
        total = StreamTotal()
        for step in steps(events):
            total.add(self.send_many(step, schema))
        return total.reply

    def subscribe(self, key: str | None = None, *, prefix: str = "") -> KeySubscription:
        """Returns the changes of a key, or of all keys that begin with `prefix`, from now on."""
        wanted = prefix if key is None else key
        return KeySubscription(self._space.subscribe(CHANGED + wanted), key)


class BatchEvents(RecordedEvents):
    """Operations on events that are recorded to be sent together."""

    def read(self, queries: Sequence[Query]) -> Handle[list[Result]]:
        """Answers many reads, each as if it were asked alone."""
        handle = super().read(queries)
        return handle._map(lambda found: conversions.answers(queries, found))


def steps(events: Iterable[AnyEvent]) -> Iterator[list[AnyEvent]]:
    """Yields events in portions, each for one transaction."""
    remaining = iter(events)
    while step := list(islice(remaining, EVENTS_PER_STREAM_STEP)):
        yield step


class StreamTotal:
    """The outcome of all steps of a stream."""

    def __init__(self) -> None:
        self._accepted = 0
        self._errors: list[EventError] = []
        self._background: list[FanOutReport] = []

    def add(self, reply: SendManyReply) -> None:
        begin = self._accepted + len(self._errors)
        self._accepted += reply.accepted
        self._errors += [
            EventError(position=begin + error.position, message=error.message)
            for error in reply.errors
        ]
        self._background += reply.background

    @property
    def reply(self) -> SendManyReply:
        return SendManyReply(
            accepted=self._accepted, errors=self._errors, background=self._background
        )
