"""`qless` runs commands as Qless clients send them; `events` shows what they would hear."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.compat.qless import Dialect, call, channel
from holdfast.engine.contract import Subscription
from holdfast.store import Store

Qless = Callable[..., Any]


class Events:
    """The published messages, as pairs of channel and text."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def new(self) -> list[tuple[str, str]]:
        """Returns the messages since the last call."""
        found = [
            (channel(notice.topic), notice.payload.decode()) for notice in self._subscription.poll()
        ]
        return [(name, text) for name, text in found if name is not None]


@pytest.fixture
def events(store: Store) -> Iterator[Events]:
    with store.subscribe("jobs.") as subscription:
        yield Events(subscription)


@pytest.fixture
def qless(store: Store) -> Qless:
    """Runs a command: `qless("pop", 0, "queue", "worker", 1)`.

    JSON goes in and comes out as values.
    """

    def run(command: str, now: float, *args: Any, dialect: Dialect = "G3") -> Any:
        words = [command, str(now), *map(_word, args)]
        reply = store._runner.transact(lambda tx: call(tx, words, dialect))
        if isinstance(reply, str) and reply[:1] in ("{", "["):
            return json.loads(reply)
        return reply

    return run


def _word(argument: Any) -> str:
    return argument if isinstance(argument, str) else json.dumps(argument)
