"""The arguments of a Qless command, read one by one with Qless' own error texts."""

from typing import Any, Final, NoReturn

from holdfast.errors import BadArgument
from holdfast.jobs.arguments import (
    check_name,
    from_json,
    is_unicode,
    number_from,
    shortened,
)
from holdfast.limits import MAX_JOBS_PER_CALL

NIL: Final = "nil"  # how the originals write a missing value


class Arguments:
    """The arguments after a command's name and time, read one by one."""

    __slots__ = ("_at", "_words")

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def optional(self) -> str | None:
        """Returns the next argument, or None if there is none."""
        word = self.message()
        return None if word is None else _valid(word)

    def message(self) -> str | None:
        """Returns the next argument, a message for people: it is accepted even if it is not
        UTF-8."""
        if self._at >= len(self._words):
            return None
        self._at += 1
        return self._words[self._at - 1]

    def required(self, error: str) -> str:
        """Returns the next argument, which must exist and not be empty."""
        word = self.optional()
        if not word:
            raise BadArgument(error)
        return word

    def name(self, call: str, argument: str) -> str:
        """Returns the next argument, which must be a name."""
        return name(self.optional() or "", call, argument)

    def jid(self, call: str = "Job") -> str:
        return check_name(self.required(f"{call}(): no jid provided"), "jid")

    def queue(self) -> str:
        return check_name(self.required("Queue(): no queue name provided"), "queue")

    def number(self, error: str, default: float | None = None) -> float:
        """Returns the next argument as a number; without a default it is required."""
        word = self.optional()
        if word is None and default is not None:
            return default
        return number(word, error)

    def whole(self, error: str, default: int | None = None) -> int:
        """Returns the next argument as a whole number."""
        word = self.optional()
        if word is None and default is not None:
            return default
        return whole(word, error)

    def page(
        self, call: str, names: tuple[str, str] = ("offset", "count"), verb: str = ""
    ) -> tuple[int, int]:
        """Returns the start and length of a page, 0 and 25 by default; a length of -1 means all."""
        first, second = names
        offset = self.whole(f'{call}(): Arg "{first}" {verb}not a number: ', 0)
        count = self.whole(f'{call}(): Arg "{second}" {verb}not a number: ', 25)
        return max(0, offset), count

    def rest(self) -> list[str]:
        """Returns all remaining arguments."""
        words = self._words[self._at :]
        self._at = len(self._words)
        return [_valid(word) for word in words]

    def jids(self) -> list[str]:
        """Returns all remaining arguments, as ids."""
        jids = self.rest()
        if len(jids) > MAX_JOBS_PER_CALL:
            raise BadArgument(f"Job(): {len(jids)} jids, at most {MAX_JOBS_PER_CALL} fit one call")
        return [name(jid, "Job", "jid") for jid in jids]

    def options(self) -> dict[str, str]:
        """Returns all remaining arguments, as names with values."""
        words = self.rest()
        if len(words) % 2:
            raise BadArgument(f"Odd number of additional args: {' '.join(words)}")
        return dict(zip(words[::2], words[1::2], strict=True))

    def known_options(self, call: str, *names: str) -> dict[str, str]:
        """Returns all remaining arguments, as options of a command that knows these `names`."""
        given = self.options()
        for option in given:
            if option not in names:
                raise BadArgument(
                    f'{call}(): Unrecognized option "{shortened(option)}"',
                    hint=f"Options are {', '.join(names)}.",
                )
        return given


def _valid(word: str) -> str:
    """Returns the word; raises if it was not UTF-8."""
    if not word.isascii() and not is_unicode(word):
        shown = shortened(word).encode("utf-8", "replace").decode()
        raise BadArgument(f'Arg "{shown}" is not valid UTF-8')
    return word


def name(word: str, call: str, argument: str) -> str:
    """Returns a word that must be a name."""
    if not word:
        raise BadArgument(f'{call}(): Arg "{argument}" missing')
    return check_name(word, argument)


def number(word: str | None, error: str) -> float:
    found = None if word is None else number_from(word)
    if found is None:
        _refuse(error, word)
    return found


def whole(word: str | None, error: str) -> int:
    found = number(word, error)
    if found != int(found):
        _refuse(error, word)
    return int(found)


def json(word: str | None, error: str) -> Any:
    """Returns the value of a JSON word."""
    if word is None:
        _refuse(error, word)
    try:
        return from_json(word)
    except (ValueError, RecursionError):
        _refuse(error, word)


def json_text(word: str | None, error: str) -> str:
    """Returns a word unchanged; raises if it is not JSON."""
    json(word, error)
    assert word is not None
    return word


def array(word: str, error: str, *kinds: type) -> list[Any]:
    """Returns the values of a word that must be a JSON array of values of these types."""
    values = json(word, error)
    if values == {}:  # how Lua encodes an empty array
        return []
    if not isinstance(values, list) or not all(_is_one_of(value, kinds) for value in values):
        _refuse(error, word)
    return values


def _is_one_of(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _refuse(error: str, word: str | None) -> NoReturn:
    raise BadArgument(f"{error}{NIL if word is None else shortened(word)}")
