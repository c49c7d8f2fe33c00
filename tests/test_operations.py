"""The table of operations: what can be called from outside, and who may call it."""

from pathlib import Path

from holdfast.operations import OPERATIONS, Operation

PINNED = Path(__file__).with_name("operations.txt")


def row(operation: Operation) -> str:
    words = [
        operation.full_name,
        operation.method,
        operation.kind,
        operation.declaration.role,
        operation.declaration.scope,
        "repeatable" if operation.only_reads else "once",
    ]
    return " ".join(words)


def test_the_table_of_operations_changes_only_on_purpose() -> None:
    """A new line here is a new call for strangers: look at its role before you add it."""
    lines = PINNED.read_text().splitlines()

    pinned = [" ".join(line.split()) for line in lines if not line.startswith("#")]

    assert [row(operation) for operation in OPERATIONS.values()] == pinned
