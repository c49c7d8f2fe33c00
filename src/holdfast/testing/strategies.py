"""Strategies of hypothesis for entities (extra `testing`): schemas, and what fits them.

    @given(order=objects(Order))
    def test_an_order_is_found_as_it_was_put(order: Order) -> None: ...

What they draw can be deployed and put, and is equal to itself when it is read again: floats are
never NaN, and moments have whole milliseconds.

What they do not draw: values of unique indexes and primary keys that differ from those drawn
before, so a second entity may replace or collide with the first; elements of containers inside
containers other than texts; and, in schemas, unique indexes, defaults and `must_match`. Values that
must match a pattern are drawn by it in strict tables, and are any text in others, where it is not
enforced.
"""

import builtins
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from holdfast.entities.linear_patterns import LinearPattern
from holdfast.entities.models import Model, shape_of
from holdfast.entities.schema import Column, Index, Primary, Schema, Table
from holdfast.entities.types import COLUMN_KINDS, COLUMN_TYPES, ColumnType
from holdfast.errors import MissingDriver

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingDriver(
        "the package `hypothesis` is not installed", hint="pip install 'holdfastdb[testing]'"
    ) from error

__all__ = ["entities", "objects", "schemas"]

M = TypeVar("M", bound=Model)

_LONGEST: Final = 20  # of texts and bytes, unless the column says less
_LONGEST_KEY: Final = 8  # a letter can take 33 bytes of an id when it is normalised
_MOST_ELEMENTS: Final = 4
_LETTERS: Final = st.characters(exclude_categories=["Cs"])
_NAMES: Final = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name != "id"
)
_MAP_KEYS: Final = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_PLAIN: Final = [type for type in COLUMN_TYPES if not COLUMN_KINDS[type].is_container]


def schemas(*, max_tables: int = 3, max_columns: int = 5) -> st.SearchStrategy[Schema]:
    """Draws schemas with columns of every type, keys, indexes and strict tables.

    No index is unique, so that any entities can be put into one table.
    """
    tables = st.lists(_NAMES, min_size=1, max_size=max_tables, unique=True)
    return st.tuples(_NAMES, tables).flatmap(
        lambda names: st.builds(
            Schema,
            name=st.just(names[0]),
            tables=st.tuples(*[_table(names[0], table, max_columns) for table in names[1]]),
        )
    )


def entities(table: Table) -> st.SearchStrategy[dict[str, Any]]:
    """Draws the properties of an entity that `table` accepts, to be given to `put_raw`.

    Required properties and those of the primary key are always present. Others may be missing or
    None.
    """
    needed, optional = {}, {}
    for column in table.columns:
        is_key = column.name in table.primary.columns
        longest = _LONGEST_KEY if is_key else _LONGEST
        values = _values(column, longest=longest, strict=table.strict)
        if is_key or column.required or column.not_null:
            needed[column.name] = values
        else:
            optional[column.name] = st.none() | values
    return st.fixed_dictionaries(needed, optional=optional)


def objects(model: type[M]) -> st.SearchStrategy[M]:
    """Draws objects of a model. A column that is not drawn has the default of the model."""
    shape = shape_of(model)
    return entities(shape.table).map(
        lambda values: model(**{shape.attributes[name]: value for name, value in values.items()})
    )


# --- tables ------------------------------------------------------------------------------------


@st.composite
def _table(draw: st.DrawFn, schema: str, name: str, max_columns: int) -> Table:
    columns = draw(st.lists(_columns(), max_size=max_columns, unique_by=lambda each: each.name))
    plain = [column.name for column in columns if not column.kind.is_container]
    some = st.lists(st.sampled_from(plain), min_size=1, max_size=3, unique=True).map(tuple)
    primary, indexes = Primary(), []
    if plain:
        compound = st.builds(Primary, type=st.just("compound"), columns=some, hashed=st.booleans())
        primary = draw(st.just(primary) | compound)
        indexes = draw(st.lists(some, max_size=2, unique=True))
    return Table(
        schema=schema,
        name=name,
        strict=draw(st.booleans()),
        primary=primary,
        columns=tuple(columns),
        indexes=tuple(Index(columns=each) for each in indexes),
    )


@st.composite
def _columns(draw: st.DrawFn) -> Column:
    type = draw(st.sampled_from(COLUMN_TYPES))
    kind = COLUMN_KINDS[type]
    choices: list[Any] = []
    if kind.is_text:
        choices = draw(st.lists(_NAMES, max_size=3))
    elif kind.bounds is not None:
        choices = draw(st.lists(_typed(type), max_size=3))
    return Column(
        name=draw(_NAMES),
        type=type,
        required=draw(st.booleans()),
        max_len=draw(st.none() | st.integers(1, 9)) if kind.is_sized and not choices else None,
        choices=tuple(choices),
        subtype=draw(st.none() | st.sampled_from(_PLAIN)) if kind.is_container else None,
    )


# --- values ------------------------------------------------------------------------------------


def _values(column: Column, *, longest: int, strict: bool) -> st.SearchStrategy[Any]:
    kind = column.kind
    if kind.is_container:
        most = _MOST_ELEMENTS if column.max_len is None else min(column.max_len, _MOST_ELEMENTS)
        elements = st.sampled_from(column.choices) if column.choices else None
        return _containers(column.type, elements or _typed(column.subtype or "Text"), most)
    if column.choices:
        return st.sampled_from(column.choices)
    if column.max_len is not None:
        longest = min(column.max_len, longest)
    if strict and column.must_match and kind.is_text:
        return _matching(column.must_match, column.max_len)
    return _typed(column.type, longest)


def _typed(type: ColumnType, longest: int = _LONGEST) -> st.SearchStrategy[Any]:
    """Draws values of a column type; the elements of a container in a container are texts."""
    kind = COLUMN_KINDS[type]
    if kind.is_container:
        return _containers(type, st.text(_LETTERS, max_size=longest), _MOST_ELEMENTS)
    low, high = kind.bounds or (None, None)
    drawn: dict[builtins.type, st.SearchStrategy[Any]] = {
        int: st.integers(low, high),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        str: st.text(_LETTERS, max_size=longest),
        bytes: st.binary(max_size=longest),
        datetime: st.datetimes(timezones=st.just(UTC)).map(_in_milliseconds),
    }
    return drawn[kind.python]


def _in_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _containers(
    type: ColumnType, elements: st.SearchStrategy[Any], most: int
) -> st.SearchStrategy[Any]:
    kind = COLUMN_KINDS[type]
    if kind.has_names:
        return st.dictionaries(_MAP_KEYS, elements, max_size=most)
    if kind.is_distinct:
        return st.sets(elements, max_size=most)
    return st.lists(elements, max_size=most)


def _matching(expression: str, max_len: int | None) -> st.SearchStrategy[str]:
    pattern = LinearPattern(expression)
    most = pattern.max_letters if max_len is None else min(max_len, pattern.max_letters)
    drawn = st.from_regex(expression, fullmatch=True, alphabet=_LETTERS)
    return drawn.filter(lambda text: len(text) <= most and bool(pattern.fullmatch(text)))
