"""The errors that all others derive from."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

MAX_ERROR_CHARACTERS: Final = 16 * 1024  # of a message or hint; what it quotes loses its middle


class HoldfastError(Exception):
    """The base class of all errors that Holdfast raises on purpose.

    `code` names the error for programs, `status` is its HTTP status, `hint` says what to do next.
    `position` says which operation of a batch it was, counted from 0.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    facts: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}  # attributes that travel, beside these
    hint: str = ""
    position: int | None = None

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        message = _shortened(message)
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = _shortened(hint)

    def __str__(self) -> str:
        end = "" if self.message.endswith("?") else "."
        return f"{self.message}{end} {self.hint}" if self.hint else self.message


def _shortened(text: str) -> str:
    """Cuts the middle out of a text that quotes megabytes: it would be copied, sent and logged."""
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    half = MAX_ERROR_CHARACTERS // 2
    return f"{text[:half]}… ({len(text):,} characters) …{text[-half:]}"


class BadInput(HoldfastError):
    """The input is not valid; nothing was changed."""

    code, status = "bad_input", 400


class NotFound(HoldfastError):
    """The thing asked for does not exist."""

    code, status = "not_found", 404


class Conflict(HoldfastError):
    """Another transaction changed what this one had read, before it could commit."""

    code, status = "conflict", 409
    hint = "Run the transaction again; `store.transact(work)` does so by itself."
