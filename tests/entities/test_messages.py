"""The records that travel: a slip in a field's name is an error, not a field left out."""

from typing import Any

import msgspec
import pytest

from holdfast.entities.messages import Change, Filter, Ordering, Paging, PutEntity, Query


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"id": "a", "name": "not among the properties"}, PutEntity),
        ({"op": "SET", "property": "a", "val": 1}, Change),
        ({"op": "=", "property": "a", "value": 1}, Filter),
        ({"by": "a", "ascending": False}, Ordering),
        ({"offset": 1, "count": 2}, Paging),
        ({"type": "DEL", "table": "a.b", "filter": []}, Query),
    ],
)
def test_an_unknown_field_is_refused(message: dict[str, Any], kind: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert(message, kind)


def test_queries_are_told_apart_by_their_type() -> None:
    queries: list[dict[str, Any]] = [
        {"type": kind, "table": "a.b"} for kind in ("PUT", "GET", "UPDATE", "DEL")
    ]

    for query in [*queries, {"type": "PING"}]:
        assert msgspec.to_builtins(msgspec.convert(query, Query)) == query
