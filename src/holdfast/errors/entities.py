"""Errors of entities.

Their messages are Meduza's own words, which its clients know; what helps beyond them is the hint.
"""

from collections.abc import Iterable

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class InvalidTable(NotFound):
    """No table of that name is deployed."""

    code = "invalid_table"
    hint = "A table is named `schema.Table` and exists once its schema has been deployed."


class BadQuery(BadInput):
    """A query lacks what it needs."""

    code = "bad_query"


class BadFilter(BadInput):
    """A filter makes no sense, alone or beside the others."""

    code = "bad_filter"


class BadPaging(BadInput):
    """No page begins or ends there."""

    code = "bad_paging"
    hint = "The offset is 0 or more, the limit 1 or more, or -1 for no limit."


class BadChange(BadInput):
    """A change of an update can't be applied to any entity."""

    code = "bad_change"


class BadKey(BadInput):
    """No id can be made of what came."""

    code = "bad_key"


class BadValue(BadInput):
    """An entity can't hold the value, or its strict table won't."""

    code = "bad_value"


class NoIndex(BadInput):
    """No index of the table serves the query: there is no filtering after the index."""

    code = "no_index"


class InvalidEntitySchema(BadInput):
    """A schema has errors; `problems` names each of them, with file and line."""

    code = "bad_schema"
    facts = {"problems": tuple}  # noqa: RUF012  # nobody changes it

    def __init__(self, message: str = "", *, problems: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Iterable[str]) -> "InvalidEntitySchema":
        listed = tuple(problems)
        return cls("\n".join(listed), problems=listed)


SchemaInvalid = InvalidEntitySchema  # its former name, which programs may import


class BadModel(BadInput):
    """A class can't be a model, or an object is not one of a model."""

    code = "bad_model"


class UnknownColumn(BadInput, AttributeError):
    """A model has no column of that name."""

    code = "unknown_column"

    @classmethod
    def among(cls, model: str, name: str, known: Iterable[str]) -> "UnknownColumn":
        from difflib import get_close_matches  # loaded only when there is something to say

        near = get_close_matches(name[:200], list(known), 1)
        ask = f", did you mean '{near[0]}'?" if near else ""
        return cls(f"{model} has no column '{name}'{ask}")


class Malformed(BadInput):
    """A message is not readable, or one of its fields has the wrong type."""

    code = "malformed"


class BadDump(BadInput):
    """A record of a dump is damaged or refused.

    What came before it was loaded, unless the load was atomic. `number` counts from 1, and counts
    lines where the dump has lines.
    """

    code = "bad_dump"
    facts = {"reason": str, "unit": str, "number": int, "loaded": int}  # noqa: RUF012  # nobody changes it

    def __init__(
        self,
        message: str = "",
        *,
        hint: str | None = None,
        reason: str | None = None,
        unit: str = "line",
        number: int | None = None,
        loaded: int = 0,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = message if reason is None else reason
        self.unit = unit
        self.number = number
        self.loaded = loaded

    @classmethod
    def at(
        cls,
        number: int,
        reason: str,
        *,
        unit: str,
        loaded: int,
        what: str,
        hint: str | None = None,
    ) -> "BadDump":
        """Returns the error at a record; `what` says what was done, such as "7 entities were
        loaded"."""
        return cls(
            f"{unit} {number}: {reason.rstrip('.')}. {what}",
            hint=hint,
            reason=reason,
            unit=unit,
            number=number,
            loaded=loaded,
        )


class SpaceNotEmpty(HoldfastError):
    """A dump of a whole space was to be loaded into one that has something in it."""

    code, status = "space_not_empty", 409
    hint = "Load it into a new space: --space NAME."


class DuplicateKey(HoldfastError):
    """An entity with this id, or with these values in a unique index, exists already."""

    code, status = "duplicate_key", 409
    hint = "Read the entity that is there, and update it or choose another key."


class VersionMismatch(HoldfastError):
    """The entity is not at the version that the writer has seen."""

    code, status = "version_mismatch", 409  # on Meduza's wire it is called `conflict`
    hint = "Read the entity again, apply the change to what it is now and write that."


class IndexNotReady(HoldfastError):
    """The only index that serves the query is still being built."""

    code, status = "index_not_ready", 503
    hint = "Wait until the index is ready, see `stats`; a GET may ask for a partial answer."


class TableInUse(HoldfastError):
    """A deploy or a drop would lose entities."""

    code, status = "table_in_use", 409
