"""Queries by URL: the path gives the first elements of an index, the query string the rest.

The query string must be the raw one of the request: once it is decoded, a comma in a name looks
like a comma between names.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import msgspec

from holdfast.engine.contract import Reader
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import (
    InvalidAttributeValue,
    InvalidTablePath,
    InvalidTableQuery,
    InvalidTableRequest,
)
from holdfast.limits import UNQUERIED_PAGE_ROWS
from holdfast.tables.plan import Attribute, Element, Index, TablePlan
from holdfast.tables.predicates import OPERATORS, accept_value, invalid_value
from holdfast.tables.queries import Query, check_shape, index_of, not_in_index
from holdfast.tables.types import equal

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_NOT_IN_DELETE: Final = (
    "limit", "proj", "order", "next", "index", "withTTL", "distinct", "count",
)  # fmt: skip
_PARAMETERS: Final = (*_NOT_IN_DELETE, "format")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


def query_of(
    reader: Reader, plan: TablePlan, index: str | None, values: list[str], query_string: str
) -> Query:
    """Returns the one query object that a path and its parameters describe."""
    if index is None and not values and not query_string:
        return Query(limit=UNQUERIED_PAGE_ROWS)
    parameters = parse_parameters(query_string)
    for name, raw in parameters:
        if name == "index":
            named = _decode_parameter(raw)
            if index is not None and index != named:
                raise InvalidTableQuery("The path and the parameter index name different indexes")
            index = named
    builder = _QueryBuilder(plan, index_of(reader, plan, index), values)
    for name, raw in parameters:
        builder.add(name, raw)
    return builder.query(index)


def check_types(values: Any, query_string: Any = "") -> None:
    """Raises unless these can come from a URL: a list of texts, and a text."""
    if not isinstance(values, list | tuple) or not all(isinstance(each, str) for each in values):
        raise InvalidTablePath(f"The values of a path are a list of texts, not {shown(values)}")
    if not isinstance(query_string, str):
        raise InvalidTableQuery(f"A query string is a text, not {shown(query_string)}")


def attributes_of(plan: TablePlan, values: list[str], attributes: Any) -> dict[str, Any]:
    """Returns the attributes of a put: key attributes from the path, the rest from the body."""
    if attributes is not None and not isinstance(attributes, Mapping):
        raise InvalidTableRequest("The attributes of a put are an object")
    attributes = attributes or {}
    merged = dict(attributes)
    for name, text in _fixed(plan, plan.primary, values).items():
        attribute = plan.attributes[name]
        value, stated = _from_text(attribute, text, "eq"), attributes.get(name)
        if stated is not None and not equal(attribute.type, accept_value(attribute, stated), value):
            raise InvalidTableRequest(f"The path and the body fix {name!r} differently")
        merged[name] = value
    return merged


def slice_attributes(
    reader: Reader, plan: TablePlan, values: list[str], query_string: str
) -> dict[str, Any]:
    """Returns the predicates of a delete by URL."""
    for name, _ in parse_parameters(query_string):
        if name in _NOT_IN_DELETE:
            raise InvalidTableRequest(f"A delete takes no {name}")
    if not values and not query_string:
        return {}
    return dict(query_of(reader, plan, None, values, query_string).attributes or {})


def parse_parameters(query_string: str) -> list[tuple[str, str]]:
    """Returns decoded names and still encoded values of a query string."""
    found = []
    for piece in query_string.split("&"):
        if piece:
            name, _, value = piece.partition("=")
            found.append((_decode_parameter(name), value))
    return found


class _QueryBuilder:
    """Builds a query from the path and the parameters of a URL."""

    def __init__(self, plan: TablePlan, index: Index, values: list[str]) -> None:
        self._plan = plan
        self._index = index
        self._fixed = _fixed(plan, index, values)
        self._elements: list[Element] = [*index.hashes, *index.ranges]
        self._count = len(values)
        self._predicates: dict[str, dict[str, list[str]]] = {}  # texts, by attribute and operator
        self._proj: list[str] = []
        self._orders: list[str] = []
        self._members: dict[str, Any] = {}

    def add(self, name: str, raw: str) -> None:
        if name == "proj":
            self._proj += [_decode_parameter(each) for each in raw.split(",")]
            return
        value = _decode_parameter(raw)
        if name == "index":
            self._once(name, value)
        elif name in OPERATORS:
            if self._count == len(self._elements):
                raise InvalidTablePath(f"The path fixes every element, {name} has none left")
            self._predicate(self._elements[self._count].name, name, value)
        elif name == "order":
            self._orders.append(value)
        elif name == "limit":
            if not value.isascii() or not value.isdigit():
                raise InvalidTableQuery(
                    f"The limit must be an integer of at least 1, not {value!r}"
                )
            # A limit has no greatest value, and this many digits are beyond every other bound.
            self._once(name, int(value.lstrip("0")[:18] or "0"))
        elif name == "next":
            self._once(name, value)
        elif name in ("withTTL", "distinct"):
            if value not in _FLAGS:
                raise InvalidTableQuery(f"{name} must be true or false, not {value!r}")
            self._once({"withTTL": "with_ttl"}.get(name, name), _FLAGS[value])
        elif name == "count":
            if value != "only":
                raise InvalidTableQuery(f"count must be 'only', not {value!r}")
            self._once("count_only", True)
        else:
            self._named(name, value)

    def query(self, index: str | None) -> Query:
        for name, operators in self._predicates.items():
            if "between" in operators and len(operators["between"]) != 2:
                raise InvalidTableQuery(f"between is given exactly twice for {name!r}")
        self._members.pop("index", None)
        order = self._order()
        proj = self._proj or None
        query = Query(order=order, proj=proj, index=index, **self._members)
        try:
            return msgspec.structs.replace(query, attributes=self._attributes())
        except InvalidAttributeValue:
            check_shape(self._plan, self._index, query)
            raise

    def _attributes(self) -> dict[str, Any]:
        """Returns the attributes; texts become values in the order of the schema."""
        attributes: dict[str, Any] = {}
        for attribute in self._plan.attributes.values():
            if attribute.name in self._fixed:
                attributes[attribute.name] = _from_text(
                    attribute, self._fixed[attribute.name], "eq"
                )
            for operator, texts in self._predicates.get(attribute.name, {}).items():
                values = [_from_text(attribute, text, operator) for text in texts]
                operators = attributes.setdefault(attribute.name, {})
                operators[operator] = values if operator == "between" else values[0]
        return attributes

    def _once(self, name: str, value: Any) -> None:
        if name in self._members:
            raise InvalidTableQuery(f"The parameter {name} is given twice")
        self._members[name] = value

    def _named(self, parameter: str, value: str) -> None:
        name, dot, operator = parameter.rpartition(".")
        if not dot or operator not in OPERATORS or name not in self._plan.attributes:
            raise InvalidTableQuery(f"Unknown parameter {parameter!r}{self._hint_for(parameter)}")
        if name not in self._index.elements:
            raise not_in_index(name)
        self._predicate(name, operator, value)

    def _hint_for(self, parameter: str) -> str:
        named = (f"{element.name}.{op}" for element in self._elements for op in OPERATORS)
        return did_you_mean(parameter, (*_PARAMETERS, *OPERATORS, *named))

    def _predicate(self, name: str, operator: str, text: str) -> None:
        if name in self._fixed:
            raise InvalidTableQuery(f"The path fixes {name!r} already")
        texts = self._predicates.setdefault(name, {}).setdefault(operator, [])
        if texts and operator != "between":
            raise InvalidTableQuery(f"The operator {operator} is given twice for {name!r}")
        texts.append(text)

    def _order(self) -> dict[str, str] | None:
        if not self._orders:
            return None
        order: dict[str, str] = {}
        for text in self._orders:
            name, colon, direction = text.rpartition(":")
            if not colon:
                name = self._first_free()
            if name in order:
                raise InvalidTableQuery(f"The order of {name!r} is given twice")
            order[name] = direction
        return order

    def _first_free(self) -> str:
        """Returns the first range element that is not fixed by equality."""
        for element in self._index.ranges:
            operators = self._predicates.get(element.name, {})
            if element.name not in self._fixed and operators.keys() != {"eq"}:
                return element.name
        raise InvalidTableQuery("Cannot order on attribute: every range element is fixed")


def _fixed(plan: TablePlan, index: Index, values: list[str]) -> dict[str, str]:
    """Returns the texts of the path by the attributes that they fix."""
    elements = [*index.hashes, *index.ranges]
    if len(values) > len(elements):
        raise InvalidTablePath(
            f"The path has {len(values)} values, {plan.name} has {len(elements)} elements"
        )
    return {element.name: text for element, text in zip(elements, values, strict=False)}


def _from_text(attribute: Attribute, text: str, operator: str) -> Any:
    if attribute.type.kind.has_time and not attribute.type.is_set and operator != "eq":
        return text  # it may be a time; the predicate decides
    try:
        return attribute.type.from_text(text)
    except ValueError as error:
        raise invalid_value(attribute, text, error) from None


def decode_segment(text: str) -> str:
    """Decodes one segment of a raw path."""
    if _BAD_ESCAPE.search(text):
        raise InvalidTablePath("The path has a malformed escape")
    try:
        raw = text.encode("latin-1") if text.isascii() else _raw(text)
        return unquote_to_bytes(raw).decode()
    except UnicodeError:
        raise InvalidTablePath("The path is not UTF-8") from None


def _raw(text: str) -> bytes:
    """Returns the bytes of a target that was read as Latin-1, as servers do, or as text."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _decode_parameter(text: str) -> str:
    return decode_segment(text.replace("+", " "))
