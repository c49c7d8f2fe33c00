"""Entities: the tables of all schemas, and one table browsed by id or by an index."""

from typing import Any

from holdfast.dashboard.entity_filters import (
    OPERATORS,
    TypedFilter,
    as_filters,
    index_as_yaml,
    missing_index,
    typed_filters,
)
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.pages import action, page
from holdfast.entities.schema import Table
from holdfast.errors import BadInput, HoldfastError, NoIndex
from holdfast.limits import MAX_SHOWN_COLUMNS, MAX_SHOWN_FILTERS, ROWS_PER_PAGE, TABLES_PER_PAGE
from holdfast.server.http_exchange import HttpResponse


@page("entities", menu="entities")
async def entities(request: PageRequest) -> HttpResponse:
    """Shows the tables of all schemas, with sizes and the states of their indexes."""
    after = request.parameter("cursor") or None
    found = await request.call("entities.stats", after=after, limit=TABLES_PER_PAGE + 1)
    stats = dict(list(found.items())[:TABLES_PER_PAGE])
    schemas = await request.call("entities.schemas")
    rows = [
        (name, each.num_rows, each.data_size, each.keys_size, len(each.indexes))
        for name, each in stats.items()
    ]
    header = ("table", "entities", "data bytes", "key bytes", "indexes")
    return await request.render(
        "entities.html",
        title="Entities",
        stats=stats,
        schemas=schemas,
        next=list(stats)[-1] if len(found) > len(stats) else None,
        rows=(header, rows),
    )


@page("entities/{table}", menu="entities")
async def entity_table(request: PageRequest) -> HttpResponse:
    """Shows the entities of a table, all by id or those that filters select by an index."""
    name = request.names["table"]
    table = await table_of(request, name)
    typed = typed_filters(request)
    answer = await _EntityPage.of(request, table, typed)
    columns = _columns(table, answer.entities)
    rows = [
        [each.id, *(each.properties.get(column) for column in columns)] for each in answer.entities
    ]
    return await request.render(
        "entity_table.html",
        title=name,
        table=table,
        count=await request.call("entities.count", table=name),
        typed=typed,
        blank=min(1, MAX_SHOWN_FILTERS - len(typed)),
        operators=OPERATORS,
        answer=answer,
        columns=columns,
        rows=(["id", *columns], rows),
    )


async def table_of(request: PageRequest, name: str) -> Table | None:
    """Returns the deployed table; None if its schema no longer exists."""
    schema = await request.call("entities.schema", name=name.partition(".")[0])
    found: Table | None = schema.table(name.partition(".")[2]) if schema else None
    return found


class _EntityPage:
    """A page of entities; or the reason why there is none, and the index that is missing."""

    def __init__(self) -> None:
        self.entities: list[Any] = []
        self.total: int | None = None
        self.next: str | None = None
        self.partial = False
        self.problem: HoldfastError | None = None
        self.yaml = ""
        self.add_index = ""

    @classmethod
    async def of(
        cls, request: PageRequest, table: Table | None, typed: list[TypedFilter]
    ) -> "_EntityPage":
        answer = cls()
        try:
            await answer._read(request, table, typed)
        except NoIndex as error:
            answer.problem = error
            if table is not None:
                index = missing_index(typed, request.parameter("order"))
                answer.yaml = index_as_yaml(table, index)
                answer.add_index = ",".join(index.columns)
        except BadInput as error:
            answer.problem = error
        return answer

    async def _read(
        self, request: PageRequest, table: Table | None, typed: list[TypedFilter]
    ) -> None:
        cursor, order = request.parameter("cursor"), request.parameter("order")
        by_index = bool(typed) or bool(order)
        filters = as_filters(table, typed)
        if not filters and cursor and not by_index:
            filters = [{"property": "id", "op": ">", "values": [cursor]}]
        skipped = request.count("cursor") if by_index else 0
        found = await request.call(
            "entities.select",
            table=request.names["table"],
            filters=filters or [{"property": "id", "op": "ALL"}],
            order={"by": order, "asc": request.parameter("down") == ""} if order else None,
            offset=skipped or None,
            limit=ROWS_PER_PAGE + 1,
            count=by_index,
            partial=True,
        )
        self.entities = found.entities[:ROWS_PER_PAGE]
        self.partial = found.partial
        self.total = found.total if by_index else None
        if len(found.entities) > ROWS_PER_PAGE:
            self.next = str(skipped + ROWS_PER_PAGE) if by_index else self.entities[-1].id


def _columns(table: Table | None, entities: list[Any]) -> list[str]:
    """Returns the columns to show: those the schema lists, else all, else those of the entities."""
    listed = table.admin.list_columns if table and table.admin else ()
    known = [column.name for column in table.columns] if table else []
    found = sorted({name for each in entities for name in each.properties})
    return (list(listed) or known or found)[:MAX_SHOWN_COLUMNS]


@action("entities/{table}/delete")
async def delete(request: PageRequest) -> HttpResponse:
    """Deletes the entities with these ids."""
    table, ids = request.names["table"], request.form_lists.get("id", [])
    if not ids:
        return request.redirect(request.link("entities", table), "Nothing was selected.")
    filters = [{"property": "id", "op": "IN", "values": ids}]
    number = await request.call("entities.delete", table=table, filters=filters)
    return request.redirect(request.link("entities", table), f"Deleted {number:,} entities.")
