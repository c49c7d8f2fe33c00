"""Regular expressions of schemas, matched in time linear in the length of the text.

Python's own matcher backtracks: on forty characters, `(a+)+b` takes longer than a lifetime, and
holds the interpreter lock all the while. Here all alternatives are followed at once, a character at
a time (Thompson's construction). What can't be matched this way is refused when a schema is read:
backreferences, lookahead and lookbehind, and whatever depends on which alternative came first.

Python's parser parses the expression, and Python compares each character.
"""

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from holdfast.limits import MAX_EXPRESSION_LETTERS, MAX_EXPRESSION_STATES, MAX_MATCHING_STEPS

# The parser of `re` has no public interface; these are its modules.
compiler: Final[Any] = importlib.import_module("re._compiler")
codes: Final[Any] = importlib.import_module("re._constants")
parser: Final[Any] = importlib.import_module("re._parser")

_CHARACTER_CODES: Final = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)
_REPEATS: Final = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_EDGES: Final = {
    codes.AT_BEGINNING: lambda at, size, text: at == 0,
    codes.AT_BEGINNING_STRING: lambda at, size, text: at == 0,
    codes.AT_END: lambda at, size, text: at == size or (at == size - 1 and text[at] == "\n"),
    codes.AT_END_STRING: lambda at, size, text: at == size,
}
_FLAGS: Final = re.IGNORECASE | re.ASCII | re.UNICODE | re.DOTALL | re.VERBOSE
_MAX_CACHED_STEPS: Final = 1_000  # of one pattern; then the cache is emptied

StateSet = frozenset[int]  # the states that have been reached


class NotLinear(Exception):
    """An expression can't be matched in linear time; the message says why."""


class _State(NamedTuple):
    """A state of the automaton: it leads to `after` if its condition holds, if it has one."""

    matches: Callable[[str], object] | None = None  # the next character fulfils this
    edge: Callable[[int, int, str], bool] | None = None  # or the position in the text does
    after: tuple[int, ...] = ()


class LinearPattern:
    """A regular expression, compiled.

    >>> LinearPattern("[a-z]+(-[0-9]{2,3})?").fullmatch("ab-123")
    True
    >>> LinearPattern("(a+)+b").fullmatch("a" * 10_000)
    False
    """

    def __init__(self, expression: str) -> None:
        """Raises `NotLinear`, or `re.error` for a text that is not a regular expression."""
        if len(expression) > MAX_EXPRESSION_LETTERS:
            raise NotLinear(f"it has more than {MAX_EXPRESSION_LETTERS} characters")
        self._states: list[_State] = [_State()]  # the first one is the final state
        self._steps: dict[tuple[StateSet, str], StateSet] = {}
        self._can_cache_steps = True  # False if a step depends on the character after it
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
        states: StateSet = self._reached([self._begin], 0, size, text)
        for at, character in enumerate(text, 1):
            is_usual = self._can_cache_steps and at < size - 1  # not near the end, where `$` holds
            known = self._steps.get((states, character)) if is_usual else None
            if known is None:
                known = self._step(states, character, at, size, text)
                if is_usual:
                    self._cache_step(states, character, known)
            states = known
            if not states:
                return False
        return 0 in states

    def _step(self, states: StateSet, character: str, at: int, size: int, text: str) -> StateSet:
        possible = [self._states[number] for number in states]
        found = [s.after[0] for s in possible if s.matches is not None and s.matches(character)]
        return self._reached(found, at, size, text)

    def _reached(self, found: list[int], at: int, size: int, text: str) -> StateSet:
        """Returns the states that are reached from `found` without another character."""
        reached: set[int] = set()
        while found:
            number = found.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.matches is None and (state.edge is None or state.edge(at, size, text)):
                found += state.after
        return frozenset(reached)

    def _cache_step(self, states: StateSet, character: str, step: StateSet) -> None:
        if len(self._steps) >= _MAX_CACHED_STEPS:
            self._steps.clear()
        self._steps[states, character] = step

    # --- from Python's parser to states ----------------------------------------------------------

    def _add(self, state: _State) -> int:
        if len(self._states) >= MAX_EXPRESSION_STATES:
            raise NotLinear(f"it expands to more than {MAX_EXPRESSION_STATES} characters")
        self._states.append(state)
        return len(self._states) - 1

    def _sequence(self, parts: Any, after: int) -> int:
        """Adds the states of parts that follow each other; returns where they begin."""
        for code, value in reversed(list(parts)):
            after = self._part(code, value, after)
        return after

    def _part(self, code: Any, value: Any, after: int) -> int:
        if code in _CHARACTER_CODES:
            return self._add(_State(matches=self._character_matcher(code, value), after=(after,)))
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
            self._can_cache_steps = False
            edge = self._boundary(is_one=value is codes.AT_BOUNDARY)
            return self._add(_State(edge=edge, after=(after,)))
        raise NotLinear(f"{str(code).lower().replace('_', ' ')} is not supported")

    def _character_matcher(self, code: Any, value: Any) -> Callable[[str], object]:
        """Returns the function that compares one character, as Python does."""
        single = parser.SubPattern(self._parsed, [(code, value)])
        matches: Callable[[str], object] = compiler.compile(single, self._parsed.flags).fullmatch
        return matches

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
            again = self._sequence(parts, begin)
            self._states[begin] = _State(after=(again, after))
        else:
            begin = after
            for _ in range(int(most) - least):
                begin = self._add(_State(after=(self._sequence(parts, begin), after)))
        for _ in range(least):
            begin = self._sequence(parts, begin)
        return begin
