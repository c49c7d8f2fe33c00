"""The `if` of a put or delete: not exists, exists, or predicates on the stored row."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.error_text import shown
from holdfast.errors import InvalidTableRequest, UnknownAttribute
from holdfast.tables.plan import Attribute, TablePlan, Values
from holdfast.tables.predicates import Predicate, holds, parse


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that must hold before anything is written."""

    exists: bool | None = None  # whether a live row must exist; None: either way
    row: list[tuple[Attribute, Predicate]] = []
    static: list[tuple[Attribute, Predicate]] = []

    def is_met(self, values: Values | None, statics: Values | None) -> bool:
        """Returns whether the condition holds for the live row's `values` and its hash key's
        `statics`."""
        if self.exists is not None and self.exists != (values is not None):
            return False
        for attribute, predicate in self.static:
            if not holds(attribute, predicate, None if statics is None else statics[attribute.id]):
                return False
        for attribute, predicate in self.row:
            if values is None or not holds(attribute, predicate, values[attribute.id]):
                return False
        return True


def parse_condition(plan: TablePlan, condition: Any) -> Condition | None:
    """Returns the condition in `if`; None without one."""
    if condition is None:
        return None
    if isinstance(condition, str):
        words = " ".join(condition.split()).lower()
        if words not in ("not exists", "exists"):
            raise InvalidTableRequest(
                "Only 'not exists' and 'exists' are supported as a condition, not "
                f"{shown(condition)}"
            )
        return Condition(exists=words == "exists")
    if not isinstance(condition, Mapping):
        raise InvalidTableRequest(
            f"Only 'not exists', 'exists' or an object of predicates is a condition, "
            f"not {shown(condition)}"
        )
    row: list[tuple[Attribute, Predicate]] = []
    static: list[tuple[Attribute, Predicate]] = []
    for name, value in condition.items():
        attribute = plan.attributes.get(name)
        if attribute is None:
            raise UnknownAttribute(f"Unknown attribute {name} in a condition", attribute=str(name))
        predicate = parse(attribute, value, InvalidTableRequest)
        (static if attribute.is_static else row).append((attribute, predicate))
    return Condition(row=row, static=static)
