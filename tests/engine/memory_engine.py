"""An engine on the backend in memory, and transactions to run on it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from holdfast.engine.contract import Transaction
from holdfast.engine.remote import RemoteEngine
from tests.engine.memory_backend import MemoryBackend
from tests.engine.model import apply


class Undone(Exception):
    """Raised by a test in order to undo a transaction."""


def open_memory(backend: MemoryBackend, seconds: float = 30.0) -> RemoteEngine:
    return RemoteEngine(backend, clock=lambda: 1.0, reconnect_seconds=seconds)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def engine(backend: MemoryBackend) -> Iterator[RemoteEngine]:
    engine = open_memory(backend)
    yield engine
    engine.close()


def increment(tx: Transaction) -> int:
    number = int(tx.get(b"n") or b"0") + 1
    tx.put(b"n", b"%d" % number)
    return number


def put_all(keys: Sequence[bytes]) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        for key in keys:
            tx.put(key, b"")

    return work


def step(operations: Any, keep: bool, model: dict[bytes, bytes]) -> Any:
    def work(tx: Transaction) -> dict[bytes, bytes]:
        attempt = dict(model)
        for each in operations:
            apply(tx, attempt, each)
        if not keep:
            raise Undone
        return attempt

    return work
