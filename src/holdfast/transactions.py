"""The layers on one transaction, or on one view."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from holdfast.engine.contract import Notice, Reader, Transaction
from holdfast.lazy_loading import Once, layer_package

# A layer is loaded when it is first used: most programs use one or two of the five, and all of them
# together take three times as long to load as the rest of Holdfast.
if TYPE_CHECKING:
    from holdfast.entities import Entities
    from holdfast.events import Events
    from holdfast.jobs import Jobs
    from holdfast.metrics import Metrics
    from holdfast.tables import Tables, Versions


_NESTED: Final = {
    "space": "A transaction stays within one space: open one for each.",
    **dict.fromkeys(
        ("transact", "transaction", "batch"),
        "This is a transaction already; all that it does is one commit.",
    ),
}


_WITH_ONE_LAYER: Final = 3  # attributes of such a `Tx`: `_tx`, `_shared` and the layer


class View:
    """The layers on one consistent snapshot."""

    if not TYPE_CHECKING:  # otherwise every attribute would type-check

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, _NESTED)

    def __init__(self, reader: Reader, shared: "Shared | None" = None) -> None:
        self._tx = reader
        self._shared = shared

    @property
    def now(self) -> float:
        return self._tx.now

    @property
    def raw(self) -> Transaction:
        """The engine's own transaction, for code that builds directly on the engine."""
        return self._tx  # type: ignore[return-value]  # a view refuses to write

    # --- layers: one property each; what a layer needs of another is passed in here --------

    @Once
    def entities(self) -> "Entities":
        made: Entities = layer_package("entities").Entities(self._tx)
        return made

    @Once
    def events(self) -> "Events":
        return events_on(self.raw)

    @Once
    def jobs(self) -> "Jobs":
        return jobs_maker()(self._tx)

    @Once
    def metrics(self) -> "Metrics":
        made: Metrics = layer_package("metrics").Metrics(self._tx)
        return made

    @Once
    def tables(self) -> "Tables":
        versions = None if self._shared is None else self._shared.versions
        made: Tables = layer_package("tables").Tables(self._tx, versions)
        return made


class Tx(View):
    """The layers on one transaction: everything that is written here becomes durable together."""

    _tx: Transaction

    def publish(self, notice: Notice) -> None:
        """Notifies everyone who listens to this space, in any process, once all of this is
        durable."""
        self._tx.after_commit(notice)

    def _renewed(self) -> "Tx":
        """Returns the layers for the next transaction in the same buffer of a group.

        Creating them takes a tenth of a small transaction. Jobs can be renewed, events renew
        themselves with each call, and metrics hold nothing of a transaction; the other layers are
        created again when they are used.
        """
        layers = self.__dict__
        if len(layers) == _WITH_ONE_LAYER:
            if "jobs" in layers:
                layers["jobs"]._renew()
                return self
            if "metrics" in layers or "events" in layers:
                return self
        return Tx(self._tx, self._shared)


class LayersView:
    """Opens the layers on a view, as a context manager.

    It is written by hand, because a generator would cost as much as the view itself.
    """

    __slots__ = ("_shared", "_view")

    def __init__(self, view: AbstractContextManager[Reader], shared: "Shared") -> None:
        self._view = view
        self._shared = shared

    def __enter__(self) -> View:
        return View(self._view.__enter__(), self._shared)

    @property
    def is_current(self) -> Callable[[], bool] | None:
        """Returns the function that tells whether a view opened now would show the same; None if
        the engine can't tell."""
        return getattr(self._view, "is_current", None)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool | None:
        return self._view.__exit__(kind, error, traceback)


class Shared:
    """The state that all spaces of an open store share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: Versions | None = None

    @property
    def versions(self) -> "Versions":
        """Makes the automatic versions of tables: one for the store, so that all of them differ."""
        if self._versions is None:
            from holdfast import tables

            with self._lock:
                self._versions = self._versions or tables.Versions()
        return self._versions


def jobs_maker() -> "Callable[[Any], Jobs]":
    """Returns the function that creates the jobs layer of a transaction.

    Queues with a rate limit count their jobs in the metrics of the same transaction.
    """
    jobs = layer_package("jobs").Jobs
    return lambda tx: jobs(tx, _metrics_on)


def _metrics_on(tx: Transaction) -> "Metrics":
    made: Metrics = layer_package("metrics").Metrics(tx)
    return made


def events_on(tx: Transaction) -> "Events":
    """Returns the events layer, whose handlers put jobs in the transaction of their event."""
    jobs = layer_package("jobs").Jobs
    made: Events = layer_package("events").Events(
        # Most events put no job, so the layer is created only for those that do.
        tx,
        enqueue=lambda queue, klass, data: jobs(tx).put(queue, klass, data),
        enqueue_dry_run=lambda dry_run: jobs(dry_run).put,
    )
    return made
