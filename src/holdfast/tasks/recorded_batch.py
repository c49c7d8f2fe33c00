"""A batch on a store: records operations, to be done in one transaction.

With it, a task that takes a `Batch` runs on a folder, and in tests, as it does on a server.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast import exact_msgpack
from holdfast.client.batches import Batch, Handle
from holdfast.client.calls import Call
from holdfast.error_text import misfit
from holdfast.errors import BadInput, at_position
from holdfast.operations import find
from holdfast.store import Tx

__all__ = ["RecordedBatch"]

T = TypeVar("T")


class RecordedBatch(Batch):
    """A batch whose operations are done in the caller's transaction."""

    def __init__(self) -> None:
        super().__init__()
        self._payloads: list[bytes] = []

    def record(self, call: Call[T], *values: Any) -> Handle[T]:
        """Records a call, encoded as a client would send it."""
        handle = super().record(call, *values)
        self._payloads.append(call.payload(values))
        return handle

    def apply(self, tx: Tx) -> None:
        """Runs all operations in order; an error has the `position` of its operation."""
        recorded = zip(self._calls, self._payloads, self._handles, strict=True)
        for position, (call, payload, handle) in enumerate(recorded):
            layer, _, name = call.name.partition(".")
            operation = find(layer, name)
            decode = msgspec.msgpack.Decoder(
                operation.arguments, ext_hook=exact_msgpack.extension
            ).decode
            try:
                result = operation.call(getattr(tx, layer), _arguments(decode, payload))
            except Exception as error:
                at_position(error, position)
                raise
            handle.settle(exact_msgpack.encode(exact_msgpack.replaced(result)))


def _arguments(decode: Callable[[bytes], msgspec.Struct], payload: bytes) -> msgspec.Struct:
    try:
        return decode(payload)
    except msgspec.ValidationError as error:
        raise BadInput(misfit(error, "the call")) from None
