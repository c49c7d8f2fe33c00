"""Plans of deploys: the difference between the deployed tables and the new ones.

A plan is a pure function of two schemas. It changes nothing: `deploy` applies it, and `lines`
shows beforehand what will happen:

    ~ table shop.Packages
        + column price: Float
        + index shop.Packages__price_simple, built in the background
        - index shop.Packages__name_simple
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from holdfast.entities.schema import Column, Index, Primary, Schema, Table


class TableChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of one table. `old` is None for a new table, `new` for one that is removed."""

    action: Literal["create", "change", "keep", "remove"]
    old: Table | None = None
    new: Table | None = None
    add_indexes: tuple[Index, ...] = ()  # empty at first; to be built if there are entities
    keep_indexes: tuple[Index, ...] = ()  # as they will be; their entries stay
    remove_indexes: tuple[Index, ...] = ()  # as they were

    @property
    def table(self) -> Table:
        table = self.new or self.old
        assert table is not None
        return table

    @property
    def primary_changes(self) -> bool:
        """Returns whether ids would be made differently, which only an empty table allows."""
        if self.old is None or self.new is None:
            return False
        return self.old.primary != self.new.primary

    @property
    def must_be_empty(self) -> bool:
        return self.action == "remove" or self.primary_changes

    def lines(self) -> Iterator[str]:
        """Yields the changes in words, for people."""
        mark = {"create": "+", "change": "~", "keep": " ", "remove": "-"}[self.action]
        yield f"{mark} table {self.table.full_name}"
        if self.old is None or self.new is None:
            return
        if self.primary_changes:
            was, is_now = _primary(self.old.primary), _primary(self.new.primary)
            yield f"    ! primary key: {was}, now {is_now}"
        yield from _column_lines(self.old, self.new)
        if self.old.strict != self.new.strict:
            yield f"    ~ strict: {_word(self.old.strict)}, now {_word(self.new.strict)}"
        for index in self.remove_indexes:
            yield f"    - index {self.old.index_name(index)}"
        for index in self.add_indexes:
            yield f"    + index {self.new.index_name(index)}, built in the background"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a deploy to each table that it mentions and, if it prunes, to the others."""

    schema: str
    tables: tuple[TableChange, ...] = ()

    @property
    def is_empty(self) -> bool:
        return all(table.action == "keep" for table in self.tables)

    def lines(self) -> list[str]:
        """Returns the plan in words, one line for each change."""
        changing = [table for table in self.tables if table.action != "keep"]
        return [line for table in changing for line in table.lines()]


def plan(old: Schema | None, new: Schema, *, prune: bool = False) -> Plan:
    """Returns what changes when `new` is deployed over `old`.

    Tables that `new` does not mention stay as they are, since a schema may be spread over several
    files; with `prune` they are removed.
    """
    before = {table.name: table for table in old.tables} if old else {}
    tables = [_table_change(before.get(table.name), table) for table in new.tables]
    mentioned = {table.name for table in new.tables}
    if prune:
        tables += [
            TableChange(action="remove", old=table, remove_indexes=table.indexes)
            for name, table in before.items()
            if name not in mentioned
        ]
    return Plan(schema=new.name, tables=tuple(tables))


def _table_change(old: Table | None, new: Table) -> TableChange:
    if old is None:
        return TableChange(action="create", new=new, add_indexes=new.indexes)
    if old == new:
        return TableChange(action="keep", old=old, new=new, keep_indexes=new.indexes)
    was = {old.index_name(index): index for index in old.indexes}
    kept = [index for index in new.indexes if _same_entries(was.get(new.index_name(index)), index)]
    kept_names = {new.index_name(index) for index in kept}
    return TableChange(
        action="change",
        old=old,
        new=new,
        keep_indexes=tuple(kept),
        add_indexes=tuple(index for index in new.indexes if index not in kept),
        remove_indexes=tuple(index for name, index in was.items() if name not in kept_names),
    )


def _same_entries(old: Index | None, new: Index) -> bool:
    """Returns whether the entries of `old` serve `new`; a unique index checks them again."""
    return old is not None and old.sparse == new.sparse and (old.unique or not new.unique)


def _column_lines(old: Table, new: Table) -> Iterator[str]:
    before = {column.name: column for column in old.columns}
    for column in new.columns:
        was = before.pop(column.name, None)
        if was is None:
            yield f"    + column {column.name}: {column.type}"
        elif was != column:
            yield f"    ~ column {column.name}: {', '.join(_differences(was, column))}"
    for name in before:
        yield f"    - column {name}, whose values stay stored"


def _differences(old: Column, new: Column) -> Iterator[str]:
    for field in Column.__struct_fields__:
        was, is_now = getattr(old, field), getattr(new, field)
        if was != is_now:
            yield f"{field} {_word(was)}, now {_word(is_now)}"


def _primary(primary: Primary) -> str:
    if primary.type == "random":
        return "random"
    return f"{'hashed ' if primary.hashed else ''}compound of {', '.join(primary.columns)}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in (None, ()):
        return "none"
    if value == "":
        return "empty"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
