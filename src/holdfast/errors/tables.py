"""Errors of tables."""

from typing import ClassVar

from holdfast.errors.base import HoldfastError


class TableError(HoldfastError):
    """A request to the tables was refused; nothing was changed.

    `message` is the title that clients of RESTBase match on, `type` the name it has there.
    """

    code, status = "table_error", 400
    type: ClassVar[str] = "invalid_request"
    facts = {"attribute": str}  # noqa: RUF012  # nobody changes it

    def __init__(
        self, message: str = "", *, attribute: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.attribute = attribute


class InvalidTableRequest(TableError):
    """A request lacks a field, or has one that does not belong there."""

    code, type = "invalid_table_request", "invalid_request"


class InvalidTableJson(TableError):
    """The body is not valid JSON, or not of the form that the request needs."""

    code, type = "invalid_json", "invalid_json"


class InvalidTableSchema(TableError):
    """The schema of a table is invalid."""

    code, type = "invalid_table_schema", "invalid_schema"


class SchemaUpgradeRejected(TableError):
    """The table can't be migrated from its schema to the submitted one."""

    code, type = "schema_upgrade_rejected", "schema_upgrade_rejected"


class InvalidTableQuery(TableError):
    """A query does not describe one slice of one index."""

    code, type = "invalid_table_query", "invalid_query"


class InvalidAttributeValue(TableError):
    """An attribute's type does not accept the value."""

    code, type = "invalid_attribute_value", "invalid_value"


class UnknownAttribute(TableError):
    """A put or a condition names an attribute that the table does not have."""

    code, type = "unknown_attribute", "unknown_attribute"


class MissingKeyAttribute(TableError):
    """A put lacks an attribute of the primary key."""

    code, type = "missing_key", "missing_key"


class RowKeyTooLong(TableError):
    """A value is too long for the key that it is a part of."""

    code, type = "row_key_too_long", "key_too_long"
    hint = "Keep long values in attributes that no index names, or index a digest of them."


class TtlNotAllowed(TableError):
    """A put has `_ttl` although the table's retention policy decides what expires."""

    code, type = "ttl_not_allowed", "ttl_not_allowed"


class InvalidPageToken(TableError):
    """A `next` token is damaged, or belongs to another query."""

    code, type = "invalid_token", "invalid_token"
    hint = "Send the token with the query that it came from, or leave it out to begin again."


class TableMismatch(TableError):
    """The path and the body of a request name different tables."""

    code, type = "table_mismatch", "table_mismatch"


class InvalidTablePath(TableError):
    """A path can't be decoded, or has too many segments or an empty one."""

    code, type = "invalid_path", "invalid_path"


class TableNotFound(TableError):
    """There is no table of that name in this space."""

    code, type, status = "table_not_found", "table_not_found", 404
    hint = "Create it with `tables.create(schema)`; `tables.names()` lists the tables."


class IndexNotFound(TableError):
    """The table has no secondary index of that name."""

    code, type, status = "index_not_found", "index_not_found", 404


class PreconditionFailed(TableError):
    """The row does not have the etag that `if_match` or `if_none_match` requires."""

    code, type, status = "precondition_failed", "precondition_failed", 412
    hint = "Read the row again, and write with its current etag."


class RowTooLarge(TableError):
    """A row, or the body of a request, has more bytes than allowed."""

    code, type, status = "too_large", "too_large", 413


class IndexBuilding(TableError):
    """The index is still being built."""

    code, type, status = "index_building", "index_building", 503
    hint = "Try again when `tables.index_progress` says that it is complete."


class TableUnavailable(TableError):
    """The table needs a codec or a newer version that is not installed here."""

    code, type, status = "unavailable", "unavailable", 503
