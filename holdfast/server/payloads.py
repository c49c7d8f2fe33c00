"""The arguments and results of operations as bytes, the same at every door.

JSON has no bytes, moments, Sets or 64-bit numbers, which entities have. So the values of entities
travel through JSON as Extended JSON (`{"$date": ...}`); msgpack holds them as they are.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from holdfast.entities import extended_json
from holdfast.entities.messages import Entity, Page
from holdfast.entities.values import give
from holdfast.errors import BadInput
from holdfast.operations import OPERATIONS, Operation


def read_arguments(operation: Operation, payload: bytes, *, is_json: bool) -> Any:
    """The arguments of an operation."""
    from_json, from_msgpack, has_entities = _reading(operation.full_name)
    try:
        if not is_json:
            return from_msgpack(payload)
        # Without a dollar sign nothing in it is Extended JSON, and it can be decoded at once.
        if not has_entities or b"$" not in payload:
            return from_json(payload)
        return convert_arguments(operation, msgspec.json.decode(payload), is_json=True)
    except RecursionError:
        raise BadInput("the arguments are nested too deeply") from None
    except UnicodeDecodeError:
        raise BadInput("a text of the arguments is not UTF-8") from None


@cache
def _reading(name: str) -> tuple[Callable[[bytes], Any], Callable[[bytes], Any], bool]:
    """How the arguments of an operation are decoded: its decoders are made once."""
    operation = OPERATIONS[name]
    return (
        msgspec.json.Decoder(operation.arguments).decode,
        msgspec.msgpack.Decoder(operation.arguments).decode,
        _has_entities(operation),
    )


def convert_arguments(operation: Operation, given: Any, *, is_json: bool) -> Any:
    """The same of an object that is decoded already."""
    if is_json and _has_entities(operation) and isinstance(given, dict):
        given = {name: give(kept) for name, kept in extended_json.values(given).items()}
        return msgspec.convert(given, operation.arguments, builtin_types=(bytes, datetime))
    return msgspec.convert(given, operation.arguments)


def travelling(operation: Operation, result: Any, *, is_json: bool) -> Any:
    """The result as it is to be encoded."""
    if is_json and _has_entities(operation):
        return _written(result)
    return result


def encoder(operation: Operation, *, is_json: bool) -> Callable[[Any], bytes]:
    """Makes the bytes of a result."""
    if is_json and _has_entities(operation):
        encode = msgspec.json.encode
        return lambda result: encode(_written(result))
    return msgspec.json.encode if is_json else msgspec.msgpack.encode


def _has_entities(operation: Operation) -> bool:
    return operation.layer == "entities" and operation.method.endswith("_raw")


def _written(value: Any) -> Any:
    """The result with the properties of its entities as Extended JSON."""
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, Page):
        return msgspec.structs.replace(value, entities=_written(value.entities))
    if isinstance(value, Entity):
        written = extended_json.write_properties(value.properties)
        return msgspec.structs.replace(value, properties=written)
    return value
