"""The subjects of `dump` and `load`: a table of entities, a table of rows, or a whole space."""

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import click

from holdfast.cli.output import CommandFailure, Output
from holdfast.error_text import nearest

if TYPE_CHECKING:
    from holdfast.store import Space

Kind = Literal["space", "entities", "tables"]
WHOLE_SPACE: Final = "all"

# The formats of each kind; the first one is the default.
FORMATS: Final[dict[Kind, tuple[str, ...]]] = {
    "space": ("ndjson",),
    "entities": ("ndjson", "json", "bson"),
    "tables": ("ndjson", "json", "csv"),
}
FORMAT_HELP: Final = "ndjson or json; bson for entities only; csv for rows only."


class Subject(NamedTuple):
    """One thing that can be dumped and loaded."""

    kind: Kind
    name: str

    @property
    def noun(self) -> str:
        return {"space": "key", "entities": "entity", "tables": "row"}[self.kind]

    def report(self, count: int) -> dict[str, Any]:
        """Returns what happened, for programs."""
        counted = {"space": "keys", "entities": "entities", "tables": "rows"}[self.kind]
        named = "space" if self.kind == "space" else "table"
        return {named: self.name, "layer": self.kind, "count": count, counted: count}

    def format(self, asked: str | None) -> str:
        formats = FORMATS[self.kind]
        if asked is not None and asked not in formats:
            raise click.UsageError(
                f"--format {asked}: {_SHOWN[self.kind]} can be {', '.join(formats)}"
            )
        return asked or formats[0]


_SHOWN: Final[dict[Kind, str]] = {
    "space": "a whole space",
    "entities": "a table of entities",
    "tables": "a table of rows",
}


class Format(click.Choice[str]):
    """A format; a former name is answered with the present one."""

    def __init__(self) -> None:
        super().__init__(["ndjson", "json", "csv", "bson"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "jsonl":
            self.fail("'jsonl' is called 'ndjson' now.", param, ctx)
        return super().convert(value, param, ctx)


def find_subject(space: "Space", name: str, out: Output) -> Subject:
    """Returns what `name` means in this space: `all`, or a table of either layer."""
    if name == WHOLE_SPACE:
        return Subject("space", space.name)
    layer, _, rest = name.partition(":")
    if layer in ("entities", "tables") and rest:
        return Subject("entities" if layer == "entities" else "tables", rest)
    entities = set(space.entities.stats())
    tables = set() if space.name == "*" else set(space.tables.names())
    if name in entities and name in tables:
        raise CommandFailure(
            "ambiguous_name",
            f"{name!r} is a table of entities and a table of rows",
            f"Write entities:{name} or tables:{name}.",
            is_json=out.is_json,
        )
    if name not in entities | tables:
        raise CommandFailure(
            "invalid_table",
            f"there is no table {name!r}",
            _hint(name, entities | tables),
            is_json=out.is_json,
        )
    return Subject("entities" if name in entities else "tables", name)


def _hint(name: str, known: set[str]) -> str:
    if not known:
        return f"This space has no tables; `{WHOLE_SPACE}` is the whole space."
    near = nearest(name, known)
    return (
        f"The tables are {', '.join(sorted(known))}." if near is None else f"Did you mean {near!r}?"
    )
