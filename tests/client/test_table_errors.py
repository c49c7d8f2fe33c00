"""A call on a table with an argument of a wrong type fails over the network as it does embedded."""

from typing import Any

import pytest

from holdfast.errors import TableError
from holdfast.store import Store
from tests.tables.schemas import simple

KEY = {"key": "a", "place": 1}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get", {"table": 5}),
    ("get", {"table": "simple", "attributes": 5}),
    ("get", {"table": "simple", "proj": [5]}),
    ("get", {"table": "simple", "order": "asc"}),
    ("get", {"table": "simple", "limit": "5"}),
    ("get", {"table": "simple", "next": 5}),
    ("get", {"table": "simple", "index": 5}),
    ("get", {"table": "simple", "with_ttl": 1}),
    ("get", {"table": "simple", "distinct": "yes"}),
    ("get", {"table": "simple", "form": "xml"}),
    ("put", {"table": "simple", "attributes": [1]}),
    ("put", {"table": "simple", "attributes": KEY, "if_": 5}),
    ("put", {"table": "simple", "attributes": KEY, "if_match": 5}),
    ("delete", {"table": "simple", "attributes": KEY, "if_": [1]}),
    ("batch", {"operations": 5}),
    ("batch", {"operations": [5]}),
    ("create", {"schema": 5}),
    ("create", {"schema": simple(), "table": 5}),
    ("names", {"after": 5}),
    ("names", {"limit": "x"}),
    ("add_index", {"table": "simple", "index": 5, "elements": []}),
    ("add_index", {"table": "simple", "index": "by_value", "elements": 5}),
    ("index_progress", {"table": "simple", "index": 5}),
    ("get_by_url", {"table": "simple", "values": 5}),
    ("get_by_url", {"table": "simple", "values": [5]}),
    ("get_by_url", {"table": "simple", "values": [], "query_string": 5}),
    ("import_rows", {"table": "simple", "lines": 5}),
    ("import_rows", {"table": "simple", "lines": [5]}),
]


@pytest.mark.parametrize(("operation", "arguments"), CALLS)
def test_an_argument_of_a_wrong_type_has_the_error_of_the_layer(
    client: Any, store: Store, operation: str, arguments: dict[str, Any]
) -> None:
    store.tables.create(simple())
    client.tables.create(simple())

    with pytest.raises(TableError) as embedded:
        getattr(store.tables, operation)(**arguments)
    with pytest.raises(TableError) as sent:
        getattr(client.tables, operation)(**arguments)

    assert type(sent.value) is type(embedded.value)
