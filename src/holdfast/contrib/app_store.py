"""The parts that the web frameworks share: a store that is opened with its application."""

import inspect
import math
import threading
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from holdfast.errors import BadInput, HoldfastError
from holdfast.metrics.middleware import denied
from holdfast.metrics.records import BatchResult, Operation
from holdfast.store import Store, Tx
from holdfast.store import open as open_store
from holdfast.tasks import Tasks, Worker

__all__ = ["AppStore", "LimitRefusal"]


class AppStore:
    """The store of an application, and a worker for its tasks.

    Nothing is opened before `open`: a server that forks its workers does so after the application
    was imported, and each process opens the store for itself. `options` are those of
    `holdfast.open`. With `tasks`, a worker of `threads` threads and `async_slots` runs inside the
    application.
    """

    def __init__(
        self,
        path_or_url: str | Path,
        *,
        tasks: Tasks | None = None,
        threads: int = 1,
        async_slots: int = 0,
        **options: Any,
    ) -> None:
        self._place = path_or_url
        self._tasks = tasks
        self._threads = threads
        self._async_slots = async_slots
        self._options = options
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._worker: Worker | None = None

    @property
    def store(self) -> Store:
        """The open store."""
        if self._store is None:
            raise BadInput(
                "the store of the application is not open",
                hint="It is open from the start of the application to its end.",
            )
        return self._store

    def open(self) -> Store:
        """Opens the store and starts the worker, unless that was done already."""
        with self._lock:
            if self._store is None:
                store = open_store(self._place, **self._options)
                try:
                    self._worker = self._started_worker(store)
                except BaseException:
                    store.close()
                    raise
                self._store = store
            return self._store

    def _started_worker(self, store: Store) -> Worker | None:
        if self._tasks is None:
            return None
        worker = Worker(store, self._tasks, threads=self._threads, async_slots=self._async_slots)
        worker.start()
        return worker

    def close(self) -> None:
        """Lets running tasks finish, hands back the others, and closes the store. A second call
        does nothing."""
        with self._lock:
            worker, self._worker = self._worker, None
            store, self._store = self._store, None
        if worker is not None:
            worker.stop()
        if store is not None:
            store.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class LimitRefusal:
    """The response to a request that a limit refuses: its message and its headers."""

    def __init__(self, result: BatchResult) -> None:
        self.response = denied(result)
        names = ", ".join(found.condition for found in result.results if not found.allowed)
        self.detail = f"Rate limit exceeded: {names}."

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers with the limits, and when to try again."""
        own = ("content-type", "content-length")
        return {name: value for name, value in self.response.headers if name.lower() not in own}


def by_address(conditions: Mapping[str, Any], address: str | None) -> dict[str, list[str]]:
    """Returns the client's address as the entity of every condition."""
    return {condition: [address or ""] for condition in conditions}


def operations_of(entities: Mapping[str, Any], amount: int) -> list[Operation]:
    """Returns the limiter operations of a request; conditions without an entity don't apply."""
    return [
        # A single address counts as a list of one, rather than as an error for the client.
        Operation(
            condition=condition,
            entity=[entity] if isinstance(entity, str | int) else entity,
            amount=amount,
        )
        for condition, entity in entities.items()
        if entity is not None
    ]


def error_response(error: HoldfastError) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Returns status, body and headers of the response to an error, as Holdfast's server sends
    them."""
    body = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    wait = getattr(error, "retry_after", None)
    headers = {} if wait is None else {"Retry-After": str(max(1, math.ceil(wait)))}
    return error.status, body, headers


def without_transaction(function: Callable[..., Any]) -> tuple[str, inspect.Signature]:
    """Returns the name of the parameter that takes the transaction, and the signature without it.

    >>> def place(tx: Tx, order: int) -> str: ...
    >>> without_transaction(place)
    ('tx', <Signature (order: int) -> str>)
    """
    if inspect.iscoroutinefunction(function):
        raise BadInput(
            f"{function.__qualname__} is a coroutine function and can't be a transaction",
            hint="Write it with `def`: it runs in a thread, and may run more than once.",
        )
    hints = typing.get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    found = [name for name in signature.parameters if hints.get(name) is Tx]
    if len(found) != 1:
        raise BadInput(
            f"{function.__qualname__} has {len(found)} parameters of the type `Tx`",
            hint="Give it one, such as `def place(tx: holdfast.Tx, ...)`.",
        )
    parameters = [
        each.replace(annotation=hints.get(name, each.annotation))
        for name, each in signature.parameters.items()
        if name != found[0]
    ]
    returns = hints.get("return", signature.return_annotation)
    return found[0], signature.replace(parameters=parameters, return_annotation=returns)
