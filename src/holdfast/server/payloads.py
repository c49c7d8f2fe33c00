"""The arguments and results of operations as bytes, the same in every protocol.

JSON has no bytes, timestamps, sets or 64-bit integers, as entities do. So the values of entities
are sent as Extended JSON (`{"$date": ...}`), and those of tables in the JSON forms of
their types. msgpack holds most of them as they are, and all of them on a connection that has asked
for exact values (`exact_msgpack.py`).
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, Final

import msgspec

from holdfast import exact_msgpack
from holdfast.entities import extended_json
from holdfast.entities.messages import Entity, Page
from holdfast.entities.values import from_kept
from holdfast.error_text import decoder_message, misfit, nearest
from holdfast.errors import BadInput, HoldfastError
from holdfast.operations import OPERATIONS, Operation
from holdfast.server import bigints
from holdfast.server.compound_keys import refuse_compound_keys
from holdfast.server.piecewise_encoding import Encode, in_pieces
from holdfast.tables.json_parser import exact_number

_UNKNOWN: Final = re.compile(
    r"Object contains unknown field `(?P<name>.*?)`( - at `(?P<path>[^`]*)`)?", re.DOTALL
)
_STEP: Final = re.compile(r"\.(\w+)|(\[)")  # of a path of msgspec
_MISSING: Final = re.compile(r"Object missing required field `([^`]*)`")
# About an argument, or an element of it; msgspec names the limit if a number is out of range.
_MISFIT: Final = re.compile(
    r"(?P<beyond>Expected `int` [<>]= )?.* - at `\$\.(?P<argument>\w+)(?P<element>\[.*)?`",
    re.DOTALL,
)


def read_arguments(
    operation: Operation, payload: bytes, *, is_json: bool, integers_as_text: bool = False
) -> Any:
    """Returns the arguments of an operation; with `integers_as_text`, an integer may be a
    string."""
    from_json, from_msgpack, has_entities = _decoders(operation.full_name, integers_as_text)
    try:
        if not is_json:
            refuse_compound_keys(payload)
            return from_msgpack(payload)
        # Without a dollar sign it can't be Extended JSON, and is decoded in one step.
        if not has_entities or b"$" not in payload:
            return from_json(payload)
        given = msgspec.json.decode(payload)
        return convert_arguments(operation, given, is_json=True, integers_as_text=integers_as_text)
    except msgspec.ValidationError as error:
        if operation.single is not None and _is_unknown(operation.single, error):
            given = (msgspec.json if is_json else msgspec.msgpack).decode(payload)
            return convert_arguments(
                operation, given, is_json=is_json, integers_as_text=integers_as_text
            )
        raise refusal(operation, error) from None
    except RecursionError:
        raise BadInput("the arguments are nested too deeply") from None
    except UnicodeDecodeError:
        raise BadInput("a text of the arguments is not UTF-8") from None
    except msgspec.DecodeError as error:
        form = "JSON" if is_json else "msgpack"
        raise BadInput(
            f"the arguments are not {form}: {error}",
            hint=f"Send one object: {_argument_list(operation)}",
        ) from None


@cache
def _decoders(
    name: str, integers_as_text: bool
) -> tuple[Callable[[bytes], Any], Callable[[bytes], Any], bool]:
    """Returns the decoder of an operation's arguments, which is cached."""
    operation = OPERATIONS[name]
    from_json = msgspec.json.Decoder(
        operation.arguments, strict=not integers_as_text, float_hook=number_hook(operation)
    ).decode
    if name in _OPERATIONS_WITH_FORM:
        decode = from_json
        from_json = lambda payload: with_json_values(operation, decode(payload))  # noqa: E731
    from_msgpack = msgspec.msgpack.Decoder(operation.arguments).decode
    return from_json, from_msgpack, operation.declaration.holds_entities


def with_json_values(operation: Operation, arguments: Any) -> Any:
    """Returns the arguments of a call that is answered in JSON: unless they say otherwise, the
    values of rows are returned in the JSON forms of their types, a `long` as a string."""
    if operation.full_name in _OPERATIONS_WITH_FORM and arguments.form is msgspec.UNSET:
        arguments.form = "json"
    return arguments


def number_hook(operation: Operation) -> Callable[[str], Any] | None:
    """Returns the hook that reads the numbers of a JSON text. Tables have exact types, which a
    double would not preserve."""
    return exact_number if operation.layer == "tables" else None


def convert_arguments(
    operation: Operation, given: Any, *, is_json: bool, integers_as_text: bool = False
) -> Any:
    """Like `read_arguments`, for an object that is already decoded."""
    strict = not integers_as_text
    single = operation.single
    if single is not None and isinstance(given, dict) and single in given:
        given = _with_list(operation, given)
    try:
        if is_json and operation.declaration.holds_entities and isinstance(given, dict):
            given = {name: from_kept(kept) for name, kept in extended_json.values(given).items()}
            return msgspec.convert(
                given, operation.arguments, strict=strict, builtin_types=(bytes, datetime)
            )
        arguments = msgspec.convert(given, operation.arguments, strict=strict)
        return with_json_values(operation, arguments) if is_json else arguments
    except msgspec.ValidationError as error:
        raise refusal(operation, error) from None


def _is_unknown(name: str, error: msgspec.ValidationError) -> bool:
    return str(error) == f"Object contains unknown field `{name}`"


def _with_list(operation: Operation, given: dict[Any, Any]) -> dict[Any, Any]:
    """Returns arguments in which the one value that was sent under the singular of a list's name
    is that list."""
    if operation.star in given:
        raise BadInput(
            f"{operation.full_name} got both `{operation.single}` and `{operation.star}`",
            hint=f"Send all values in the list `{operation.star}`.",
        )
    others = {name: value for name, value in given.items() if name != operation.single}
    return {operation.star: [given[operation.single]], **others}


def refusal(operation: Operation, error: msgspec.ValidationError) -> HoldfastError:
    """Returns the error for wrong arguments, with a list of the valid ones."""
    message = decoder_message(error)
    taken = operation.arguments.__struct_encode_fields__
    said = misfit(error, operation.full_name)
    if (unknown := _UNKNOWN.fullmatch(message)) is not None:
        if unknown["path"] is not None:  # a field of a record in an argument
            known = _fields_at(operation.arguments, unknown["path"])
            near = nearest(unknown["name"], known)
            return BadInput(said, hint=_meant(near) or f"Its fields are {', '.join(known)}.")
        near = nearest(unknown["name"], taken)
        said = f"{operation.full_name} has no argument `{unknown['name']}`"
        return BadInput(said, hint=_meant(near) or _argument_list(operation))
    if (missing := _MISSING.fullmatch(message)) is not None:
        said = f"{operation.full_name} needs the argument `{missing[1]}`"
    elif (wrong := _MISFIT.fullmatch(message)) is not None:
        argument = f"{wrong['argument']}[]" if wrong["element"] else wrong["argument"]
        return operation.refusal(argument, is_beyond=bool(wrong["beyond"]))(said)
    elif " - at `" in message:
        return BadInput(said)
    return BadInput(said, hint=_argument_list(operation))


def _meant(near: str | None) -> str:
    return "" if near is None else f"Did you mean `{near}`?"


def _fields_at(arguments: type[msgspec.Struct], path: str) -> list[str]:
    """Returns the fields of the record at a path of msgspec, `$.jobs[0]`, in the arguments."""
    found: Any = msgspec.inspect.type_info(arguments)
    for name, _ in _STEP.findall(path):
        for each in getattr(found, "types", (found,)):  # of a union, the one that leads on
            if name and isinstance(each, msgspec.inspect.StructType):
                found = next(field.type for field in each.fields if field.encode_name == name)
            elif not name:
                found = getattr(each, "item_type", getattr(each, "value_type", found))
    for each in getattr(found, "types", (found,)):
        if isinstance(each, msgspec.inspect.StructType):
            return [field.encode_name for field in each.fields]
    return []


def _argument_list(operation: Operation) -> str:
    listed = ", ".join(operation.arguments.__struct_encode_fields__) or "no arguments"
    return f"{operation.full_name} takes {listed}."


def as_encodable(operation: Operation, result: Any, *, is_json: bool) -> Any:
    """Returns the result in the form that is encoded."""
    if is_json and operation.declaration.holds_entities:
        return _with_extended_json(result)
    return result


def encoder(
    operation: Operation, *, is_json: bool, integers_as_text: bool = False
) -> Callable[[Any], bytes]:
    """Returns the encoder of an operation's results."""
    if not is_json:
        return _record_encoder(operation, msgspec.msgpack.encode, msgspec.msgpack.encode)
    plain = bigints.encode if integers_as_text else msgspec.json.encode
    encode = _record_encoder(operation, plain, msgspec.json.encode)
    if operation.declaration.holds_entities:
        return lambda result: encode(_with_extended_json(result))
    return encode


def has_many_records(operation: Operation) -> bool:
    """Returns whether a result may hold any number of records. Encoding it takes time, so a write
    encodes it where it was made, and not on the event loop."""
    return any(word in str(operation.result) for word in _OF_MANY_RECORDS)


def _record_encoder(operation: Operation, encode: Encode, join: Encode) -> Encode:
    """Returns the encoder for an operation whose result may be a list or a page."""
    return in_pieces(encode, join) if has_many_records(operation) else encode


def exact_decoder(operation: Operation) -> Callable[[bytes], Any]:
    """Returns the decoder of arguments in msgpack with the extensions of `exact_msgpack.py`."""
    decode = msgspec.msgpack.Decoder(operation.arguments, ext_hook=exact_msgpack.extension).decode

    def read(payload: bytes) -> Any:
        refuse_compound_keys(payload)
        try:
            return decode(payload)
        except RecursionError:
            raise BadInput("the arguments are nested too deeply") from None
        except UnicodeDecodeError:
            raise BadInput("a text of the arguments is not UTF-8") from None
        except msgspec.ValidationError as error:
            raise refusal(operation, error) from None
        except (HoldfastError, msgspec.MsgspecError):
            raise
        except Exception:
            raise BadInput("an extension of the arguments is damaged") from None

    return read


def exact_encoder(operation: Operation) -> Callable[[Any], bytes]:
    """Returns the encoder of results in msgpack with the extensions of `exact_msgpack.py`."""
    has_values = operation.declaration.holds_values

    def encode(result: Any) -> bytes:
        if has_values:
            return exact_msgpack.encode(exact_msgpack.replaced(result))
        try:
            return exact_msgpack.encode(result)
        except OverflowError:  # the data of a job may hold an integer of any size
            return exact_msgpack.encode(exact_msgpack.replaced(result))

    return _record_encoder(operation, encode, msgspec.msgpack.encode)


# In the types of results: lists, pages, and structs with lists of them.
_OF_MANY_RECORDS: Final = ("list[", "Page", "Any", "KeptResult", "SendManyReply", "BatchResult")

# Their results hold rows, in the form that an argument chooses.
_OPERATIONS_WITH_FORM: Final = frozenset(
    operation.full_name
    for operation in OPERATIONS.values()
    if operation.layer == "tables" and "form" in operation.arguments.__struct_fields__
)


def _with_extended_json(value: Any) -> Any:
    """Returns the result with the properties of its entities as Extended JSON."""
    kind = type(value)
    if kind is list:
        if len(value) == 1 and type(entity := value[0]) is Entity:  # the usual case
            return [_entity_as_extended_json(entity)]
        return [_with_extended_json(item) for item in value]
    if kind is Entity:
        return _entity_as_extended_json(value)
    if kind is Page:
        return msgspec.structs.replace(value, entities=_with_extended_json(value.entities))
    return value


def _entity_as_extended_json(entity: Entity) -> Entity:
    if extended_json.are_json_types(map(type, entity.properties.values())):
        return entity
    written = extended_json.write_properties(entity.properties)
    return Entity(entity.id, written, entity.ttl, entity.version)
