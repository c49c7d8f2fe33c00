"""Events on a store: each operation one transaction, and what takes more than one."""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.binding import per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Subscription
from holdfast.events.ingestion import AnyEvent
from holdfast.events.layer import Events
from holdfast.events.layout import CHANGED
from holdfast.events.records import EventError, SendManyReply
from holdfast.limits import EVENTS_PER_STREAM_STEP

__all__ = ["KeySubscription", "StoreEvents"]

if TYPE_CHECKING:
    _PerCall = Events
else:
    _PerCall = per_call(Events)


class StoreEvents(_PerCall):
    """The same operations, one transaction each, and those that are more than one transaction."""

    @operation(local=True)
    def send_stream(self, events: Iterable[AnyEvent]) -> SendManyReply:
        """Ingests any number of events in bounded memory, a transaction for each 1,000."""
        accepted = 0
        errors: list[EventError] = []
        remaining = iter(events)
        while step := list(islice(remaining, EVENTS_PER_STREAM_STEP)):
            begin = accepted + len(errors)
            reply = self.send_many(step)
            accepted += reply.accepted
            errors += [
                EventError(position=begin + error.position, message=error.message)
                for error in reply.errors
            ]
        return SendManyReply(accepted=accepted, errors=errors)

    @operation(local=True)
    def subscribe(self, key: str | None = None, *, prefix: str = "") -> "KeySubscription":
        """The changes of a key, or of all keys that begin with `prefix`, from now on."""
        runner = self._runner  # type: ignore[attr-defined]  # set by the class of `per_call`
        wanted = prefix if key is None else key
        return KeySubscription(runner.subscribe(CHANGED + wanted), key)


class KeySubscription:
    """The keys that commits have changed, in commit order; a commit names each key once."""

    def __init__(self, notices: Subscription, key: str | None) -> None:
        self._notices = notices
        self._key = key

    def get(self, timeout: float | None = None) -> str | None:
        """The next changed key, or None after `timeout` seconds of silence or when closed."""
        while (notice := self._notices.get(timeout)) is not None:
            changed = notice.topic.removeprefix(CHANGED)
            if self._key in (None, changed):
                return changed
        return None

    def poll(self) -> list[str]:
        """All keys changed by commits that have returned, and were not yet given."""
        changed = [notice.topic.removeprefix(CHANGED) for notice in self._notices.poll()]
        return [key for key in changed if self._key in (None, key)]

    def close(self) -> None:
        self._notices.close()

    def __enter__(self) -> "KeySubscription":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
