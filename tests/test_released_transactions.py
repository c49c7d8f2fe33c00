"""A transaction that has ended leaves nothing to the collector.

A buffer of writes that refers to itself stays in memory, with all that it has written, until the
collector comes to it, and with it the snapshot of LMDB below: another reader slot with each flush.
"""

import gc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
import pytest

import holdfast
from holdfast.engine.lmdb.write_buffers import TransactionBuffer
from holdfast.errors import HoldfastError
from holdfast.operations import OPERATIONS
from holdfast.server import payloads
from tests.server.examples import EXAMPLES


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # what is there already need not be looked at each time
    gc.disable()
    yield
    gc.enable()


def buffers_held() -> int:
    return sum(isinstance(each, TransactionBuffer) for each in gc.get_objects())


@pytest.mark.parametrize("layer", EXAMPLES)
@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_no_operation_leaves_its_transaction_to_the_collector(
    tmp_path: Path, layer: str, durability: Literal["commit", "interval"]
) -> None:
    held = {}
    with holdfast.open(tmp_path / "store", durability=durability) as store:
        for example in EXAMPLES[layer]:
            operation = OPERATIONS[example.operation]
            with suppress(HoldfastError, msgspec.ValidationError):
                arguments = payloads.convert_arguments(operation, example.arguments, is_json=True)
                operation.call(getattr(store, operation.layer), arguments)
            all_held = buffers_held()
            gc.collect()
            if left := all_held - buffers_held():
                held[example.operation] = left

    assert held == {}
