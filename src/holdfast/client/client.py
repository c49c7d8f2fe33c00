"""The sync client: a space of a server, like `Space` for a store."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from holdfast.client import calls
from holdfast.client.batches import Batch, Pipeline
from holdfast.client.calls import Call, Values
from holdfast.client.pool import Pool
from holdfast.client.subscriptions import ClientSubscription
from holdfast.client.urls import ServerTarget
from holdfast.limits import MAX_WAIT_SECONDS

if TYPE_CHECKING:
    from holdfast.client.entities import ClientEntities
    from holdfast.client.events import ClientEvents
    from holdfast.client.generated.admin import CalledAdmin
    from holdfast.client.jobs import ClientJobs
    from holdfast.client.metrics import ClientMetrics
    from holdfast.client.tables import ClientTables

T = TypeVar("T")

# Advice for names that only a store has.
ELSEWHERE: Final = {
    **dict.fromkeys(
        ("transact", "transaction", "view"),
        "Your function can't run where the store is: record operations with "
        "`with client.batch() as batch:`, which is one transaction.",
    ),
    "backup": "A server makes backups by `client.admin.backup(name)`, or `holdfast backup`.",
    "spaces": "`client.admin.spaces()` lists them, `client.space(name)` is one of them.",
}


class ClientSpace:
    """An isolated set of everything, and the unit of atomicity: a batch stays within one."""

    def __init__(self, pool: Pool, name: str) -> None:
        self.name = name
        self._pool = pool
        self._exchange = pool.exchange
        self._timeout = pool.target.timeout

    def __repr__(self) -> str:
        return f"<holdfast.client.{type(self).__name__} {self._pool.target.place}/{self.name}>"

    if not TYPE_CHECKING:  # otherwise every attribute would type-check

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, ELSEWHERE)

    # --- layers: one attribute each, loaded when it is first used ---------------------------------

    @cached_property
    def admin(self) -> "CalledAdmin":
        from holdfast.client.generated.admin import CalledAdmin

        return CalledAdmin(self)

    @cached_property
    def entities(self) -> "ClientEntities":
        from holdfast.client.entities import ClientEntities

        return ClientEntities(self)

    @cached_property
    def events(self) -> "ClientEvents":
        from holdfast.client.events import ClientEvents

        return ClientEvents(self)

    @cached_property
    def jobs(self) -> "ClientJobs":
        from holdfast.client.jobs import ClientJobs

        return ClientJobs(self)

    @cached_property
    def metrics(self) -> "ClientMetrics":
        from holdfast.client.metrics import ClientMetrics

        return ClientMetrics(self)

    @cached_property
    def tables(self) -> "ClientTables":
        from holdfast.client.tables import ClientTables

        return ClientTables(self)

    # --- calls ------------------------------------------------------------------------------------

    def call(self, call: Call[T], *values: Any) -> T:
        """Calls one operation and returns its result."""
        is_quick = call.kind in ("read", "write")
        timeout = self._timeout if is_quick else call_seconds(self._pool.target, call, values)
        reply = self._exchange(
            call.command(values),
            self.name,
            timeout=timeout,
            only_reads=call.only_reads,
            apart=not is_quick,
        )
        return call.result(reply)

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Records operations, and sends them as one transaction when the block ends.

        All of them are applied, or none: the error that undid them names its `position`. If the
        block itself raises, nothing is sent. Each operation returns a handle, whose `result()` is
        available after the block.
        """
        recording = Batch()
        yield recording
        if not recording:
            return
        request = recording._request()
        try:
            replies = self._exchange(
                request,
                self.name,
                timeout=self._timeout,
                only_reads=recording._only_reads,
                replies=len(recording) + 2,
            )
        except BaseException as error:
            recording._refuse(error)
            raise
        recording._settle(replies)

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """Records operations, and sends them together when the block ends, each for itself.

        One wait for the network serves them all. A failed operation raises when its result is
        requested; nothing is sent twice.
        """
        recording = Pipeline()
        yield recording
        if recording:
            self._pool.send_pipeline(recording, self.name, timeout=self._timeout)

    def subscribe(self, topic_prefix: str = "") -> ClientSubscription:
        """Returns the notices of this space from now on; use it in `with`."""
        return ClientSubscription(self._pool, self.name, topic_prefix)


class Client(ClientSpace):
    """A connection to a server: the space of its URL, and the way to all other spaces."""

    def __init__(self, target: ServerTarget) -> None:
        pool = Pool(target)
        super().__init__(pool, target.space)
        try:
            self.ping()
        except BaseException:
            pool.close()
            raise

    def space(self, name: str) -> ClientSpace:
        """Returns the space of that name; its first use creates it if it does not exist."""
        calls.require_text(name, "the name of a space")
        return ClientSpace(self._pool, name)

    def ping(self) -> None:
        """Returns once the server has answered; raises `Unanswered` if it does not."""
        reply = self._exchange(calls.PING, self.name, timeout=self._timeout, only_reads=True)
        if reply != b"PONG":
            raise calls.failure(reply)

    def close(self) -> None:
        """Closes all connections. A second call does nothing."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def call_seconds(target: ServerTarget, call: Call[Any], values: Values) -> float:
    """Returns how long to wait for an operation that takes time."""
    if call.kind == "wait":
        waits = call.given(values).get("timeout", MAX_WAIT_SECONDS)
        return target.timeout + (waits if isinstance(waits, int | float) else 0)
    return target.timeout if call.only_reads else target.long_timeout
