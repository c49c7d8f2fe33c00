"""The values that a schema file gives to its columns: `default` and `choices`.

A Text column takes them as written, so that `no`, `on` and `1e3` stay texts; every other type takes
the value that YAML reads, if it fits.
"""

from datetime import date
from typing import Any

import yaml

from holdfast.entities.schema_text import SchemaText, is_null, shown
from holdfast.entities.types import COLUMN_KINDS, Scalar, ValueMismatch, read_moment
from holdfast.yaml_text import YamlProblem, scalar, shortened


def read_value(text: SchemaText, node: yaml.Node, type: str, subtype: str | None) -> Any:
    """Returns the value of `node` in a column of `type`, a Set as a list; else `ValueMismatch`."""
    kind = COLUMN_KINDS[type]
    if kind.read is None:
        return (
            _entries(text, node, subtype)
            if kind.has_names
            else _elements(text, node, type, subtype)
        )
    if not isinstance(node, yaml.ScalarNode):
        raise ValueMismatch(shown(node))
    value = None if kind.is_text else _constructed(node)
    return kind.read(Scalar(value, str(node.value), bool(node.style), shown(node)))


def _entries(text: SchemaText, node: yaml.Node, subtype: str | None) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise ValueMismatch(shown(node))
    entries = text.entries(node, "the default")
    return {name: read_element(text, value, subtype) for name, _, value in entries}


def _elements(text: SchemaText, node: yaml.Node, type: str, subtype: str | None) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        raise ValueMismatch(shown(node))
    values = [read_element(text, item, subtype) for item in node.value]
    if not COLUMN_KINDS[type].is_distinct:
        return values
    if any(isinstance(value, list | dict) for value in values):
        raise ValueMismatch("a set with a list or mapping in it")
    return list(dict.fromkeys(values))


def read_element(text: SchemaText, node: yaml.Node, subtype: str | None = None) -> Any:
    """Returns a value inside a container; without `subtype`, of its type in YAML."""
    if is_null(node) and not (subtype and COLUMN_KINDS[subtype].is_text):
        return None
    if subtype is not None:
        return read_value(text, node, subtype, None)
    if isinstance(node, yaml.SequenceNode):
        return [read_element(text, item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return _entries(text, node, None)
    value = _constructed(node)
    return read_moment(value) if isinstance(value, date) else value


def _constructed(node: yaml.Node) -> Any:
    if is_null(node) or not isinstance(node, yaml.ScalarNode):
        raise ValueMismatch("null" if is_null(node) else shown(node))
    try:
        return scalar(node)
    except YamlProblem as problem:
        found = repr(shortened(node.value))
        reason = problem.message.removeprefix(found)  # " is not a number"
        has_prefix = reason != problem.message
        raise ValueMismatch(f"{found}, which{reason}," if has_prefix else reason) from None


def disallowed_choice(value: Any, choices: tuple[Any, ...], type: str) -> Any:
    """Returns the value, or the first element of a container, that is not a permitted choice; else
    None."""
    if not choices or value is None:
        return None
    kind = COLUMN_KINDS[type]
    if kind.has_names:
        value = list(value.values())
    values = value if kind.is_container else [value]
    return next((one for one in values if one not in choices), None)
