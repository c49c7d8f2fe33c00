"""Predicates on one attribute: a value means equality, an object names operators."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from holdfast.error_text import did_you_mean, shown
from holdfast.errors import InvalidAttributeValue, TableError
from holdfast.tables.plan import Attribute
from holdfast.tables.types import equal
from holdfast.tables.values import accept_timestamp, is_node_buffer
from holdfast.tables.versions import first_of, last_of

OPERATORS: Final = ("eq", "lt", "gt", "le", "ge", "between")

Predicate = list[tuple[str, Any]]  # operators but `between`, with values of the attribute's type


def accept_value(attribute: Attribute, value: Any) -> Any:
    """Returns `value` as the attribute's type stores it."""
    try:
        return attribute.accept(value)
    except ValueError as error:
        raise invalid_value(attribute, value, error) from None


def invalid_value(attribute: Attribute, value: Any, error: ValueError) -> InvalidAttributeValue:
    """Returns the error for a value that the attribute's type does not accept."""
    return InvalidAttributeValue(
        f"Invalid value of {attribute.name!r} ({attribute.type.name}): {error}; "
        f"it is {shown(value)}",
        attribute=attribute.name,
    )


def is_operators(attribute: Attribute, value: Any) -> bool:
    """Returns whether a value is an object of operators; Node's form of a Buffer is not."""
    return isinstance(value, dict) and not (
        attribute.type.kind.takes_buffers and not attribute.type.is_set and is_node_buffer(value)
    )


def parse(attribute: Attribute, value: Any, make_error: Callable[[str], TableError]) -> Predicate:
    """Returns the operators of a predicate; `make_error` returns the error for a malformed one."""
    if not is_operators(attribute, value):
        return [("eq", _operand(attribute, "eq", value))]
    check_operators(attribute, value, make_error)
    found: Predicate = []
    for name, operand in value.items():
        operator = name.lower()
        if operator != "between":
            found.append((operator, _operand(attribute, operator, operand)))
            continue
        if not isinstance(operand, list | tuple) or len(operand) != 2:
            raise InvalidAttributeValue(
                f"The operator between on {attribute.name!r} takes an array of two values",
                attribute=attribute.name,
            )
        found.append(("ge", _operand(attribute, "ge", operand[0])))
        found.append(("le", _operand(attribute, "le", operand[1])))
    return found


def check_operators(
    attribute: Attribute, value: dict[str, Any], make_error: Callable[[str], TableError]
) -> None:
    """Raises unless an object names operators and nothing else."""
    for name in value:
        if not isinstance(name, str) or name.lower() not in OPERATORS:
            near = did_you_mean(name, OPERATORS)
            raise make_error(
                f"Illegal predicate operator {shown(name)} on {attribute.name!r}{near}"
            )
    if not value:
        raise make_error(f"Illegal predicate operator: none is given for {attribute.name!r}")


def holds(attribute: Attribute, predicate: Predicate, value: Any) -> bool:
    """Returns whether a stored value, which may be null, satisfies all operators."""
    return all(_holds(attribute, operator, operand, value) for operator, operand in predicate)


def _holds(attribute: Attribute, operator: str, operand: Any, value: Any) -> bool:
    if operand is None or value is None:
        return operator == "eq" and operand is None and value is None
    if operator == "eq":
        return equal(attribute.type, value, operand)
    component = attribute.type.component
    assert component is not None  # `_operand` accepts only ordered types
    left, right = component(value), component(operand)
    return {
        "lt": left < right,
        "gt": left > right,
        "le": left <= right,
        "ge": left >= right,
    }[operator]


def _operand(attribute: Attribute, operator: str, value: Any) -> Any:
    if value is None:
        return None
    if operator != "eq":
        if attribute.type.component is None:
            raise InvalidAttributeValue(
                f"Attribute {attribute.name!r} of type {attribute.type.name} has no order: use eq",
                attribute=attribute.name,
            )
        if attribute.type.kind.has_time:  # a set has no order
            moment = _moment(value)
            if moment is not None:
                return first_of(moment) if operator in ("ge", "lt") else last_of(moment)
    return accept_value(attribute, value)


def _moment(value: Any) -> datetime | None:
    """Returns the time that bounds versions in a range; None if `value` is not a time."""
    if not isinstance(value, str | datetime):
        return None
    try:
        return accept_timestamp(value)
    except ValueError:
        return None
