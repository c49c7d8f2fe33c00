"""Compiles expressions to functions of a scope, and the targets of a handler to their keys.

Parts that do not change from event to event are evaluated once: literals when a schema is compiled,
time labels with the first event of each minute.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

from holdfast.errors import ExpandsTooFar
from holdfast.events.expressions import Attribute, BuiltIn, Expression, Literal, Term
from holdfast.events.scope import QUOTED_AT, Scope, Strings
from holdfast.events.times import LABELS
from holdfast.limits import MAX_EVENT_WRITES

__all__ = [
    "TOO_FAR_HINT",
    "Evaluate",
    "Stream",
    "compile_expression",
    "compile_stream",
    "compile_targets",
    "is_fixed",
    "joined_keys",
]

TOO_FAR_HINT: Final = (
    'Give the handler "fan_out": "background" to continue after the commit, bound the sets that it '
    "looks up with `max_stored_values`, or raise the limit with `configure`."
)

Evaluate: TypeAlias = Callable[[Scope], Strings]
ExpandTargets: TypeAlias = Callable[[Scope, int], Strings]


def _compile_term(term: Term) -> Evaluate:
    if isinstance(term, Literal):
        constant = [term.text.encode()]
        return lambda scope: constant
    name = _scope_name(term)
    return lambda scope: scope[name]


def _scope_name(term: Attribute | BuiltIn) -> str:
    if isinstance(term, BuiltIn):
        return f"@{term.name}"
    return QUOTED_AT + term.name if term.name[0] == "@" else term.name


def compile_expression(expression: Expression, *, names_last: bool = False) -> Evaluate:
    """Returns a function from a scope to the strings of an expression.

    With `names_last` the last step of a chain names the set and is not looked up.
    """
    evaluate = _compile_list(expression)
    for number, step in enumerate(expression.steps, 1):
        suffix = b":" + step.encode()
        if names_last and number == len(expression.steps):
            evaluate = _name_step(evaluate, suffix)
        else:
            evaluate = _look_up_step(evaluate, suffix)
    return evaluate


class Stream(NamedTuple):
    """An expression up to its last look-up, whose members a background fan-out reads in steps."""

    strings: Evaluate
    looked_up: bytes | None  # appended to each string, the keys of the last look-up
    named: bytes  # appended to each of its members


def compile_stream(expression: Expression, *, names_last: bool) -> Stream:
    """Returns the expression in parts: strings, last look-up, and the name after it."""
    steps = list(expression.steps)
    named = b":" + steps.pop().encode() if names_last and steps else b""
    looked_up = b":" + steps.pop().encode() if steps else None
    inner = Expression(expression.terms, tuple(steps), expression.is_list)
    return Stream(compile_expression(inner), looked_up, named)


def _compile_list(expression: Expression) -> Evaluate:
    literals = [term for term in expression.terms if isinstance(term, Literal)]
    names = [_scope_name(term) for term in expression.terms if not isinstance(term, Literal)]
    if not names:
        constant = _unique([term.text.encode() for term in literals])
        return lambda scope: constant
    if all(name[0] == "@" and name[1:] in LABELS for name in names):
        return _once_a_minute([_compile_term(term) for term in expression.terms])
    if not literals and len(names) > 1:
        return lambda scope: _unique([string for name in names for string in scope[name]])
    terms = [_compile_term(term) for term in expression.terms]
    if len(terms) > 1:
        return lambda scope: _unique([string for term in terms for string in term(scope)])
    [only] = terms
    return (lambda scope: _unique(only(scope))) if expression.is_list else only


def _once_a_minute(terms: list[Evaluate]) -> Evaluate:
    """Evaluates time labels and literals once, with the first event of each minute."""
    last: tuple[object, Strings] = (None, [])

    def evaluate(scope: Scope) -> Strings:
        nonlocal last
        labels, strings = last
        if labels is not scope.labels:
            strings = _unique([string for term in terms for string in term(scope)])
            last = (scope.labels, strings)
        return strings

    return evaluate


def _name_step(strings: Evaluate, suffix: bytes) -> Evaluate:
    return lambda scope: [string + suffix for string in strings(scope)]


def _look_up_step(strings: Evaluate, suffix: bytes) -> Evaluate:
    def evaluate(scope: Scope) -> Strings:
        found: dict[bytes, None] = {}
        keys = [string + suffix for string in strings(scope)]
        for key in keys:
            found.update(dict.fromkeys(scope.look_ups.look_up(key)))
            if len(found) > MAX_EVENT_WRITES:
                raise ExpandsTooFar(
                    f"expands to more than {MAX_EVENT_WRITES} members", hint=TOO_FAR_HINT
                )
        if keys and not found:
            scope.look_ups.note_empty(keys)
        return list(found)

    return evaluate


def _unique(strings: Strings) -> Strings:
    return list(dict.fromkeys(strings)) if len(strings) > 1 else strings


# --- targets --------------------------------------------------------------------------------------


def compile_targets(
    expressions: Sequence[Expression], evaluates: Sequence[Evaluate]
) -> ExpandTargets:
    """Returns a function from a scope and a limit on the number of keys to the targets' keys.

    Most targets have one term that depends on the event, among literals and time labels. Those are
    joined beforehand, so that a key takes one concatenation.
    """
    varying = [n for n, expression in enumerate(expressions) if not is_fixed(expression)]
    if len(varying) > 1:
        return lambda scope, limit: joined_keys([part(scope) for part in evaluates], limit)
    middle = varying[0] if varying else len(evaluates)
    before, after = evaluates[:middle], evaluates[middle + 1 :]
    last: tuple[object, Strings, Strings] = (None, [], [])

    def expand(scope: Scope, limit: int) -> Strings:
        nonlocal last
        labels, begins, ends = last
        if labels is not scope.labels:
            begins = joined_keys([part(scope) for part in before], limit)
            if varying:
                ends = joined_keys([part(scope) for part in after], limit)
                begins = [begin + b":" for begin in begins] if before else [b""]
                ends = [b":" + end for end in ends] if after else [b""]
            last = (scope.labels, begins, ends)
        if not varying:
            return begins if len(begins) <= limit else _refuse(len(begins), limit)
        strings = evaluates[middle](scope)
        total = len(begins) * len(strings) * len(ends)
        if total > limit:
            _refuse(total, limit)
        if len(begins) == 1:
            [begin] = begins
            keys = [begin + string + end for string in strings for end in ends]
        else:
            keys = [begin + string + end for begin in begins for string in strings for end in ends]
        return list(dict.fromkeys(keys)) if total > 1 else keys

    return expand


def is_fixed(expression: Expression) -> bool:
    """Returns whether an expression has the same strings for all events of a minute."""
    return not expression.steps and all(
        isinstance(term, Literal) or (isinstance(term, BuiltIn) and term.name in LABELS)
        for term in expression.terms
    )


def joined_keys(parts: Sequence[Strings], limit: int) -> Strings:
    """Returns the cartesian product of `parts`, joined with colons, without duplicates."""
    total = 1
    for part in parts:
        total *= len(part)
    if total > limit:
        _refuse(total, limit)
    keys = parts[0] if parts else []
    for part in parts[1:]:
        ends = [b":" + string for string in part]
        keys = [key + end for key in keys for end in ends]
    return list(dict.fromkeys(keys))


def _refuse(total: int, limit: int) -> NoReturn:
    raise ExpandsTooFar(f"expands to {total} keys, the limit is {limit}", hint=TOO_FAR_HINT)
