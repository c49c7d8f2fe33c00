"""Events on a store: one transaction per operation, and operations that take several."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.binding import Runner, per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Subscription
from holdfast.events import fan_outs
from holdfast.events.ingestion import AnyEvent
from holdfast.events.layer import Events
from holdfast.events.layout import CHANGED
from holdfast.events.records import EventError, FanOutReport, SendManyReply
from holdfast.limits import EVENTS_PER_STREAM_STEP

__all__ = ["KeySubscription", "StoreEvents"]

if TYPE_CHECKING:
    _PerCall = Events
else:
    _PerCall = per_call(Events)


class StoreEvents(_PerCall):
    """The events of one space of a store."""

    _runner: Runner

    if TYPE_CHECKING:

        def __init__(self, runner: Runner, make: Callable[[Any], Any] = Events) -> None: ...

    @operation(local=True)
    def send_stream(self, events: Iterable[AnyEvent], schema: str | None = None) -> SendManyReply:
        """Ingests any number of events in bounded memory, a transaction for each 1,000."""
        accepted = 0
        errors: list[EventError] = []
        background: list[FanOutReport] = []
        remaining = iter(events)
        while step := list(islice(remaining, EVENTS_PER_STREAM_STEP)):
            begin = accepted + len(errors)
            reply = self.send_many(step, schema)
            accepted += reply.accepted
            errors += [
                EventError(position=begin + error.position, message=error.message)
                for error in reply.errors
            ]
            background += reply.background
        return SendManyReply(accepted=accepted, errors=errors, background=background)

    @operation()
    def continue_fan_outs(self, *, most: int | None = None) -> int:
        """Continues background fan-outs until all are finished, a transaction for each step.

        Returns the number of steps, at most `most`. A server continues fan-outs by itself, a
        library with each later write and with `store.sweep()`; this call is for programs that want
        to wait for the end. Each step reads and writes about 500 keys.
        """
        runner = self._runner
        steps = 0
        while True:
            with runner.view() as reader:
                ids = fan_outs.unfinished(reader)
            if not ids:
                return steps
            for id in ids:
                if steps == most:
                    return steps
                runner.transact(partial(fan_outs.continue_fan_out, subject=id))
                steps += 1

    @operation(local=True)
    def subscribe(self, key: str | None = None, *, prefix: str = "") -> "KeySubscription":
        """Returns the changes of a key, or of all keys that begin with `prefix`, from now on."""
        wanted = prefix if key is None else key
        return KeySubscription(self._runner.subscribe(CHANGED + wanted), key)


class KeySubscription:
    """The keys that commits have changed, in commit order; a commit names each key once."""

    def __init__(self, notices: Subscription, key: str | None) -> None:
        self._notices = notices
        self._key = key

    def get(self, timeout: float | None = None) -> str | None:
        """Returns the next changed key; None after `timeout` seconds, or when closed."""
        while (notice := self._notices.get(timeout)) is not None:
            changed = notice.topic.removeprefix(CHANGED)
            if self._key in (None, changed):
                return changed
        return None

    def poll(self) -> list[str]:
        """Returns all keys changed by commits that have returned, and not yet returned here."""
        changed = [notice.topic.removeprefix(CHANGED) for notice in self._notices.poll()]
        return [key for key in changed if self._key in (None, key)]

    def close(self) -> None:
        """Ends the subscription. A waiting `get` returns None."""
        self._notices.close()

    def __enter__(self) -> "KeySubscription":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
