"""The records of a schema: what a `*.schema.yaml` file says and what a deploy stores.

Schema
└── Table            stored under its full name, `schema.Table`
    ├── Primary      how ids are made: random, or computed from columns
    ├── Column       for the mapper, for generated code and, in strict tables, for the store
    └── Index        one entry per entity and index, kept in the entity's own transaction

`schema_file` reads these from YAML, `schema_dump` writes them, `plan` compares two of them.
"""

from typing import Any, Literal

import msgspec

from holdfast.entities.types import COLUMN_KINDS, ColumnKind, ColumnType

IndexType = Literal["simple", "compound"]
PrimaryType = Literal["random", "compound"]


class ColumnAdmin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hints for an administration page that shows a column."""

    hidden: bool = False
    readonly: bool = False
    priority: int = 0
    format: str = ""


class TableAdmin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hints for an administration page that shows a table. No `list_columns` means all, sorted."""

    list_columns: tuple[str, ...] = ()
    search_by: tuple[str, ...] = ()


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column: the values that a mapper expects under `name`, and that a strict table enforces."""

    name: str
    type: ColumnType
    client_name: str = ""  # as written; `attribute` is what to use
    comment: str = ""
    default: Any = None  # a value of `type` (a Set as a list), "$now", or None for no default
    required: bool = False
    max_len: int | None = None  # Text: code points; Binary: bytes; Set, List, Map: elements
    choices: tuple[Any, ...] = ()
    subtype: ColumnType | None = None  # elements of a Set or List, values of a Map
    not_null: bool = False  # in strict tables the same as `required`
    must_match: str = ""  # in strict tables a regular expression for the whole text
    admin: ColumnAdmin | None = None

    @property
    def kind(self) -> ColumnKind:
        """The facts about its type."""
        return COLUMN_KINDS[self.type]

    @property
    def attribute(self) -> str:
        """The name of the column in generated code."""
        return self.client_name or self.name


class Primary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The way in which the ids of a table are made: at random, or computed from `columns`."""

    type: PrimaryType = "random"
    columns: tuple[str, ...] = ()
    hashed: bool = False


class Index(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A secondary index."""

    columns: tuple[str, ...]
    type: IndexType = "compound"
    unique: bool = False
    sparse: bool = False  # leaves out the entities whose indexed columns are all null

    def name(self, table: str) -> str:
        """Returns the name of the index; `table` is the table's full name.

        >>> Index(columns=("name",), type="simple").name("mock.users")
        'mock.users__name_simple'
        """
        return f"{table}__{','.join(self.columns)}_{self.type}"


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table of a schema, complete in itself: this record is what a deploy stores."""

    schema: str
    name: str
    comment: str = ""
    class_name: str = ""  # as written; `model` is what to use
    strict: bool = False
    primary: Primary = Primary()
    columns: tuple[Column, ...] = ()  # in the order of the file
    indexes: tuple[Index, ...] = ()  # in the order of the file: the first of equal ones is used
    engines: tuple[str, ...] = ()  # kept for Meduza servers, which require it; without effect
    options: dict[str, Any] = {}  # free-form, without effect; msgspec copies the default
    admin: TableAdmin | None = None

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def model(self) -> str:
        """The name of the table's class in generated code."""
        return self.class_name or self.name

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def index_name(self, index: Index) -> str:
        return index.name(self.full_name)


class Schema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named group of tables, possibly collected from several files."""

    name: str
    tables: tuple[Table, ...] = ()  # in the order of the file

    def table(self, name: str) -> Table | None:
        return next((table for table in self.tables if table.name == name), None)
