"""The fast path for plain events: those whose handlers use only texts of the event.

Most handlers add one attribute to keys that are made of literals, time labels and attributes. Those
keys are the same for every event with the same texts, so this module caches them by text, together
with the stored keys of their records. An event that is not plain (an attribute is missing, or is
not a text) is passed on to event_run.py before anything is written.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.bounded_cache import of_spaces
from holdfast.errors import ExpandsTooFar
from holdfast.events import boards, set_add_fast_path
from holdfast.events.codec import BOARD, UNBOUNDED, Value, prepare
from holdfast.events.compiled_expressions import Evaluate, is_fixed, joined_keys
from holdfast.events.expressions import Attribute, BuiltIn, Expression, Literal
from holdfast.events.layout import Keys, keys_of
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import Event, FanOutReport, SendReply, Skipped
from holdfast.events.schema import Handler, WriteOptions
from holdfast.events.scope import FixedScope, Strings
from holdfast.events.sketch import digest
from holdfast.events.writes import KeyWrites
from holdfast.limits import (
    MAX_DECODED_SPACES,
    MAX_EVENT_KEY_BYTES,
    MAX_EVENT_VALUE_BYTES,
    MAX_EXPANDED_KEYS,
    MAX_EXPANDED_TEXT,
)

__all__ = ["Expansions", "PlainHandler", "PlainRun", "PlainStep", "expansions_of", "plain_handler"]

Labels: TypeAlias = dict[str, Strings]
# The keys that a text expands to, and the stored keys of their records.
KeyGroup: TypeAlias = tuple[Strings, Strings]

_MAX_MS_AHEAD: Final = 86_400_000  # how far the own time of an event may be after the last one
_LITERAL: Final = 0
_ATTRIBUTE: Final = 1
_EVENT_NAME: Final = 2

Terms: TypeAlias = tuple[tuple[int, Any], ...]  # a kind, and a text or the name of one
_ALL_FIXED: Final[Terms] = ((_LITERAL, ""),)  # of targets that are the same for all events


class PlainHandler:
    """A handler whose keys and value are texts of the event, literals and time labels."""

    __slots__ = (
        "after",
        "before",
        "is_plain_count",
        "is_stored_add",
        "name",
        "options",
        "schema",
        "set_name",
        "terms",
        "value",
    )

    def __init__(
        self,
        schema: str,
        handler: Handler,
        value: str,
        terms: Terms,
        before: list[Evaluate],
        after: list[Evaluate],
        set_name: bytes,
    ) -> None:
        self.schema = schema
        self.name = handler.name
        self.options: WriteOptions = handler.options
        self.is_stored_add = set_add_fast_path.applies_to(handler.options)
        self.is_plain_count = _is_plain_count(handler.options)
        self.value = value
        self.terms = terms  # of the one target that varies from event to event
        self.before = before
        self.after = after
        self.set_name = set_name  # follows the texts, if a step names the set


def _is_plain_count(options: WriteOptions) -> bool:
    return (
        options.operation == "count_frequency"
        and options.gross
        and options.distinct
        and options.weight == 1
        and not (options.expire_after_ms or options.windowed or options.beside)
    )


def plain_handler(
    schema: str, handler: Handler, targets: list[Evaluate], names_last: list[bool]
) -> PlainHandler | None:
    """Returns the plain form of a handler, or None if it is not plain.

    `targets` are its compiled targets; the last step of some names a set and is not looked up.
    """
    value = handler.value
    if (
        handler.options.operation not in ("add", "count_frequency")
        or handler.options.windowed
        or handler.skips_empty
        or handler.weight is not None
        or handler.job is not None
        or not handler.targets
        or value is None
        or value.steps
        or len(value.terms) != 1
        or not isinstance(value.terms[0], Attribute)
    ):
        return None
    varying = [n for n, expression in enumerate(handler.targets) if not is_fixed(expression)]
    name = ""
    if not varying:
        terms: Terms | None = _ALL_FIXED
        middle = len(targets)
    else:
        middle = varying[0]
        expression = handler.targets[middle]
        terms = _terms(expression)
        if expression.steps:
            name = ":" + expression.steps[0]
            if len(expression.steps) > 1 or not names_last[middle]:
                return None
    if len(varying) > 1 or terms is None:
        return None
    before, after = targets[:middle], targets[middle + 1 :]
    return PlainHandler(schema, handler, value.terms[0].name, terms, before, after, name.encode())


def _terms(expression: Expression) -> Terms | None:
    """Returns the terms of an expression; None if one is neither a literal nor a text."""
    terms = []
    for term in expression.terms:
        if isinstance(term, Attribute):
            terms.append((_ATTRIBUTE, term.name))
        elif isinstance(term, Literal):
            terms.append((_LITERAL, term.text))
        elif isinstance(term, BuiltIn) and term.name == "event_name":
            terms.append((_EVENT_NAME, ""))
        else:
            return None
    return tuple(terms)


# The writes of a plain handler for one event: its keys, their stored keys, and the value.
PlainStep: TypeAlias = tuple[PlainHandler, Strings, Strings, bytes]


class Expansions:
    """Remembers the keys of plain handlers in one space, for texts that were seen before."""

    __slots__ = ("_by_handler", "_count", "_keys")

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._by_handler: dict[PlainHandler, _Expansion] = {}
        self._count = 0  # keys that are remembered

    def resolve(
        self, handlers: tuple[PlainHandler, ...], event: Event, at: int, labels: Labels, limit: int
    ) -> list[PlainStep] | None:
        """Returns what each handler writes, to at most `limit` keys each; None if the event is not
        plain.

        `at` is the time of the event, and `labels` are those of that time.
        """
        attributes, name = event.attributes, event.name
        steps: list[PlainStep] = []
        for handler in handlers:
            value = attributes.get(handler.value)
            expansion = self._by_handler.get(handler)
            if expansion is None or expansion.labels is not labels:
                expansion = self._expansion(handler, event, at, labels, limit)
            if type(value) is not str or expansion is None:
                return None
            keys: Strings = []
            stored_keys: Strings = []
            groups, terms = expansion.groups, handler.terms
            for kind, text in terms:
                if kind:
                    text = attributes.get(text) if kind == _ATTRIBUTE else name
                try:
                    expanded, stored = groups[text]
                except (KeyError, TypeError):  # a new text, or none at all
                    group = self._expand(expansion, text)
                    if group is None:
                        return None
                    expanded, stored = group
                keys += expanded
                stored_keys += stored
            if len(terms) > 1 and len(set(keys)) < len(keys):
                return None
            try:
                raw = value.encode()
            except UnicodeEncodeError:
                return None
            if len(keys) > limit or len(raw) > MAX_EVENT_VALUE_BYTES:
                return None
            steps.append((handler, keys, stored_keys, raw))
        return steps

    def _expansion(
        self, handler: PlainHandler, event: Event, at: int, labels: Labels, limit: int
    ) -> "_Expansion | None":
        """Returns the beginnings and ends of the handler's keys with new time labels."""
        known = self._by_handler.get(handler)
        # An event that is late, or has a wrong time, must not evict what current events need.
        brings_time = event.at is not None or event.score is not None
        if known is not None and brings_time and not 0 <= at - known.at <= _MAX_MS_AHEAD:
            return None
        scope = FixedScope(labels)
        try:
            begins = joined_keys([part(scope) for part in handler.before], limit)
            ends = joined_keys([part(scope) for part in handler.after], limit)
        except ExpandsTooFar:
            return None
        if handler.terms is not _ALL_FIXED:
            begins = [begin + b":" for begin in begins] if handler.before else [b""]
            ends = [b":" + end for end in ends] if handler.after else [b""]
            ends = [handler.set_name + end for end in ends]
        else:
            ends = [b""]
        groups = {} if known is None or known.fixed != (begins, ends) else known.groups
        expansion = _Expansion(at, labels, (begins, ends), groups)
        self._by_handler[handler] = expansion
        return expansion

    def _expand(self, expansion: "_Expansion", text: object) -> KeyGroup | None:
        """Returns the keys that a text expands to, and remembers them; None if it is no text."""
        if type(text) is not str:
            return None
        begins, ends = expansion.fixed
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            return None
        keys = [begin + encoded + end for begin in begins for end in ends]
        if max(map(len, keys)) > MAX_EVENT_KEY_BYTES or len(set(keys)) < len(keys):
            return None
        group = keys, [self._keys.record(key) for key in keys]
        if len(text) <= MAX_EXPANDED_TEXT:
            self._count += len(keys)
            if self._count > MAX_EXPANDED_KEYS:
                self._by_handler.clear()
                self._count = len(keys)
            expansion.groups[text] = group
        return group


class PlainRun:
    """Writes a plain event. Nothing can fail once something is written."""

    __slots__ = ("_handlers", "_written", "background", "skipped")

    def __init__(self, cache: RecordWriter, at: int, steps: list[PlainStep]) -> None:
        self._handlers = len(steps)
        self._written: list[Strings] = []
        self.skipped: list[Skipped] = []
        self.background: list[FanOutReport] = []
        for handler, keys, stored_keys, raw in steps:
            if handler.is_stored_add:
                value = prepare(raw, digest(raw), at)
                error = set_add_fast_path.add(cache, keys, stored_keys, value, handler.options)
            elif handler.is_plain_count:
                value = prepare(raw, digest(raw), at)
                error = _count(cache, keys, value, handler.options)
            else:
                error = KeyWrites(cache, at).write(handler.options, keys, [raw])
            if error is None:
                self._written.append(keys)
            else:
                self.skipped.append(
                    Skipped(handler=handler.name, error=error, schema=handler.schema)
                )

    def reply(self) -> SendReply:
        """Returns the outcome of the event."""
        written = self._written
        return SendReply(
            handlers=self._handlers - len(self.skipped),
            keys=len(written[0]) if len(written) == 1 else len(set().union(*written)),
            skipped=self.skipped,
        )


def _count(cache: RecordWriter, keys: Strings, value: Value, options: WriteOptions) -> str | None:
    """Counts a value on boards. If a key holds something else, returns an error text."""
    records = cache.records(keys)
    for record in records:
        if not record.flags & BOARD and (record.known or record.dirty):
            return f"key {record.key.decode()} holds a {record.kind}"
    bound = UNBOUNDED if options.bound is None else options.bound
    half_life_ms = options.half_life_ms
    boards.count(cache, records, value, bound, gross=1, counted=True, half_life_ms=half_life_ms)
    if cache.some_expire:
        for record in records:
            cache.extend_lifetime(record, 0)
    return None


class _Expansion(NamedTuple):
    """The keys of one handler: their beginnings and ends, and groups of keys by text."""

    at: int  # a time that has these labels
    labels: Labels
    fixed: tuple[Strings, Strings]
    groups: dict[str, KeyGroup]


@of_spaces
@lru_cache(maxsize=MAX_DECODED_SPACES)
def expansions_of(space: bytes) -> Expansions:
    return Expansions(keys_of(space))
