"""The bodies of RESTBase's requests and answers, as objects."""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.error_text import did_you_mean, shown
from holdfast.errors import InvalidTableQuery, InvalidTableRequest, TableError, TableMismatch
from holdfast.tables.plan import Attribute, TablePlan
from holdfast.tables.predicates import OPERATORS
from holdfast.tables.queries import Query
from holdfast.tables.records import CreateResult, Page, PutResult

_SHARED: Final = ("table", "attributes", "consistency")
_ONLY_IN_QUERY: Final = (
    "proj", "order", "limit", "next", "index", "withTTL", "distinct", "count",
)  # fmt: skip
_ONLY_IN_PUT: Final = ("if", "return")
_QUERY: Final = (*_SHARED, *_ONLY_IN_QUERY)
# RESTBase accepts a `timestamp`, which has no effect here: the version holds the time of a write.
_PUT: Final = (*_SHARED, *_ONLY_IN_PUT, "timestamp")
_DELETE: Final = (*_SHARED, "if", "timestamp")


def may_be_query(body: Any) -> bool:
    """Returns whether the body of a POST looks like a query; `is_query` decides."""
    if not isinstance(body, Mapping):
        return False
    attributes = body.get("attributes")
    return any(name in body for name in _ONLY_IN_QUERY) or (
        isinstance(attributes, Mapping) and any(map(_has_operators, attributes.values()))
    )


def is_query(plan: TablePlan, body: Mapping[str, Any]) -> bool:
    """Returns whether a body asks for rows: by members that only a query has, or by operators.

    Raises if it has members of a write too.
    """
    asked = [name for name in _ONLY_IN_QUERY if name in body]
    attributes = body.get("attributes")
    if not asked and isinstance(attributes, Mapping):
        # A value of type json may look like operators, and can't be in a query.
        named = [plan.attributes[name] for name in attributes if name in plan.attributes]
        asked = [
            attribute.name
            for attribute in named
            if not _is_json(attribute) and _has_operators(attributes[attribute.name])
        ]
    written = [name for name in _ONLY_IN_PUT if name in body]
    if asked and written:
        raise InvalidTableRequest(
            f"The body has {asked[0]!r} as only a query has, "
            f"and {written[0]!r} as only a write has",
            hint="Send a query with GET, QUERY or POST, and a write with PUT.",
        )
    return bool(asked)


def _is_json(attribute: Attribute) -> bool:
    return attribute.type.kind.takes_objects and not attribute.type.is_set


def refuse_key_only(plan: TablePlan, attributes: Mapping[str, Any]) -> None:
    """Raises for the body of a POST that may be meant as a query.

    As a write it would store a revision without values, which would become the current one.
    """
    if plan.version is None or attributes.get(plan.version) is not None:
        return
    keys = {attribute.name for attribute in plan.key_attributes}
    if attributes and keys.issuperset(attributes):
        raise InvalidTableRequest(
            "The body names key attributes and nothing else: a query, or a revision without values",
            hint="Send a query with GET or QUERY, or with a `limit`; send a write with PUT.",
        )


def _has_operators(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(name, str) and name.lower() in OPERATORS for name in value)
    )


def read_query(body: Any, table: str) -> Query:
    """Returns the query in a body; without a body it asks for everything."""
    members = _members({} if body is None else body, table, _QUERY, "query")
    count = members.get("count")
    if count not in (None, "only"):
        raise InvalidTableQuery(f"count must be 'only' or absent, not {shown(count)}")
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
    """Returns the arguments of `Tables.put` in a body."""
    members = _members(body, table, _PUT, "put")
    wanted = members.get("return")
    if wanted not in (None, "old"):
        raise InvalidTableRequest(f"return must be 'old' or absent, not {shown(wanted)}")
    return {
        "attributes": _attributes(members),
        "if_": members.get("if"),
        "return_old": wanted == "old",
    }


def read_delete(body: Any, table: str) -> dict[str, Any]:
    """Returns the arguments of `Tables.delete` in a body."""
    members = _members({} if body is None else body, table, _DELETE, "delete")
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
    """Returns the body of a page. An empty one has status 404 but no `type`: it is not an error."""
    body: dict[str, Any] = {"items": page.items, "count": page.count}
    if page.next is not None:
        body["next"] = page.next
    return body


def error_body(error: TableError) -> dict[str, Any]:
    body = {"type": error.type, "title": _as_json_text(error.message)}
    if error.hint:
        body["detail"] = error.hint
    if error.attribute is not None:
        body["attribute"] = _as_json_text(error.attribute)
    return body


def _as_json_text(text: str) -> str:
    """Returns text that JSON can carry: lone surrogates in a refused name are escaped."""
    return text.encode(errors="backslashreplace").decode()


def _members(body: Any, table: str, known: tuple[str, ...], kind: str) -> Mapping[str, Any]:
    """Returns the body of a request; raises for a member that this kind of request does not have.

    A misspelt member would otherwise be ignored, and change the answer or the write.
    """
    if not isinstance(body, Mapping):
        raise InvalidTableRequest("The body is an object")
    named = body.get("table")
    if named is not None and named != table:
        raise TableMismatch(f"The path names the table {table!r}, the body {shown(named)}")
    for name in body:
        if name not in known:
            raise _unknown_member(name, known, kind)
    return body


def _unknown_member(name: Any, known: tuple[str, ...], kind: str) -> InvalidTableRequest:
    listed = f"A {kind} has {', '.join(known)}; the columns are in `attributes`."
    if kind == "put":  # a POST may have been meant as a query
        listed += f" A query has {', '.join(_ONLY_IN_QUERY)} too."
    if name in _ONLY_IN_QUERY:
        return InvalidTableRequest(f"A {kind} takes no {name}: only a query has it", hint=listed)
    if name in _ONLY_IN_PUT:
        return InvalidTableRequest(f"A {kind} takes no {name}: only a write has it", hint=listed)
    near = did_you_mean(name, known) or did_you_mean(name, (*_ONLY_IN_QUERY, *_ONLY_IN_PUT))
    return InvalidTableRequest(f"Unknown member {shown(name)}{near}", hint=listed)


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
        raise InvalidTableQuery(f"{name} must be true or false, not {shown(value)}")
    return value
