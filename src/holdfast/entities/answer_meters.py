"""Limits what one call reads: the entities of an answer, of a comparison, or of a change."""

from collections.abc import Sequence
from typing import Final

from holdfast.entities.table_access import TableAccess
from holdfast.errors import AnswerTooLarge, RequestTooLarge
from holdfast.limits import (
    MAX_ANSWER_BYTES,
    MAX_ANSWER_ENTITIES,
    MAX_CHANGED_BYTES,
    MAX_CHANGED_ENTITIES,
    MAX_COMPARED_BYTES,
)

SEVERAL_CALLS: Final = "Change them in several calls: fewer entities, or filters for some of them."
IN_PAGES: Final = (
    f"A page has a limit of at most {MAX_ANSWER_ENTITIES}, and an offset or a filter that begins "
    "after the last id of the page before; a dump reads a whole table."
)


class AnswerMeter:
    """Limits the entities in one answer, of one query or of several together: how many there are,
    and their bytes."""

    __slots__ = ("count", "size")

    def __init__(self) -> None:
        self.count = 0
        self.size = 0

    def expect(self, count: int) -> None:
        """Raises if `count` further entities are too many, before they are read."""
        if self.count + count > MAX_ANSWER_ENTITIES:
            raise AnswerTooLarge(
                f"these are more than {MAX_ANSWER_ENTITIES} entities in one answer: "
                "ask for them in pages",  # Meduza's clients do not get the hint
                hint=IN_PAGES,
            )

    def take(self, access: TableAccess, stored: Sequence[bytes]) -> None:
        """Counts entities of the answer, and raises when there are too many, or too many bytes.

        A single entity may be larger. Names that are stored with the table count for each entity.
        """
        self.expect(len(stored))
        self.count += len(stored)
        before = self.size
        names = len(stored) * access.name_lists.most_bytes
        self.size = size = before + sum(map(len, stored)) + names
        if size > MAX_ANSWER_BYTES and (before or len(stored) > 1):
            raise AnswerTooLarge(f"these entities have more than {MAX_ANSWER_BYTES} bytes")


class ComparedMeter(AnswerMeter):
    """Limits the bytes of entities that are read only to find out whether they match."""

    __slots__ = ()

    def take(self, access: TableAccess, stored: Sequence[bytes]) -> None:
        self.size += sum(map(len, stored))
        if self.size > MAX_COMPARED_BYTES:
            raise RequestTooLarge(
                f"the entities to compare have more than {MAX_COMPARED_BYTES} bytes",
                hint="Ask for fewer ids, or fewer IN values, at a time.",
            )


class ChangeMeter(AnswerMeter):
    """Limits the entities that one call selects in order to change them."""

    __slots__ = ()

    def expect(self, count: int) -> None:
        if self.count + count > MAX_CHANGED_ENTITIES:
            raise RequestTooLarge(
                f"more than {MAX_CHANGED_ENTITIES} entities would change in one call",
                hint=SEVERAL_CALLS,
            )

    def take(self, access: TableAccess, stored: Sequence[bytes]) -> None:
        """Counts entities, and raises before there are too many of them in memory."""
        self.expect(len(stored))
        self.count += len(stored)
        self.size += sum(map(len, stored))
        if self.size > MAX_CHANGED_BYTES and self.count > 1:
            raise RequestTooLarge(
                f"the entities to change have more than {MAX_CHANGED_BYTES} bytes",
                hint=SEVERAL_CALLS,
            )
