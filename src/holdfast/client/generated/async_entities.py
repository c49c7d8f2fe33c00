"""Entities of a server for programs that `await`.

Made by `make client` from holdfast.client.entities.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.client import conversions
from holdfast.client.entities import decode_notice, topic_of
from holdfast.client.generated.async_models import AsyncModelCalls
from holdfast.client.generated.entities import AwaitedEntities
from holdfast.entities.messages import ChangeNotice, Query, Reply

if TYPE_CHECKING:
    from holdfast.client.async_subscriptions import AsyncSubscription
    from holdfast.client.generated.async_space import AsyncSpace


class AsyncEntities(AwaitedEntities, AsyncModelCalls):
    """The entities of one space of a server."""

    _space: "AsyncSpace"

    async def execute(self, queries: Sequence[Query]) -> list[Reply]:
        """Runs queries on any tables in order, all or none; returns a reply for each."""
        listed = list(queries)
        return conversions.replies(listed, await super().execute(listed))

    def subscribe(self, table: str = "") -> "AsyncSubscription":
        """Returns the change notices of one table, or of all, from now on; `read_notice` reads
        them."""
        return self._space.subscribe(topic_of(table))

    @staticmethod
    def read_notice(payload: bytes) -> ChangeNotice:
        """Decodes a change notice."""
        return decode_notice(payload)
