"""The original script and Holdfast answer random commands alike, and publish the same events.

A real server runs the script that the published Python client carries, with the deliberate
deviations of deviations.py; there is no other allowance but for the order of sets. A failure names
its seed: `HOLDFAST_SEED=7 pytest tests/compat/qless/test_differential.py` repeats it.
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import pytest
import valkey.exceptions

from holdfast.compat.qless import call
from holdfast.errors import HoldfastError
from holdfast.store import Store
from tests.compat.qless.deviations import with_deviations
from tests.job_import.conftest import OriginalQless, redis_server, redis_url
from tests.jobs.conftest import Events

__all__ = ["redis_server", "redis_url"]

ROUNDS: Final = int(os.environ.get("HOLDFAST_ROUNDS", "8"))
COMMANDS_A_ROUND: Final = 100
QUEUES: Final = ("one", "two")
JIDS: Final = "abcdefgh"
WORKERS: Final = ("w1", "w2")
TAGS: Final = ("red", "blue")
Chosen = TypeVar("Chosen")
REFUSED: Final = "refused"
# The order in which Lua walks over a set changes with every start of its server.
SETS: Final = ("dependents", "dependencies")


class Commands:
    """Random commands, as clients send them; `state` is what the original knows of a job."""

    def __init__(self, seed: int, original: OriginalQless) -> None:
        self._random = random.Random(seed)
        self._original = original
        self.now = 1000

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        names = [
            *("put",) * 8,
            *("pop",) * 8,
            *("complete", "advance", "fail", "retry", "heartbeat") * 2,
            *("complete", "complete", "peek", "get", "get", "queues", "stats", "workers"),
            *("cancel", "failed", "unfail", "tag", "priority", "timeout", "length", "jobs"),
            *("track", "depends", "recur", "recurring", "pause", "log", "config", "multiget"),
        ]
        for _ in range(COMMANDS_A_ROUND):
            self.now += self._random.choice((1, 1, 2, 5, 30, 61))
            if self._random.random() < 0.01:
                self.now += 50_000
            words = getattr(self, f"_{self._one_of(names)}")()
            yield tuple(map(str, words))

    def _one_of(self, things: Sequence[Chosen]) -> Chosen:
        return self._random.choice(things)

    def _some(self, things: Sequence[str]) -> str:
        return json.dumps(self._random.sample(things, self._random.randint(0, len(things))))

    def _queue(self) -> str:
        return self._one_of(QUEUES)

    def _jid(self) -> str:
        return self._one_of(JIDS)

    def _worker(self) -> str:
        return self._one_of(WORKERS)

    def _held(self) -> tuple[str, str, str]:
        """A job, its worker and its queue; now and then not the right ones."""
        jid = self._jid()
        found = self._original("get", self.now, jid)
        job: dict[str, str] = json.loads(found) if found else {"state": ""}
        if job["state"] == "running" and self._random.random() < 0.9:
            return jid, job["worker"], job["queue"]
        return jid, self._worker(), self._queue()

    def _put(self) -> list[Any]:
        options: list[Any] = []
        for name, value in (
            ("priority", self._one_of((0, 1, 5, -2))),
            ("tags", self._some(TAGS)),
            ("retries", self._one_of((0, 1, 2))),
            ("depends", json.dumps(self._random.sample(JIDS, self._random.randint(0, 2)))),
        ):
            if self._random.random() < 0.3:
                options += [name, value]
        delay = self._one_of((0, 0, 0, 20, 100))
        return ["put", self._queue(), self._jid(), "Klass", '{"n":1}', delay, *options]

    def _pop(self) -> list[Any]:
        return ["pop", self._queue(), self._worker(), self._one_of((0, 1, 1, 2, 5))]

    def _complete(self) -> list[Any]:
        return ["complete", *self._held(), '{"n":2}']

    def _advance(self) -> list[Any]:
        return [*self._complete(), "next", self._queue(), "delay", self._one_of((0, 0, 30))]

    def _fail(self) -> list[Any]:
        jid, worker, _ = self._held()
        return ["fail", jid, worker, self._one_of(("g", "h")), "message"]

    def _retry(self) -> list[Any]:
        jid, worker, queue = self._held()
        more = self._one_of(((), (0,), (15,), (0, "g"), (5, "g", "message")))
        return ["retry", jid, queue, worker, *more]

    def _heartbeat(self) -> list[Any]:
        jid, worker, _ = self._held()
        return ["heartbeat", jid, worker, *self._one_of(((), ('{"n":3}',)))]

    def _peek(self) -> list[Any]:
        return ["peek", self._queue(), self._one_of((1, 3, 10))]

    def _get(self) -> list[Any]:
        return ["get", self._jid()]

    def _multiget(self) -> list[Any]:
        return ["multiget", *JIDS]

    def _queues(self) -> list[Any]:
        return ["queues", *self._one_of(((), (self._queue(),)))]

    def _stats(self) -> list[Any]:
        return ["stats", self._queue(), self.now - self._one_of((0, 0, 86_400))]

    def _workers(self) -> list[Any]:
        if self._random.random() < 0.1:
            return ["worker.deregister", self._worker()]
        return ["workers", *self._one_of(((), (self._worker(),)))]

    def _cancel(self) -> list[Any]:
        return ["cancel", *self._random.sample(JIDS, self._random.randint(1, 3))]

    def _failed(self) -> list[Any]:
        return ["failed", *self._one_of(((), ("g",), ("h", 1, 1), ("failed-retries-one",)))]

    def _unfail(self) -> list[Any]:
        group = self._one_of(("g", "h", "failed-retries-one", "failed-retries-two"))
        return ["unfail", self._queue(), group, *self._one_of(((), (1,), (2,)))]

    def _tag(self) -> list[Any]:
        return self._one_of(
            (
                ["tag", "add", self._jid(), *json.loads(self._some(TAGS))],
                ["tag", "remove", self._jid(), self._one_of(TAGS)],
                ["tag", "get", self._one_of(TAGS), 0, self._one_of((1, 25))],
                ["tag", "top"],
            )
        )

    def _priority(self) -> list[Any]:
        return ["priority", self._jid(), self._one_of((0, 1, 3))]

    def _timeout(self) -> list[Any]:
        return ["timeout", self._jid()]

    def _length(self) -> list[Any]:
        return ["length", self._queue()]

    def _jobs(self) -> list[Any]:
        if self._random.random() < 0.2:
            return ["jobs", "complete", *self._one_of(((), (0, 2), (1, 2)))]
        states = ("running", "stalled", "scheduled", "depends", "recurring")
        return ["jobs", self._one_of(states), self._queue()]

    def _track(self) -> list[Any]:
        return ["track", *self._one_of(((), ("track", self._jid()), ("untrack", self._jid())))]

    def _depends(self) -> list[Any]:
        rest = self._one_of((("on", self._jid()), ("off", self._jid()), ("off", "all")))
        return ["depends", self._jid(), *rest]

    def _recur(self) -> list[Any]:
        schedule = ("interval", self._one_of((30, 100)), self._one_of((0, 10)))
        more = self._one_of(((), ("backlog", 1), ("tags", '["red"]', "retries", 1, "priority", 1)))
        return ["recur", self._queue(), self._one_of("xy"), "Klass", "{}", *schedule, *more]

    def _recurring(self) -> list[Any]:
        jid = self._one_of("xy")
        return self._one_of(
            (
                ["recur.get", jid],
                ["unrecur", jid],
                ["recur.update", jid, "interval", self._one_of((20, 60)), "priority", 2],
                ["recur.update", jid, "queue", self._queue()],
                ["recur.tag", jid, self._one_of(TAGS)],
                ["recur.untag", jid, self._one_of(TAGS)],
            )
        )

    def _pause(self) -> list[Any]:
        return [self._one_of(("pause", "unpause", "unpause")), self._queue()]

    def _log(self) -> list[Any]:
        return ["log", self._jid(), "noted", *self._one_of(((), ('{"by":"me"}',)))]

    def _config(self) -> list[Any]:
        return self._one_of(
            (
                ["config.set", "grace-period", self._one_of((0, 10, 30))],
                ["config.set", "heartbeat", self._one_of((-10, 20, 60))],
                ["config.set", f"{self._queue()}-max-concurrency", self._one_of((0, 1, 3))],
                ["config.unset", "heartbeat"],
                ["config.get"],
                ["config.get", "heartbeat"],
                ["queue.forget", self._queue()],
            )
        )


def comparable(reply: Any) -> Any:
    """A reply as plain values, whichever of the two it came from."""
    if isinstance(reply, bytes):
        reply = reply.decode()
    if isinstance(reply, str):
        try:
            reply = json.loads(reply)
        except ValueError:
            return reply
    return _plain(reply)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        named = {key: _plain(part) for key, part in value.items() if key != "spawned_from_jid"}
        named.update({key: sorted(named[key]) for key in SETS if key in named})
        return named or []  # Lua knows no difference between an empty object and a list
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return round(value, 6)
    return value


@pytest.fixture
def original(redis_url: str) -> OriginalQless:
    original = OriginalQless(redis_url)
    original.load(with_deviations(original.script))
    return original


class OriginalEvents:
    """The messages that the original publishes, as pairs of channel and content."""

    def __init__(self, original: OriginalQless) -> None:
        self._listener = original.client.pubsub()
        self._listener.psubscribe("ql:*")

    def new(self) -> list[tuple[str, Any]]:
        """Returns the messages since the last call: all that come before the answer to a ping."""
        self._listener.ping()
        found = []
        while (message := self._listener.get_message(timeout=30))["type"] != "pong":
            if message["type"] == "pmessage":
                found.append((message["channel"].decode(), comparable(message["data"])))
        return found

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def original_events(original: OriginalQless) -> Iterator[OriginalEvents]:
    events = OriginalEvents(original)
    yield events
    events.close()


def ask_original(original: OriginalQless, now: int, name: str, words: tuple[str, ...]) -> Any:
    try:
        return comparable(original(name, now, *words))
    except valkey.exceptions.ResponseError:
        return REFUSED


def ask_holdfast(store: Store, now: int, name: str, words: tuple[str, ...]) -> Any:
    try:
        asked = partial(call, words=[name, str(now), *words], dialect="G2")
        return comparable(store._runner.transact(asked))
    except HoldfastError:
        return REFUSED


def seeds() -> list[int]:
    one = os.environ.get("HOLDFAST_SEED")
    return list(range(ROUNDS)) if one is None else [int(one)]


@pytest.mark.parametrize("seed", seeds())
def test_the_original_and_holdfast_answer_alike(
    store: Store,
    original: OriginalQless,
    original_events: OriginalEvents,
    events: Events,
    seed: int,
) -> None:
    commands = Commands(seed, original)
    done: list[str] = []

    for name, *rest in commands:
        words = tuple(rest)
        expected = ask_original(original, commands.now, name, words)
        answer = ask_holdfast(store, commands.now, name, words)
        published = [(channel, comparable(text)) for channel, text in events.new()]

        done.append(f"{commands.now} {name} {' '.join(words)}")
        assert answer == expected, "\n".join(("after", *done))
        assert published == original_events.new(), "\n".join(("after", *done))
