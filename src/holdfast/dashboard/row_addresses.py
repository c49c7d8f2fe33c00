"""Rows by the path and parameters of a URL: `Main_Page/7?tid.gt=...`."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from holdfast.dashboard.page_request import PageRequest
from holdfast.limits import ROWS_PER_PAGE

_KEY_TYPES = ("hash", "range")


class RowQuery(NamedTuple):
    """A query as it is typed: values of the key, a question mark, parameters."""

    values: list[str]
    parameters: str
    text: str

    @classmethod
    def of(cls, request: PageRequest) -> "RowQuery":
        text = request.parameter("q").strip().lstrip("/")
        path, _, parameters = text.partition("?")
        return cls(values_of(path), parameters, text)

    async def read(self, request: PageRequest) -> Any:
        """Returns a page of rows, after the cursor of the address."""
        return await request.call(
            "tables.get_by_url",
            table=request.names["table"],
            values=self.values,
            query_string=self._query_string(request.parameter("cursor")),
        )

    def _query_string(self, cursor: str, limit: int = ROWS_PER_PAGE) -> str:
        given = [each for each in self.parameters.split("&") if each]
        if not any(each.startswith(("limit=", "count=")) for each in given):
            given.append(f"limit={limit}")
        if cursor:
            given = [each for each in given if not each.startswith("next=")]
            given.append(f"next={quote(cursor, safe='')}")
        return "&".join(given)

    def export_parameters(self, cursor: str, limit: int) -> str:
        """Returns the parameters of one step of an export."""
        return self._query_string(cursor, limit)


def values_of(path: str) -> list[str]:
    """Returns the values that a path names.

    >>> values_of("Main%2FPage/7")
    ['Main/Page', '7']
    """
    return [unquote(each) for each in path.split("/")] if path else []


def key_names(schema: Mapping[str, Any]) -> list[str]:
    """Returns the attributes of the primary key, in order."""
    return [each["attribute"] for each in schema["index"] if each["type"] in _KEY_TYPES]


def key_address(item: Mapping[str, Any], key: list[str]) -> str:
    """Returns the path that names one row; empty if the row came without a part of its key.

    >>> key_address({"title": "Main/Page", "rev": 7, "body": ""}, ["title", "rev"])
    'Main%2FPage/7'
    """
    if any(item.get(name) is None for name in key):
        return ""
    return "/".join(quote(_text(item[name]), safe="") for name in key)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
