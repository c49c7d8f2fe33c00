"""The table of operations: what can be called from outside, and who may call it."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.declarations import operation
from holdfast.metrics.conditions import BUCKET_COUNT
from holdfast.operations import OPERATIONS, Operation, _methods

PINNED = Path(__file__).with_name("operations.txt")


def row(each: Operation) -> str:
    words = [
        each.full_name,
        each.method,
        each.kind,
        each.declaration.role,
        each.declaration.scope,
        "repeatable" if each.only_reads else "once",
    ]
    return " ".join(words)


def test_the_table_of_operations_changes_only_on_purpose() -> None:
    """A new line here is a new call for anyone: look at its role before you add it."""
    lines = PINNED.read_text().splitlines()

    pinned = [" ".join(line.split()) for line in lines if not line.startswith("#")]

    assert [row(each) for each in OPERATIONS.values()] == pinned


def test_every_operation_names_its_cost() -> None:
    silent = [each.full_name for each in OPERATIONS.values() if not each.cost]

    assert silent == []


def test_a_public_method_without_a_declaration_fails_the_build() -> None:
    class Forgetful:
        @operation(reads=True)
        def length(self) -> int:
            return 0

        def erase(self) -> None: ...

        def _private(self) -> None: ...

    with pytest.raises(TypeError, match=r"Forgetful\.erase has no @operation"):
        _methods(Forgetful)


def test_arguments_with_a_gap_are_passed_by_position_with_the_defaults_of_the_method() -> None:
    calls: list[Any] = []

    class Layer:
        def try_incr(self, *given: Any, **named: Any) -> None:
            calls.append((given, named))

    try_incr = OPERATIONS["metrics.try_incr"]
    try_incr.call(Layer(), try_incr.arguments(operations=[], conditions={}, algorithm="gcra"))
    try_incr.call(Layer(), try_incr.arguments(operations=[], conditions={}, namespace="shop"))
    try_incr.call(Layer(), try_incr.arguments(operations=[], conditions={}))

    assert calls == [
        (([], {}, BUCKET_COUNT, "gcra"), {}),
        (([], {}), {"namespace": "shop"}),
        (([], {}), {}),
    ]
