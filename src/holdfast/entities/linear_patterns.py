"""Regular expressions of schemas, matched in time linear in the length of the text.

Python's own matcher backtracks: on forty letters, `(a+)+b` takes longer than a lifetime, and holds
the interpreter's lock all the while. Here all alternatives are followed at once, a letter at a
time (Thompson's construction). What can't be matched this way is refused when a schema is read:
backreferences, lookahead and lookbehind, and whatever depends on which alternative came first.

Python's parser parses the expression, and Python compares each letter.
"""

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from holdfast.limits import MAX_EXPRESSION_LETTERS, MAX_EXPRESSION_STATES, MAX_MATCHING_STEPS

# Python has no public name for what its parser finds; `re` itself is made of these modules.
compiler: Final[Any] = importlib.import_module("re._compiler")
codes: Final[Any] = importlib.import_module("re._constants")
parser: Final[Any] = importlib.import_module("re._parser")

_LETTERS: Final = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)
_REPEATS: Final = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_EDGES: Final = {
    codes.AT_BEGINNING: lambda at, size, text: at == 0,
    codes.AT_BEGINNING_STRING: lambda at, size, text: at == 0,
    codes.AT_END: lambda at, size, text: at == size or (at == size - 1 and text[at] == "\n"),
    codes.AT_END_STRING: lambda at, size, text: at == size,
}
_FLAGS: Final = re.IGNORECASE | re.ASCII | re.UNICODE | re.DOTALL | re.VERBOSE
_KEPT_STEPS: Final = 1_000  # of one pattern; then they are worked out again

Way = frozenset[int]  # the states that have been reached


class NotLinear(Exception):
    """An expression can't be matched in linear time; the message says why."""


class _State(NamedTuple):
    """A place in an expression."""

    fits: Callable[[str], object] | None = None  # a letter leads on
    edge: Callable[[int, int, str], bool] | None = None  # or a place in the text does
    after: tuple[int, ...] = ()


class LinearPattern:
    """One expression.

    >>> LinearPattern("[a-z]+(-[0-9]{2,3})?").fullmatch("ab-123")
    True
    >>> LinearPattern("(a+)+b").fullmatch("a" * 10_000)
    False
    """

    def __init__(self, expression: str) -> None:
        """Raises `NotLinear`, or `re.error` for a text that is not a regular expression."""
        if len(expression) > MAX_EXPRESSION_LETTERS:
            raise NotLinear(f"it has more than {MAX_EXPRESSION_LETTERS} letters")
        self._states: list[_State] = [_State()]  # the first one is the end
        self._steps: dict[tuple[Way, str], Way] = {}
        self._keeps_steps = True  # whether the next letter has no say in where a letter leads
        try:
            tree = parser.parse(expression)
            self._parsed = tree.state
            self._begin = self._sequence(tree, 0)
        except (RecursionError, OverflowError):
            raise NotLinear("it is nested too deeply, or repeats too often") from None
        if tree.state.flags & ~_FLAGS:
            raise NotLinear("only the flags a, i, s, u and x are supported")

    @property
    def max_letters(self) -> int:
        """Returns the greatest length of a text that can be matched."""
        return MAX_MATCHING_STEPS // len(self._states)

    def fullmatch(self, text: str) -> bool:
        """Returns whether the expression matches the whole text."""
        size = len(text)
        way: Way = self._reached([self._begin], 0, size, text)
        for at, letter in enumerate(text, 1):
            is_usual = self._keeps_steps and at < size - 1  # the edges of the text have no say
            known = self._steps.get((way, letter)) if is_usual else None
            if known is None:
                known = self._step(way, letter, at, size, text)
                if is_usual:
                    self._keep(way, letter, known)
            way = known
            if not way:
                return False
        return 0 in way

    def _step(self, way: Way, letter: str, at: int, size: int, text: str) -> Way:
        states = [self._states[number] for number in way]
        found = [s.after[0] for s in states if s.fits is not None and s.fits(letter)]
        return self._reached(found, at, size, text)

    def _reached(self, found: list[int], at: int, size: int, text: str) -> Way:
        """Follows all that needs no letter."""
        reached: set[int] = set()
        while found:
            number = found.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.fits is None and (state.edge is None or state.edge(at, size, text)):
                found += state.after
        return frozenset(reached)

    def _keep(self, way: Way, letter: str, step: Way) -> None:
        if len(self._steps) >= _KEPT_STEPS:
            self._steps.clear()
        self._steps[way, letter] = step

    # --- from Python's parser to states ----------------------------------------------------------

    def _add(self, state: _State) -> int:
        if len(self._states) >= MAX_EXPRESSION_STATES:
            raise NotLinear(f"it expands to more than {MAX_EXPRESSION_STATES} letters")
        self._states.append(state)
        return len(self._states) - 1

    def _sequence(self, parts: Any, after: int) -> int:
        """Adds the states of parts that follow each other; returns where they begin."""
        for code, value in reversed(list(parts)):
            after = self._part(code, value, after)
        return after

    def _part(self, code: Any, value: Any, after: int) -> int:
        if code in _LETTERS:
            return self._add(_State(fits=self._letter(code, value), after=(after,)))
        if code is codes.BRANCH:
            ways = tuple(self._sequence(each, after) for each in value[1])
            return self._add(_State(after=ways))
        if code is codes.SUBPATTERN and not (value[1] or value[2]):
            return self._sequence(value[3], after)
        if code in _REPEATS:
            least, most, inner = value
            return self._repeat(least, most, inner, after)
        if code is codes.AT and value in _EDGES:
            return self._add(_State(edge=_EDGES[value], after=(after,)))
        if code is codes.AT and value in (codes.AT_BOUNDARY, codes.AT_NON_BOUNDARY):
            self._keeps_steps = False
            edge = self._boundary(is_one=value is codes.AT_BOUNDARY)
            return self._add(_State(edge=edge, after=(after,)))
        raise NotLinear(f"{str(code).lower().replace('_', ' ')} is not supported")

    def _letter(self, code: Any, value: Any) -> Callable[[str], object]:
        """Compares one letter as Python does."""
        alone = parser.SubPattern(self._parsed, [(code, value)])
        fits: Callable[[str], object] = compiler.compile(alone, self._parsed.flags).fullmatch
        return fits

    def _boundary(self, *, is_one: bool) -> Callable[[int, int, str], bool]:
        is_word = re.compile(r"\w", self._parsed.flags & re.ASCII).match

        def is_at_boundary(at: int, size: int, text: str) -> bool:
            before = at > 0 and is_word(text[at - 1]) is not None
            after = at < size and is_word(text[at]) is not None
            return (before != after) is is_one

        return is_at_boundary

    def _repeat(self, least: int, most: Any, parts: Sequence[Any], after: int) -> int:
        if least > MAX_EXPRESSION_STATES or (
            most is not codes.MAXREPEAT and most > MAX_EXPRESSION_STATES
        ):
            raise NotLinear(f"it repeats something more than {MAX_EXPRESSION_STATES} times")
        if most is codes.MAXREPEAT:
            begin = self._add(_State())
            once_more = self._sequence(parts, begin)
            self._states[begin] = _State(after=(once_more, after))
        else:
            begin = after
            for _ in range(int(most) - least):
                begin = self._add(_State(after=(self._sequence(parts, begin), after)))
        for _ in range(least):
            begin = self._sequence(parts, begin)
        return begin
