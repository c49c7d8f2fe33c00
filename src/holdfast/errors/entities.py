"""Errors of entities.

Their messages are those of Meduza, because its clients may match them; our advice is the hint.
"""

from collections.abc import Iterable

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class InvalidTable(NotFound):
    """No table of that name is deployed."""

    code = "invalid_table"
    hint = "A table is named `schema.Table` and exists once its schema has been deployed."


class BadQuery(BadInput):
    """A query is incomplete or malformed: it has no table, or no filter, for example."""

    code = "bad_query"


class BadFilter(BadInput):
    """A filter is invalid, alone or together with the other filters."""

    code = "bad_filter"


class BadPaging(BadInput):
    """The offset or the limit of a query is invalid."""

    code = "bad_paging"
    hint = "The offset must be 0 or more; the limit 1 or more, or -1 for no limit."


class BadChange(BadInput):
    """A change of an update is invalid for every entity."""

    code = "bad_change"


class BadKey(BadInput):
    """The given id, or the values of the key columns, do not make a valid id."""

    code = "bad_key"


class BadValue(BadInput):
    """A value has a type that entities can't hold, or that the strict table does not accept."""

    code = "bad_value"


class NoIndex(BadInput):
    """No index of the table serves the query; entities are never filtered without an index."""

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
    """A class can't be used as a model, or an object is not an instance of a model."""

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
    """A message can't be decoded, or one of its fields has the wrong type."""

    code = "malformed"


class BadDump(BadInput):
    """A record of a dump is damaged, or its table does not accept it.

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
        """Returns the error at a record; `what` reports what was done: "7 entities were loaded"."""
        return cls(
            f"{unit} {number}: {reason.rstrip('.')}. {what}",
            hint=hint,
            reason=reason,
            unit=unit,
            number=number,
            loaded=loaded,
        )


class SpaceNotEmpty(HoldfastError):
    """A dump of a whole space can only be loaded into an empty space."""

    code, status = "space_not_empty", 409
    hint = "Load it into a new space: `--space NAME`."


class DuplicateKey(HoldfastError):
    """An entity with this id, or with these values in a unique index, exists already."""

    code, status = "duplicate_key", 409
    hint = "Update the existing entity, or choose another key."


class VersionMismatch(HoldfastError):
    """The entity has changed since the writer read it: `if_version` is not its version."""

    code, status = "version_mismatch", 409  # on Meduza's wire it is called `conflict`
    hint = "Read the entity again, apply the change to it, and write it with its new version."


class IndexNotReady(HoldfastError):
    """The only index that serves the query is still being built."""

    code, status = "index_not_ready", 503
    hint = (
        "Wait until `stats` says that the index is ready, or read with `partial=True` what it has "
        "so far."
    )


class TableInUse(HoldfastError):
    """A deploy would remove a table that holds entities, or change its primary key."""

    code, status = "table_in_use", 409
