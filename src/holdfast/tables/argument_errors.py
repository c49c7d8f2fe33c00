"""The layer's own errors for arguments of the wrong type.

The server decodes arguments by their types, so it notices a wrong one before the layer does. It
raises the error that the layer would raise, so that a call fails in the same way everywhere.
"""

from typing import Final

from holdfast.errors import (
    HoldfastError,
    IndexNotFound,
    InvalidPageToken,
    InvalidTablePath,
    InvalidTableQuery,
    InvalidTableRequest,
    InvalidTableSchema,
    TableNotFound,
)

_BY_ARGUMENT: Final[dict[str, type[HoldfastError]]] = {
    "table": TableNotFound,
    "next": InvalidPageToken,
    **dict.fromkeys(("schema", "create.table", "add_index.index", "elements"), InvalidTableSchema),
    **dict.fromkeys(("attributes", "operations", "operations[]"), InvalidTableRequest),
    **dict.fromkeys(("lines", "lines[]"), InvalidTableRequest),
    **dict.fromkeys(("if", "if_match", "if_none_match", "return_old"), InvalidTableRequest),
    **dict.fromkeys(("proj", "proj[]", "order", "limit", "index", "form"), InvalidTableQuery),
    **dict.fromkeys(("with_ttl", "distinct", "count_only", "after"), InvalidTableQuery),
    **dict.fromkeys(("values", "values[]"), InvalidTablePath),
    "query_string": InvalidTableQuery,
    "index_progress.index": IndexNotFound,
}


def error_for_argument(
    operation: str, argument: str, *, is_beyond: bool
) -> type[HoldfastError] | None:
    """Returns the error for an argument, or an element of it (`values[]`), of a wrong type."""
    by_argument = _BY_ARGUMENT.get(argument)
    return _BY_ARGUMENT.get(f"{operation}.{argument}", by_argument)
