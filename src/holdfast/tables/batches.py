"""Batches: several puts and deletes on any tables of a space, all or nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Transaction
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import BatchTooLong, InvalidTableRequest, TableError
from holdfast.limits import MAX_BATCH_OPERATIONS, MAX_BATCH_SECONDS, SECONDS_PER_ITEM
from holdfast.tables import catalogue, deletes, puts
from holdfast.tables.deletes import Delete
from holdfast.tables.puts import CheckedPut
from holdfast.tables.records import BatchResult, StepResult
from holdfast.tables.row_writer import RowWriter

_MEMBERS = frozenset({"op", "table", "attributes", "if", "if_match", "if_none_match"})
Step = tuple[RowWriter, CheckedPut | Delete]


def run(
    tx: Transaction, operations: Sequence[Mapping[str, Any]], make_version: Callable[[], Any]
) -> BatchResult:
    """Checks all operations, then all conditions, then writes: a refused batch writes nothing."""
    if not isinstance(operations, list | tuple) or len(operations) > MAX_BATCH_OPERATIONS:
        raise InvalidTableRequest(
            f"The operations of a batch are an array of at most {MAX_BATCH_OPERATIONS}"
        )
    # A table may have 100 indexes of 1,000 attributes, all of which a put writes.
    seconds = MAX_BATCH_SECONDS + len(operations) * SECONDS_PER_ITEM
    timer = CallTimer("the batch", BatchTooLong.hint, seconds)
    writers: dict[str, RowWriter] = {}
    steps: list[Step] = []
    for number, operation in enumerate(operations):
        try:
            steps.append(_prepare(tx, writers, operation, make_version))
        except TableError as error:
            raise _with_number(number, error) from None
    for number, (writer, step) in enumerate(steps):
        try:
            if step.has_condition and not _is_met(writer, step):
                return BatchResult(applied=False, failed=number)
        except TableError as error:
            raise _with_number(number, error) from None
    results: list[StepResult] = []
    deleted = deletes.DeletedRows()
    for writer, step in steps:
        if isinstance(step, CheckedPut):
            results.append(StepResult(tid=puts.write(writer, step)))
        else:
            results.append(StepResult(count=deletes.apply(writer, step, deleted).count))
        timer.check()
    for writer in writers.values():
        writer.finish()
    return BatchResult(applied=True, results=results)


def _with_number(number: int, error: TableError) -> TableError:
    error.message = f"operation {number}: {error.message}"
    return error


def _prepare(
    tx: Transaction,
    writers: dict[str, RowWriter],
    operation: Mapping[str, Any],
    make_version: Callable[[], Any],
) -> Step:
    is_object = type(operation) is dict or isinstance(operation, Mapping)
    if not is_object or not _MEMBERS.issuperset(operation):
        raise _malformed(operation)
    table = operation.get("table")
    if not isinstance(table, str):
        raise InvalidTableRequest("an operation must name its table")
    writer = writers.get(table)
    if writer is None:
        writer = writers[table] = RowWriter(tx, catalogue.find_to_write(tx, table))
    attributes = operation.get("attributes")
    if operation.get("op") == "put":
        if len(operation) == 3:
            return writer, puts.prepare(writer.plan, attributes, make_version)
        put = puts.prepare(
            writer.plan,
            attributes,
            make_version,
            condition=operation.get("if"),
            if_match=operation.get("if_match"),
            if_none_match=operation.get("if_none_match"),
        )
        return writer, put
    if operation.get("op") == "delete":
        delete = deletes.prepare(
            writer.plan,
            tx.space,
            attributes,
            condition=operation.get("if"),
            if_match=operation.get("if_match"),
            if_none_match=operation.get("if_none_match"),
        )
        return writer, delete
    raise InvalidTableRequest(f"op must be put or delete, not {shown(operation.get('op'))}")


def _malformed(operation: Any) -> InvalidTableRequest:
    listed = f"An operation has {', '.join(sorted(_MEMBERS))}."
    if not isinstance(operation, Mapping):
        return InvalidTableRequest(
            f"an operation must be an object, not {shown(operation)}", hint=listed
        )
    name = next(name for name in operation if name not in _MEMBERS)
    near = did_you_mean(name, sorted(_MEMBERS))
    return InvalidTableRequest(f"unknown member {shown(name)}{near}", hint=listed)


def _is_met(writer: RowWriter, step: CheckedPut | Delete) -> bool:
    if isinstance(step, Delete):
        return deletes.is_met(writer, step)
    return puts.is_met(writer, step, puts.find(writer, step))
