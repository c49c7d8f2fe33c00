"""RESTBase's request bodies and answers as objects: what the HTTP door needs and HTTP has no part
in.
"""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.errors import InvalidTableQuery, InvalidTableRequest, TableError, TableMismatch
from holdfast.shown import shown
from holdfast.tables.queries import Query
from holdfast.tables.records import CreateResult, Page, PutResult

_QUERY: Final = (
    "table", "attributes", "proj", "order", "limit", "next", "index", "withTTL", "distinct",
    "count", "consistency",
)  # fmt: skip
_PUT: Final = ("table", "attributes", "if", "return", "consistency")
_DELETE: Final = ("table", "attributes", "if", "consistency")
_NOT_IN_DELETE: Final = ("limit", "proj", "order", "next", "index")


def read_query(body: Any, table: str) -> Query:
    """The query in a body; no body is the query for everything."""
    members = _members({} if body is None else body, table, _QUERY)
    count = members.get("count")
    if count not in (None, "only"):
        raise InvalidTableQuery(f"count is 'only' or absent, not {shown(count)}")
    return Query(
        attributes=members.get("attributes"),
        proj=members.get("proj"),
        order=members.get("order"),
        limit=members.get("limit"),
        next=members.get("next"),
        index=members.get("index"),
        with_ttl=_flag(members, "withTTL"),
        distinct=_flag(members, "distinct"),
        count_only=count == "only",
    )


def read_put(body: Any, table: str) -> dict[str, Any]:
    """The arguments of `Tables.put` in a body."""
    members = _members(body, table, _PUT)
    wanted = members.get("return")
    if wanted not in (None, "old"):
        raise InvalidTableRequest(f"return is 'old' or absent, not {shown(wanted)}")
    return {
        "attributes": _attributes(members),
        "if_": members.get("if"),
        "return_old": wanted == "old",
    }


def read_delete(body: Any, table: str) -> dict[str, Any]:
    """The arguments of `Tables.delete` in a body."""
    members = _members({} if body is None else body, table, _DELETE + _NOT_IN_DELETE)
    for name in _NOT_IN_DELETE:
        if name in members:
            raise InvalidTableRequest(f"A delete takes no {name}")
    return {"attributes": _attributes(members), "if_": members.get("if")}


def created_body(domain: str, result: CreateResult) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": "table_created",
        "title": "Table was created.",
        "domain": domain,
        "table": result.table,
        "version": result.version,
        "changed": result.changed,
    }
    if result.warnings:
        body["warnings"] = result.warnings
    return body


def put_body(result: PutResult, *, return_old: bool = False) -> dict[str, Any]:
    body: dict[str, Any] = {"applied": result.applied}
    if result.tid is not None:
        body["tid"] = str(result.tid)
    if return_old and result.applied:
        body["old"] = result.old
    return body


def page_body(page: Page) -> dict[str, Any]:
    """With status 404 if it has no items, which is not an error: it has no `type`."""
    body: dict[str, Any] = {"items": page.items, "count": page.count}
    if page.next is not None:
        body["next"] = page.next
    return body


def error_body(error: TableError) -> dict[str, Any]:
    body = {"type": error.type, "title": _sayable(error.message)}
    if error.hint:
        body["detail"] = error.hint
    if error.attribute is not None:
        body["attribute"] = _sayable(error.attribute)
    return body


def _sayable(text: str) -> str:
    """The text as JSON can carry it: a refused name may have lone surrogates, which are escaped."""
    return text.encode(errors="backslashreplace").decode()


def _members(body: Any, table: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise InvalidTableRequest("The body is an object")
    named = body.get("table")
    if named is not None and named != table:
        raise TableMismatch(f"The path names the table {table!r}, the body {shown(named)}")
    for name in body:
        if name not in known and isinstance(name, str):
            meant = next((each for each in known if each.lower() == name.lower()), None)
            if meant is not None:
                raise InvalidTableRequest(f"Unknown member {name!r}, did you mean {meant!r}?")
    return body


def _attributes(members: Mapping[str, Any]) -> Mapping[str, Any]:
    attributes = members.get("attributes")
    if attributes is None:
        return {}
    if not isinstance(attributes, Mapping):
        raise InvalidTableRequest("The attributes are an object")
    return attributes


def _flag(members: Mapping[str, Any], name: str) -> bool:
    value = members.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidTableQuery(f"{name} is true or false, not {shown(value)}")
    return value
