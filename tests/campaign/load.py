"""Clients in processes of their own that place orders without end, and the ledger of what they
were told.

The ledger is in the driving process: an order counts as acknowledged when its client has said so
through a pipe, so that nothing of the store under test has a part in the proof.
"""

import itertools
import threading
import time
from collections import Counter
from functools import partial
from typing import Any

import msgspec

import holdfast
from holdfast.errors import HoldfastError
from tests.campaign import orders
from tests.processes import Child, Connection, start

PATIENCE_SECONDS = 60.0  # after a failover on a busy machine; clients go on by themselves
PAUSE_SECONDS = 0.02  # after an error, so that a dead server is not asked in a busy loop


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a client finds the store: as a library on an engine, or over the network."""

    url: str
    durability: str = "commit"
    network: bool = False

    def open(self) -> Any:
        """A store or a client of a server: both have spaces with the five layers."""
        if self.network:
            return holdfast.connect(self.url, timeout=5.0, connect_timeout=2.0)
        return holdfast.open(self.url, durability=self.durability)  # type: ignore[arg-type]  # one of two words


def place_without_end(place: Place, client: int, ours: Connection) -> None:
    """Places orders until told to end, and reports each: its mark, when, and the error if any."""
    numbers = itertools.count()
    while not ours.poll():
        try:
            with place.open() as store:
                space = store.space(orders.space_of(client))
                while not ours.poll():
                    _place(space, f"{client}-{next(numbers)}", place.network, ours)
        except HoldfastError as error:  # it could not be opened: nothing was sent
            ours.send(("", time.monotonic(), type(error).__name__))
            ours.poll(PAUSE_SECONDS)
    ours.send(None)


def _place(space: Any, mark: str, network: bool, ours: Connection) -> None:
    error = ""
    try:
        if network:
            with space.batch() as batch:
                orders.place(batch, mark)
        else:
            space.transact(partial(orders.place, mark=mark))
    except HoldfastError as failure:  # not acknowledged: it may be there or not, at most once
        error = type(failure).__name__
    ours.send((mark, time.monotonic(), error))
    if error:
        ours.poll(PAUSE_SECONDS)


class _Client:
    def __init__(self, place: Place, number: int) -> None:
        self.child: Child = start(place_without_end, place, number)
        self.count = 0
        self.reader: threading.Thread


class Load:
    """Some clients at work, each of which may be killed and replaced."""

    def __init__(self, place: Place, *, clients: int = 3) -> None:
        self._place = place
        self._numbers = itertools.count()
        self._more = threading.Condition()
        self.acknowledged: dict[str, float] = {}  # mark -> when, monotonic, in all processes
        self.errors: Counter[str] = Counter()
        self._clients = [self._start() for _ in range(clients)]

    def _start(self) -> _Client:
        client = _Client(self._place, next(self._numbers))
        client.reader = threading.Thread(target=self._read, args=(client,), daemon=True)
        client.reader.start()
        return client

    def _read(self, client: _Client) -> None:
        try:
            while (message := client.child.receive()) is not None:
                mark, at, error = message
                with self._more:
                    if error:
                        self.errors[error] += 1
                    else:
                        self.acknowledged[mark] = at
                        client.count += 1
                    self._more.notify_all()
        except (EOFError, ConnectionResetError):
            pass  # it was killed

    def kill(self, number: int) -> None:
        """Kills a client wherever it is, and starts another in its place."""
        old = self._clients[number]
        old.child.kill()
        old.reader.join(PATIENCE_SECONDS)  # what it had sent before counts
        self._clients[number] = self._start()

    def kill_all(self) -> None:
        """Kills every client at once, as a crash of the machine would, and starts others."""
        for client in self._clients:
            client.child.kill()
        for number in range(len(self._clients)):
            self.kill(number)

    def __len__(self) -> int:
        return len(self._clients)

    def await_progress(self, count: int) -> None:
        """Waits until each client has been told of `count` more orders."""
        with self._more:
            wanted = [(client, client.count + count) for client in self._clients]
            done = self._more.wait_for(
                lambda: all(client.count >= target for client, target in wanted), PATIENCE_SECONDS
            )
        if not done:
            left = [target - client.count for client, target in wanted]
            raise AssertionError(f"clients do not go on: {left} orders are missing, {self.errors}")

    def end(self) -> dict[str, float]:
        """Lets all clients finish, and returns what was acknowledged, and when."""
        for client in self._clients:
            client.child.send("enough")
        for client in self._clients:
            client.reader.join(PATIENCE_SECONDS)
            if client.reader.is_alive():
                client.child.kill()
                raise AssertionError(f"a client does not end; it was told {self.errors}")
            client.child.join()
        return self.acknowledged

    def abandon(self) -> None:
        """Ends all clients at once; for when something else has failed."""
        for client in self._clients:
            client.child.kill()
