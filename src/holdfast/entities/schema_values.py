"""The values that a schema file gives to its columns: `default` and `choices`.

A Text column takes them as written, so that `no`, `on` and `1e3` stay texts; every other type
takes what YAML means by them, if it fits.
"""

import re
from datetime import UTC, date, datetime
from typing import Any, Final

import yaml

from holdfast.entities.schema import CONTAINER_TYPES, NOW
from holdfast.entities.schema_text import Text, is_null, shown
from holdfast.yaml_text import YamlProblem, scalar, shortened

_FLOAT: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


class Misfit(Exception):
    """A value that does not fit its column; the message says what it is."""


def read_value(text: Text, node: yaml.Node, type: str, subtype: str | None) -> Any:
    """The value of `node` in a column of `type`, a Set as a list; raises `Misfit`."""
    if type in ("Set", "List"):
        return _elements(text, node, type, subtype)
    if type == "Map":
        if not isinstance(node, yaml.MappingNode):
            raise Misfit(shown(node))
        entries = text.entries(node, "the default")
        return {name: read_element(text, value, subtype) for name, _, value in entries}
    if not isinstance(node, yaml.ScalarNode):
        raise Misfit(shown(node))
    return str(node.value) if type == "Text" else _scalar(node, type)


def _elements(text: Text, node: yaml.Node, type: str, subtype: str | None) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        raise Misfit(shown(node))
    values = [read_element(text, item, subtype) for item in node.value]
    if type == "List":
        return values
    if any(isinstance(value, list | dict) for value in values):
        raise Misfit("a set with a list or mapping in it")
    return list(dict.fromkeys(values))


def read_element(text: Text, node: yaml.Node, subtype: str | None = None) -> Any:
    """A value inside a container; without `subtype`, whatever YAML takes it for."""
    if is_null(node) and subtype != "Text":
        return None
    if subtype is not None:
        return read_value(text, node, subtype, None)
    if isinstance(node, yaml.SequenceNode):
        return read_value(text, node, "List", None)
    if isinstance(node, yaml.MappingNode):
        return read_value(text, node, "Map", None)
    value = _constructed(node)
    return _moment(value) if isinstance(value, date) else value


def _scalar(node: yaml.ScalarNode, type: str) -> Any:
    value = _constructed(node)
    if type == "Timestamp":
        return _timestamp(value)
    if type == "Binary":
        return value.encode() if isinstance(value, str) else _checked(value, bytes, node)
    if type == "Bool":
        return _checked(value, bool, node)
    if type == "Float":
        if isinstance(value, str) and not node.style and _FLOAT.fullmatch(value):
            return float(value)  # YAML 1.1 wants a dot and a sign in 1.0e+3; people write 1e3
        return float(_checked(value, (int, float), node))
    number = _checked(value, int, node)
    low, high = (0, 2**64) if type == "Uint" else (-(2**63), 2**63)
    if not low <= number < high:
        raise Misfit(f"{number}, which needs more than 64 bits or has the wrong sign")
    return number


def _checked(value: Any, kinds: type | tuple[type, ...], node: yaml.Node) -> Any:
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise Misfit(shown(node))
    return value


def _timestamp(value: Any) -> Any:
    if value in (NOW, "current_timestamp"):
        return NOW
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Misfit(f"'{shortened(value)}'") from None
    if not isinstance(value, date):
        raise Misfit(f"'{value}'")
    return _moment(value)


def _moment(value: date) -> datetime:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    milliseconds = aware.microsecond // 1000  # finer times can't be stored
    try:
        return aware.astimezone(UTC).replace(microsecond=milliseconds * 1000)
    except OverflowError:
        raise Misfit(f"'{value}', which lies outside the years 1 to 9999 in UTC") from None


def _constructed(node: yaml.Node) -> Any:
    if is_null(node) or not isinstance(node, yaml.ScalarNode):
        raise Misfit("null" if is_null(node) else shown(node))
    try:
        return scalar(node)
    except YamlProblem as problem:
        raise Misfit(problem.message) from None


def outside(value: Any, choices: tuple[Any, ...], type: str) -> Any:
    """The value, or the first element of a container, that is no permitted choice; else None."""
    if not choices or value is None:
        return None
    if type == "Map":
        value = list(value.values())
    values = value if type in CONTAINER_TYPES else [value]
    return next((one for one in values if one not in choices), None)
