"""Sessions that append to lists and read them, over any way to a store, and note what they saw."""

import itertools
import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

import holdfast
from holdfast.entities import Model, column, schema_yaml
from holdfast.entities.messages import Change, Filter
from holdfast.errors import HoldfastError, OutcomeUnknown
from tests.campaign.serializability import Append, Key, Read, Transaction

TABLE: Final = "campaign.Lists"
LISTS: Final = 4  # at a time: few, so that sessions meet
APPENDS_TO_LISTS: Final = 120  # then the sessions go on with new lists, so that none grows long
CALL_SECONDS: Final = 5.0

Step = Append | Key  # an append, or the list that is read
Session = Callable[[list[Step]], list[tuple[int, ...]]]  # returns what was read, in order


class Lists(Model, schema="campaign", table="Lists"):
    items: list[int] = column(default=list)


class NotDone(Exception):
    """The store has said that a transaction was not done."""


class Unknown(Exception):
    """No answer: a transaction was done, or not."""


def prepare(store: Any) -> None:
    store.entities.deploy(schema_yaml(Lists))


# --- ways to a store ------------------------------------------------------------------------------


def _take(layers: Any, steps: list[Step]) -> list[Any]:
    """Takes the steps in a transaction or a batch; returns what each read has returned."""
    found = []
    for step in steps:
        if isinstance(step, Append):
            layers.entities.put_raw(TABLE, [{"id": step.key}])
            chosen = [Filter("id", "IN", [step.key])]
            layers.entities.update_raw(TABLE, chosen, [Change("LADD", "items", [step.value])])
        else:
            found.append(layers.entities.get_raw(TABLE, [step]))
    return found


def _items(entities: Any) -> tuple[int, ...]:
    return tuple(entities[0].properties.get("items", ())) if entities else ()


def library_session(store: holdfast.Store) -> Session:
    """A session of the library: one transaction, which may run more than once."""

    def run(steps: list[Step]) -> list[tuple[int, ...]]:
        try:
            return [_items(each) for each in store.transact(lambda tx: _take(tx, steps))]
        except OutcomeUnknown as error:
            raise Unknown from error
        except HoldfastError as error:
            raise NotDone from error

    return run


def client_session(url: str, stack: ExitStack) -> Session:
    """A session over RESP: one batch of the client, which is closed with the stack."""
    client: Any = None

    def run(steps: list[Step]) -> list[tuple[int, ...]]:
        nonlocal client
        try:
            if client is None:
                client = holdfast.connect(url, timeout=CALL_SECONDS, connect_timeout=2.0)
                stack.callback(client.close)
            with client.batch() as batch:
                found = _take(batch, steps)
            return [_items(each.result()) for each in found]
        except OutcomeUnknown as error:
            raise Unknown from error
        except HoldfastError as error:
            raise NotDone from error

    return run


def http_session(port: int, stack: ExitStack) -> Session:
    """A session over HTTP, as a program without a client of ours has it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=CALL_SECONDS)
    stack.callback(connection.close)

    def run(steps: list[Step]) -> list[tuple[int, ...]]:
        try:
            connection.request("POST", "/default/batch", json.dumps(_operations(steps)))
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            raise Unknown from error
        if response.status != 200:
            raise NotDone(answer)
        return _reads(steps, answer["result"])

    return run


def _operations(steps: list[Step]) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = []
    for step in steps:
        if isinstance(step, Append):
            put = {"table": TABLE, "entities": [{"id": step.key}]}
            change = {"op": "LADD", "property": "items", "value": [step.value]}
            chosen = [{"property": "id", "op": "IN", "values": [step.key]}]
            update = {"table": TABLE, "filters": chosen, "changes": [change]}
            operations.append({"operation": "entities.put", "arguments": put})
            operations.append({"operation": "entities.update", "arguments": update})
        else:
            get = {"table": TABLE, "ids": [step]}
            operations.append({"operation": "entities.get", "arguments": get})
    return operations


def _reads(steps: list[Step], results: list[Any]) -> list[tuple[int, ...]]:
    found, place = [], 0
    for step in steps:
        if isinstance(step, Append):
            place += 2
        else:
            [properties] = [each["properties"] for each in results[place]] or [{}]
            # Whole numbers of entities are exact in JSON: {"$numberLong": "7"}.
            found.append(tuple(int(each["$numberLong"]) for each in properties.get("items", ())))
            place += 1
    return found


# --- histories ------------------------------------------------------------------------------------


class Workload:
    """Threads that run sessions until they are told to end."""

    def __init__(self, sessions: list[Session], chance: random.Random) -> None:
        self.history: list[Transaction] = []
        self.keys: set[Key] = set()
        self.errors: list[BaseException] = []
        self._values = itertools.count(1)
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(number, session, random.Random(chance.random())),
                daemon=True,
            )
            for number, session in enumerate(sessions)
        ]
        for thread in self._threads:
            thread.start()

    def done(self) -> int:
        return sum(each.outcome == "done" for each in self.history)

    def end(self, *, seconds: float = 90.0) -> None:
        """Waits for every session's last transaction."""
        self._ended.set()
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                raise AssertionError(f"a session does not end within {seconds} seconds")
        if self.errors:
            raise self.errors[0]

    def _run(self, number: int, session: Session, chance: random.Random) -> None:
        try:
            while not self._ended.is_set():
                self.history.append(self._transaction(number, session, chance))
                if self.history[-1].outcome != "done":
                    self._ended.wait(0.01)
        except BaseException as error:
            self.errors.append(error)

    def _transaction(self, number: int, session: Session, chance: random.Random) -> Transaction:
        steps = [self._step(chance) for _ in range(chance.randint(1, 4))]
        begun = time.monotonic()
        try:
            found = iter(session(steps))
        except Unknown:
            outcome: Any = "unknown"
        except NotDone:
            outcome = "failed"
        else:
            seen = [step if isinstance(step, Append) else Read(step, next(found)) for step in steps]
            return Transaction(number, begun, time.monotonic(), "done", tuple(seen))
        appends = tuple(step for step in steps if isinstance(step, Append))
        return Transaction(number, begun, time.monotonic(), outcome, appends)

    def _step(self, chance: random.Random) -> Step:
        value = next(self._values)
        key = f"{value // APPENDS_TO_LISTS}-{chance.randrange(LISTS)}"
        self.keys.add(key)
        return Append(key, value) if chance.random() < 0.5 else key


def final_lists(store: Any, keys: set[Key]) -> dict[Key, tuple[int, ...]]:
    """Returns the present content of every list."""
    return {key: _items(store.entities.get_raw(TABLE, [key])) for key in keys}
