"""The flux dialect: schemas as Artsy's Flux reads them.

It differs from the native one where Flux differs from its own description of MQL: prefixes match
character by character, handlers run in the order of the text, the last step of a chain names the
set in every target, identifiers are nearly any text, and an invalid handler is skipped instead of
refused. docs/howto/from-flux.md lists the differences.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holdfast.errors import InvalidEventSchema
from holdfast.events.expressions import (
    Attribute,
    BuiltIn,
    Expression,
    ExpressionProblem,
    Literal,
    Term,
)
from holdfast.events.schema import ALIASES, Handler, WriteOptions, read_job, without_comments
from holdfast.events.times import seconds_of
from holdfast.limits import (
    DEFAULT_BOARD_ENTRIES,
    MAX_EVENT_SCHEMA_BYTES,
    MAX_EXPIRE_AFTER_SECONDS,
    MAX_EXPRESSION_STEPS,
    MAX_EXPRESSION_TERMS,
    MAX_STORED_VALUES,
)

__all__ = ["FluxHandlers", "parse_text", "read_flux_handler", "read_flux_schema"]

_OPERATIONS: Final = ("add", "remove", "count_frequency")
_ESCAPED: Final = re.compile(r"\\(['\\])")
# Possessive, so that a term without an end costs one look at each character.
_TERM: Final = re.compile(r"\s*+(?:'((?:[^'\\]|\\.)*+)'\s*+|([^,'\]]*+))(,|\])")
_STEPS: Final = re.compile(r"((?:\.[^.]+)*)\s*\Z")

FluxHandlers = list[tuple[str, Handler]]  # prefix and handler, in the order of the text


def parse_text(text: bytes) -> dict[str, Any]:
    """Returns the object that a schema's text holds, its comments left out."""
    if len(text) > MAX_EVENT_SCHEMA_BYTES:
        raise InvalidEventSchema(
            [f"the schema has {len(text)} bytes, at most {MAX_EVENT_SCHEMA_BYTES} fit"]
        )
    try:
        schema = msgspec.json.decode(without_comments(text.decode()))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidEventSchema([f"the schema is not JSON: {error}"]) from None
    if not isinstance(schema, dict):
        raise InvalidEventSchema(["a schema is a JSON object"])
    return schema


def read_flux_schema(schema: Mapping[str, Any]) -> tuple[FluxHandlers, list[str]]:
    """Returns the valid handlers, and a sentence for each invalid one."""
    handlers: FluxHandlers = []
    problems: list[str] = []
    for prefix, listed in schema.items():
        if not isinstance(listed, list):
            problems.append(f"{prefix}: expected a list of handlers")
            continue
        for position, fields in enumerate(listed):
            name = f"{prefix}[{position}]"
            try:
                handler = read_flux_handler(name, fields)
            except ExpressionProblem as problem:
                problems.append(f"{name}: {problem}")
            else:
                if handler is not None:
                    handlers.append((prefix, handler))
    return handlers, problems


def read_flux_handler(name: str, given: Any) -> Handler | None:
    """Returns a handler; None if it has no operation. Raises `ExpressionProblem`."""
    if not isinstance(given, Mapping):
        raise ExpressionProblem("a handler is an object")
    fields = {ALIASES.get(field, field): value for field, value in given.items()}
    operation = next((each for each in _OPERATIONS if each in fields), None)
    job = read_job(fields["enqueue"]) if operation is None and "enqueue" in fields else None
    if operation is None and job is None:
        return None
    targets = fields.get("targets", [] if job else None)
    if not isinstance(targets, list) or not (targets or job):
        raise ExpressionProblem("targets: expected a list of expressions")
    is_board = operation == "count_frequency"
    options = WriteOptions(
        operation=operation or "enqueue",
        bound=_bound(fields.get("max_stored_values"), is_board=is_board),
        gross=not is_board and fields.get("store_gross_counters") is not False,
        distinct=not is_board and fields.get("store_distinct_counters") is not False,
        expire_after_ms=_expire_after(fields.get("expire_after")),
        windowed=not is_board,
        beside=is_board,
        takes_older=True,
    )
    return Handler(
        name=name,
        prefix=(),
        options=options,
        targets=tuple(_parse_target(each) for each in targets),
        value=_parse_value(fields[operation]) if operation else None,
        job=job,
        names_last=True,
        skips_empty=True,
        background=fields.get("fan_out") == "background",
    )


def _bound(given: Any, *, is_board: bool) -> int | None:
    """Returns the bound that is given as a number or as the text of one."""
    default = DEFAULT_BOARD_ENTRIES if is_board else None
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return default
    try:
        bound = int(given)
    except ValueError:
        return default
    return min(bound, MAX_STORED_VALUES) if bound >= 0 else default


def _expire_after(given: Any) -> int:
    seconds = seconds_of(given)
    if seconds is None or not 0.001 <= seconds <= MAX_EXPIRE_AFTER_SECONDS:
        return 0
    return round(seconds * 1_000)


# --- expressions --------------------------------------------------------------------------------


def _parse_target(text: Any) -> Expression:
    """Parses `[terms].step.step`, with names of any text.

    >>> _parse_target("[user, 'a.b'].followers").steps
    ('followers',)
    """
    if not isinstance(text, str):
        raise ExpressionProblem("targets: expected an expression, a string")
    begin = text.find("[")
    if begin < 0 or text[:begin].strip():
        raise ExpressionProblem(f"{text!r}: expected '[' at column 1")
    terms: list[Term] = []
    at = begin + 1
    while True:
        found = _TERM.match(text, at)
        name = found and found[2] and found[2].rstrip()
        if found is None or (found[1] is None and not name):
            raise ExpressionProblem(f"{text!r}: expected a term at column {at + 1}")
        terms.append(_term(found[1], name))
        at = found.end()
        if found[3] == "]":
            break
    steps = _STEPS.match(text, at)
    if steps is None:
        raise ExpressionProblem(f"{text!r}: expected a step at column {at + 1}")
    names = tuple(step.strip() for step in steps[1].split(".")[1:])
    if len(terms) > MAX_EXPRESSION_TERMS or len(names) > MAX_EXPRESSION_STEPS:
        raise ExpressionProblem("the expression is too long")
    return Expression(tuple(terms), names)


def _parse_value(text: Any) -> Expression:
    if not isinstance(text, str) or not text.strip():
        raise ExpressionProblem("expected a value, a string")
    stripped = text.strip()
    if stripped.startswith("["):
        return _parse_target(stripped)
    if stripped.startswith("'") and stripped.endswith("'") and len(stripped) > 1:
        return Expression((_term(stripped[1:-1], None),), is_list=False)
    return Expression((_term(None, stripped),), is_list=False)


def _term(literal: str | None, name: str | None) -> Term:
    if literal is not None:
        return Literal(_ESCAPED.sub(r"\1", literal))
    assert name is not None  # a term is one or the other
    return BuiltIn(name[1:]) if name.startswith("@") else Attribute(name)
