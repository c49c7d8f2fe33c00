"""Reads schemas, and reports every problem of an invalid one with its place.

A schema is an object from event prefix to a list of handlers. `read_schema` turns an object, or its
text in JSON or YAML, into handlers, or raises `InvalidEventSchema` with a sentence for each
problem: `client:gravity:action[0].targets[1]: expected ']' at column 9`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from holdfast.error_text import nearest
from holdfast.errors import InvalidEventSchema
from holdfast.events.expressions import (
    Expression,
    ExpressionProblem,
    parse_expression,
    parse_value,
)
from holdfast.events.times import seconds_of
from holdfast.limits import (
    DEFAULT_BOARD_ENTRIES,
    MAX_EVENT_NAME_BYTES,
    MAX_EVENT_NAME_SEGMENTS,
    MAX_EVENT_SCHEMA_BYTES,
    MAX_EXPIRE_AFTER_SECONDS,
    MAX_SCHEMA_PROBLEMS,
    MAX_STORED_VALUES,
)

__all__ = [
    "EnqueuedJob",
    "Handler",
    "Operation",
    "WriteOptions",
    "read_handlers",
    "read_job",
    "read_schema",
    "without_comments",
]

Operation = Literal["add", "remove", "count_frequency", "aggregate", "enqueue"]

_OPERATIONS: Final[tuple[Operation, ...]] = (
    "add",
    "remove",
    "count_frequency",
    "aggregate",
    "enqueue",
)
_FIELDS: Final = (
    *_OPERATIONS,
    "targets",
    "max_stored_values",
    "store_gross_counters",
    "store_distinct_counters",
    "expire_after",
    "fan_out",
    "weight",
    "half_life",
    "windowed_counters",
    "beside_set",
)
# Spellings of Flux, which mean the same in both dialects.
ALIASES: Final = {
    "store_gross_counts": "store_gross_counters",
    "store_distinct_counts": "store_distinct_counters",
    "maxStoredValues": "max_stored_values",
}
_JOB_FIELDS: Final = ("queue", "klass", "data")
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options with which a handler writes to its keys. Stored with a background fan-out."""

    operation: Operation
    bound: int | None = None  # how many values a set keeps, or K of a board
    gross: bool = True
    distinct: bool = True
    expire_after_ms: int = 0  # 0: never
    windowed: bool = False  # counters that answer `since`
    half_life_ms: int = 0  # of the counts of a board; 0: they never fade
    weight: int = 1  # of a count on a board, for this event
    beside: bool = False  # a board that may have a set at its key
    takes_older: bool = False  # an add moves a member back to an older time


class EnqueuedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The job of `enqueue`, whose data are terms."""

    queue: str
    klass: str
    data: tuple[tuple[str, Expression], ...] = ()


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """One handler of a schema, read and valid."""

    name: str  # "client:gravity:action:follow[1]", as reports call it
    prefix: tuple[str, ...]  # the segments that an event's name begins with
    options: WriteOptions
    targets: tuple[Expression, ...]
    value: Expression | None = None  # of all operations but enqueue
    job: EnqueuedJob | None = None  # of enqueue
    background: bool = False  # whether it may continue in steps after the commit
    weight: Expression | None = None  # of a count on a board
    names_last: bool | None = (
        None  # whether the last step names, in every target; None: by operation
    )
    skips_empty: bool = False  # whether an empty text is no value


def read_schema(source: Mapping[str, Any] | str | bytes) -> tuple[dict[str, Any], list[Handler]]:
    """Returns the schema as plain data, and its handlers in schema order."""
    schema = _load(source)
    if not isinstance(schema, Mapping):
        raise InvalidEventSchema([f"the schema is {_shown(schema)}, expected an object"])
    problems: list[str] = []
    handlers: list[Handler] = []
    for prefix, listed in schema.items():
        if not isinstance(prefix, str):
            problems.append(f"{prefix}: expected a string as event prefix")
            continue
        if problem := _prefix_problem(prefix):
            problems.append(f"{prefix}: {problem}")
        if not isinstance(listed, list | tuple):
            problems.append(f"{prefix}: expected a list of handlers, not {_shown(listed)}")
            continue
        for position, fields in enumerate(listed):
            checker = _Checker(prefix, position, problems)
            handler = checker.handler(fields)
            if handler is not None:
                handlers.append(handler)
    if problems:
        raise InvalidEventSchema(problems)
    return {prefix: list(listed) for prefix, listed in schema.items()}, handlers


def read_handlers(listed: Any) -> list[Handler]:
    """Returns the handlers that an event carries; raises `InvalidEventSchema`."""
    problems: list[str] = []
    if not isinstance(listed, list | tuple):
        raise InvalidEventSchema([f"handlers: expected a list, not {_shown(listed)}"])
    read = [_Checker("handlers", n, problems).handler(each) for n, each in enumerate(listed)]
    if problems:
        raise InvalidEventSchema(problems)
    return [handler for handler in read if handler is not None]


def read_job(given: Any) -> EnqueuedJob:
    """Returns the job of `enqueue`; raises `ExpressionProblem` if it is not one."""
    problems: list[str] = []
    job = _Checker("enqueue", 0, problems).job(given)
    if problems or job is None:
        raise ExpressionProblem("; ".join(problems))
    return job


def without_comments(text: str) -> str:
    """Returns JSON without `//` and `/* */` comments; strings are left alone.

    >>> without_comments('{"a//b": 1} // one')
    '{"a//b": 1} '
    """
    return _COMMENT.sub(lambda found: found[1] or "", text)


def _load(source: Mapping[str, Any] | str | bytes) -> Any:
    if not isinstance(source, str | bytes):
        return source
    if len(source) > MAX_EVENT_SCHEMA_BYTES:
        raise InvalidEventSchema(
            [f"the schema has {len(source)} bytes, at most {MAX_EVENT_SCHEMA_BYTES} fit"]
        )
    try:
        return msgspec.json.decode(source)
    except msgspec.DecodeError as error:
        json_problem = str(error)  # not the error, which refers to this frame
        plain = _decoded_without_comments(source)
        if plain is not None:
            return plain
    except (RecursionError, UnicodeEncodeError) as error:
        raise InvalidEventSchema([f"the text can't be read: {error}"]) from None
    # Imported here because the YAML library takes longer to load than Holdfast itself.
    from holdfast.yaml_text import YamlProblem, load

    try:
        return load(source)
    except YamlProblem as problem:
        raise InvalidEventSchema(
            [f"the text is neither JSON ({json_problem}) nor YAML ({problem})"]
        ) from None


def _decoded_without_comments(source: str | bytes) -> Any:
    try:
        text = source if isinstance(source, str) else source.decode()
        return msgspec.json.decode(without_comments(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _prefix_problem(prefix: str) -> str | None:
    segments = _segments(prefix)
    if "" in segments:
        return "an event prefix has no empty segment, except for one colon at its end"
    if len(segments) > MAX_EVENT_NAME_SEGMENTS:
        return f"{len(segments)} segments, an event's name has at most {MAX_EVENT_NAME_SEGMENTS}"
    if len(prefix.encode(errors="replace")) > MAX_EVENT_NAME_BYTES + 1:
        return f"longer than the {MAX_EVENT_NAME_BYTES} bytes that an event's name may have"
    return None


def _segments(prefix: str) -> tuple[str, ...]:
    whole = prefix.removesuffix(":") if prefix != ":" else prefix
    return tuple(whole.split(":")) if whole else ()


class _Checker:
    """Reads one handler and collects all of its problems."""

    def __init__(self, prefix: str, position: int, problems: list[str]) -> None:
        self._name = f"{prefix}[{position}]"
        self._prefix = prefix
        self._problems = problems

    def handler(self, fields: Any) -> Handler | None:
        before = len(self._problems)
        if not isinstance(fields, Mapping):
            self._note("", f"expected a handler, an object, not {_shown(fields)}")
            return None
        fields = {ALIASES.get(field, field): value for field, value in fields.items()}
        self._unknown_fields("", fields, _FIELDS)
        operation = self._operation(fields)
        targets = self._targets(fields, required=operation != "enqueue")
        bound = self._bound(fields, operation)
        gross = self._boolean(fields, "store_gross_counters")
        distinct = self._boolean(fields, "store_distinct_counters")
        windowed = self._boolean(fields, "windowed_counters", default=False)
        expire_after_ms = self._duration(fields, "expire_after")
        half_life_ms = self._duration(fields, "half_life")
        weight = self._weight(fields)
        beside = self._boolean(fields, "beside_set", default=False)
        for field in ("half_life", "weight", "beside_set"):
            if field in fields and operation not in ("count_frequency", None):
                self._note(f".{field}", "only a handler with count_frequency has one")
        background = self._fan_out(fields, operation)
        value, job = self._value(fields)
        if len(self._problems) > before or operation is None:
            return None
        return Handler(
            name=self._name,
            prefix=_segments(self._prefix),
            options=WriteOptions(
                operation=operation,
                bound=bound,
                gross=gross and not beside,  # the counters of the key are those of its set
                distinct=distinct and not beside,
                beside=beside,
                expire_after_ms=expire_after_ms,
                windowed=windowed,
                half_life_ms=half_life_ms,
            ),
            targets=targets,
            value=value,
            job=job,
            background=background,
            weight=weight,
        )

    def _operation(self, fields: Mapping[str, Any]) -> Operation | None:
        named = [operation for operation in _OPERATIONS if operation in fields]
        if len(named) == 1:
            return named[0]
        choice = ", ".join(_OPERATIONS)
        found = f"has {' and '.join(named)}" if named else "has none"
        self._note("", f"expected exactly one operation ({choice}), but it {found}")
        return None

    def _targets(self, fields: Mapping[str, Any], *, required: bool) -> tuple[Expression, ...]:
        if "targets" not in fields and not required:
            return ()
        targets = fields.get("targets")
        if not isinstance(targets, list | tuple) or not targets:
            self._note(".targets", "expected a list of at least one expression")
            return ()
        parsed = [
            self._parse(f".targets[{position}]", text, parse_expression)
            for position, text in enumerate(targets)
        ]
        return tuple(expression for expression in parsed if expression is not None)

    def _value(self, fields: Mapping[str, Any]) -> tuple[Expression | None, EnqueuedJob | None]:
        value: Expression | None = None
        job: EnqueuedJob | None = None
        for each in _OPERATIONS:
            if each not in fields:
                continue
            # Two operations are one problem; what is wrong inside each of them is another.
            if each == "enqueue":
                job = self.job(fields[each])
            else:
                value = self._parse(f".{each}", fields[each], parse_value)
        return value, job

    def job(self, job: Any) -> EnqueuedJob | None:
        if not isinstance(job, Mapping):
            self._note(".enqueue", f"expected an object, not {_shown(job)}")
            return None
        self._unknown_fields(".enqueue", job, _JOB_FIELDS)
        for field in ("queue", "klass"):
            if not isinstance(job.get(field), str) or not job[field]:
                self._note(f".enqueue.{field}", "expected a name")
        data = job.get("data", {})
        if not isinstance(data, Mapping):
            self._note(".enqueue.data", f"expected an object, not {_shown(data)}")
            return None
        parsed = [
            (str(name), self._parse(f".enqueue.data.{name}", text, parse_value))
            for name, text in data.items()
        ]
        terms = tuple((name, term) for name, term in parsed if term is not None)
        return EnqueuedJob(queue=str(job.get("queue")), klass=str(job.get("klass")), data=terms)

    def _bound(self, fields: Mapping[str, Any], operation: Operation | None) -> int | None:
        bound = fields.get("max_stored_values")
        if bound is None and "max_stored_values" not in fields:
            return DEFAULT_BOARD_ENTRIES if operation == "count_frequency" else None
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
            self._note(
                ".max_stored_values", f"expected an integer of at least 0, not {_shown(bound)}"
            )
            return None
        if bound > MAX_STORED_VALUES:
            self._note(
                ".max_stored_values", f"{bound} is more than the limit of {MAX_STORED_VALUES}"
            )
            return None
        return bound

    def _boolean(self, fields: Mapping[str, Any], field: str, *, default: bool = True) -> bool:
        value = fields.get(field, default)
        if not isinstance(value, bool):
            self._note(f".{field}", f"expected true or false, not {_shown(value)}")
        return value is True

    def _weight(self, fields: Mapping[str, Any]) -> Expression | None:
        if "weight" not in fields:
            return None
        return self._parse(".weight", fields["weight"], parse_value)

    def _duration(self, fields: Mapping[str, Any], field: str) -> int:
        if field not in fields:
            return 0
        given = fields[field]
        seconds = seconds_of(given)
        if seconds is None or not 0.001 <= seconds <= MAX_EXPIRE_AFTER_SECONDS:
            self._note(
                f".{field}",
                f"expected a duration, seconds or text such as '90d' or '36h', not {_shown(given)}",
            )
            return 0
        return round(seconds * 1_000)

    def _fan_out(self, fields: Mapping[str, Any], operation: Operation | None) -> bool:
        given = fields.get("fan_out", "refuse")
        if given not in ("refuse", "background"):
            self._note(".fan_out", f"expected 'refuse' or 'background', not {_shown(given)}")
        elif given == "background" and operation == "enqueue":
            self._note(".fan_out", "a handler that enqueues writes no keys")
        return bool(given == "background")

    def _parse(
        self, place: str, text: Any, parse: Callable[[str], Expression]
    ) -> Expression | None:
        if not isinstance(text, str):
            self._note(place, f"expected an expression, a string, not {_shown(text)}")
            return None
        try:
            return parse(text)
        except ExpressionProblem as problem:
            self._note(place, str(problem))
            return None

    def _unknown_fields(
        self, place: str, fields: Mapping[str, Any], known: tuple[str, ...]
    ) -> None:
        for field in fields:
            if field not in known:
                if len(self._problems) >= MAX_SCHEMA_PROBLEMS:
                    self._note(place, "unknown fields")
                    return
                near = nearest(field, known)
                advice = f", did you mean '{near}'?" if near else f", known: {', '.join(known)}"
                self._note(place, f"unknown field '{field}'{advice}")

    def _note(self, place: str, problem: str) -> None:
        self._problems.append(f"{self._name}{place}: {problem}")


def _shown(value: Any) -> str:
    """Describes a value in the words of JSON, cut to a length that fits a line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
