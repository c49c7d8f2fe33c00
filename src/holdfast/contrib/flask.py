"""A store in a Flask application (extra `flask`).

    data = AppStore("data", tasks=tasks)
    data.init_app(app)

    @app.post("/orders")
    def place() -> str:
        return data.tx.jobs.put("emails")  # committed before the answer is sent

The store is opened by the first request of each process. A worker inside the process runs the
tasks.
"""

import atexit
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.contrib import app_store
from holdfast.contrib.app_store import LimitRefusal, by_address, error_response, operations_of
from holdfast.errors import BadInput, HoldfastError, MissingDriver
from holdfast.metrics.records import BatchResult
from holdfast.store import Store, Tx
from holdfast.tasks import Tasks
from holdfast.wsgi import RateLimitMiddleware

try:
    from flask import Flask, Response, g, has_request_context, jsonify, request
    from werkzeug.exceptions import TooManyRequests
except ImportError as error:
    raise MissingDriver(
        "the package `flask` is not installed", hint="pip install 'holdfastdb[flask]'"
    ) from error

if TYPE_CHECKING:
    from holdfast.metrics.conditions import Conditions

__all__ = ["AppLimiter", "AppStore", "RateLimitMiddleware"]

P = ParamSpec("P")
R = TypeVar("R")

_TRANSACTION = "_holdfast_transaction"  # in `g`: the transaction of this request


class AppStore(app_store.AppStore):
    """The store of a Flask application, and a worker for its tasks.

    The first use in a process opens the store, so a server may fork its workers before that.
    `options` are those of `holdfast.open`. With `tasks`, a worker of `threads` threads runs inside
    the application.
    """

    def __init__(
        self,
        path_or_url: str | Path,
        app: Flask | None = None,
        *,
        tasks: Tasks | None = None,
        threads: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(path_or_url, tasks=tasks, threads=threads, **options)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Connects it to an application: transactions of requests, and answers for errors."""
        app.extensions["holdfast"] = self
        app.after_request(self._commit)
        app.teardown_request(self._undo)
        app.register_error_handler(HoldfastError, _on_error)

    def open(self) -> Store:
        """Opens the store and starts the worker, unless that was done already."""
        is_new = self._store is None
        store = super().open()
        if is_new:
            atexit.register(self.close)
        return store

    def close(self) -> None:
        """Lets running tasks finish, hands back the others, and closes the store. A second call
        does nothing."""
        atexit.unregister(self.close)
        super().close()

    @property
    def store(self) -> Store:
        """The store, opened when it is first used."""
        return self._store or self.open()

    # --- transactions -----------------------------------------------------------------------------

    @property
    def tx(self) -> Tx:
        """The transaction of this request, begun when it is first used.

        It is committed before the answer is sent, unless that is an error (a status of 400 or
        more): then nothing is written. Other writers of the store wait for it from its first use
        on, so use it late and end soon; `transactional` holds it for less time. On PostgreSQL and
        Valkey the commit may raise `Conflict`.
        """
        if not has_request_context():
            raise BadInput(
                "no request is being handled",
                hint="Use `data.store.transact(work)` outside of one.",
            )
        if _TRANSACTION not in g:
            transaction = self.store.transaction()
            setattr(g, _TRANSACTION, (transaction, transaction.__enter__()))
        tx: Tx = getattr(g, _TRANSACTION)[1]
        return tx

    def transactional(self, view: Callable[..., R]) -> Callable[..., R]:
        """Decorates a view that takes the transaction first: `def place(tx, **values)`.

        It is committed when the view has returned. If it raises, nothing is written. It may run
        more than once, so it should touch nothing but its transaction.
        """

        @functools.wraps(view)
        def in_transaction(*args: Any, **values: Any) -> R:
            return self.store.transact(lambda tx: view(tx, *args, **values))

        return in_transaction

    def _commit(self, response: Response) -> Response:
        """Commits the transaction of a request, or undoes it if the response is an error."""
        opened = g.pop(_TRANSACTION, None)
        if opened is not None:
            if response.status_code < 400:
                opened[0].__exit__(None, None, None)
            else:
                _roll_back(opened[0])
        return response

    def _undo(self, error: BaseException | None) -> None:
        """Undoes the transaction of a request that has no response."""
        opened = g.pop(_TRANSACTION, None)
        if opened is not None:
            _roll_back(opened[0])

    # --- limits -----------------------------------------------------------------------------------

    def limiter(self, conditions: "Conditions", **options: Any) -> "AppLimiter":
        """Returns a limiter for `RateLimitMiddleware`, created when it is first used.

        `options` are those of `store.metrics.limiter`.
        """
        return AppLimiter(self, conditions, options)

    def rate_limit(
        self,
        conditions: Mapping[str, Any],
        key: Callable[[], Any] | None = None,
        amount: int = 1,
        **options: Any,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorates a view: beyond the limits it answers 429, with `Retry-After`.

        `key` returns the entity of each condition for the current request; without it, all of them
        count by the client's address. `options` are those of `store.metrics.limiter`.
        """
        limiter = self.limiter(conditions, **options)

        def decorate(view: Callable[P, R]) -> Callable[P, R]:
            @functools.wraps(view)
            def limited(*args: P.args, **values: P.kwargs) -> R:
                address = request.remote_addr
                entities = by_address(conditions, address) if key is None else key()
                _require(limiter, entities, amount)
                return view(*args, **values)

            return limited

        return decorate


class AppLimiter:
    """A limiter of a store that is opened later."""

    def __init__(self, data: AppStore, conditions: "Conditions", options: dict[str, Any]) -> None:
        self._data = data
        self._conditions = conditions
        self._options = options
        self._limiter: Any = None

    def try_all(self, operations: Iterable[Any]) -> BatchResult:
        """Decides on several operations at once: all are counted, or none."""
        store = self._data.store
        if self._limiter is None or self._limiter[0] is not store:
            self._limiter = store, store.metrics.limiter(self._conditions, **self._options)
        result: BatchResult = self._limiter[1].try_all(operations)
        return result


class _Undone(Exception):
    """Ends a transaction whose writes are not wanted."""


def _roll_back(transaction: Any) -> None:
    transaction.__exit__(_Undone, _Undone(), None)


def _require(limiter: AppLimiter, entities: dict[str, Any], amount: int) -> None:
    result = limiter.try_all(operations_of(entities, amount))
    if not result.allowed:
        refusal = LimitRefusal(result)
        answer = jsonify({"error": {"code": "limit_exceeded", "message": refusal.detail}})
        answer.status_code = 429
        answer.headers.extend(refusal.headers)
        raise TooManyRequests(refusal.detail, response=answer)


def _on_error(error: HoldfastError) -> tuple[Response, int, dict[str, str]]:
    status, body, headers = error_response(error)
    return jsonify(body), status, headers
