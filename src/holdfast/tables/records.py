"""The stored records of tables, and the results of operations."""

from typing import Any

import msgspec

Item = dict[str, Any]  # a row as the caller sees it: attribute name to value


class TableRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table of a space. Its bytes are the key of the compiled plan, so it holds nothing that
    changes often.
    """

    number: int
    schema: bytes  # the normalised schema as JSON: members come back in the order they were sent
    ids: dict[str, int]  # of the attributes; rows are stored by id
    next_id: int  # no id is used twice: values under a removed id are ignored
    indexes: dict[str, int] = {}  # ids of the secondary indexes
    next_index: int = 0
    building: list[str] = []  # indexes that are not complete yet
    policy_generation: int = 0  # counts changes of the retention policy
    inherited: bool = False  # made from the default of domain `*`, and not changed here since
    layout: int = 1


class DefaultRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The schema of domain `*`, kept in the space `*` and copied into every other."""

    schema: bytes
    is_template: bool = False  # in the space `*`: copied into others, not used itself
    unfinished: str = ""  # of a template: "create" or "drop" while it is copied to the others


class BuildRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of building an index, as it is stored."""

    after: bytes = b""  # the key of the last indexed row, without the space
    rows: int = 0
    problem: str = ""  # why it can't be built


class CreateResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a submitted schema."""

    table: str
    version: int
    changed: bool
    warnings: list[str] = []


class PutResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a put: `applied` is False if its condition was not met."""

    applied: bool
    tid: Any = None  # the version attribute's value, given or generated; None without one
    old: Item | None = None  # the row before, if `return_old` was set and it existed


class DeleteResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a delete: `applied` is False if its condition was not met."""

    applied: bool
    count: int = 0  # rows that were removed


class StepResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one operation of a batch: a put's version, or the rows of a delete."""

    tid: Any = None
    count: int | None = None


class BatchResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a batch. If a condition was not met nothing was written, and `failed` is its
    operation.
    """

    applied: bool
    results: list[StepResult] = []
    failed: int | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One page of a result, in order. `next` is set if more rows may follow."""

    items: list[Item]
    count: int
    next: str | None = None
    etag: str | None = None  # of the row, if the whole primary key was given


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a table."""

    rows: int
    bytes: int
    entries: int
    expiring: int


class IndexProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an index build: `rows` done of about `total`, and the problem that stops it,
    if there is one.
    """

    index: str
    complete: bool
    rows: int
    total: int
    problem: str = ""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A line that an import refused, and why."""

    line: int
    code: str
    message: str


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import: the rows that were put, and the first of those that were refused."""

    rows: int
    refused: int
    refusals: list[Refusal]
