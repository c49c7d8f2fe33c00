"""Tables of a server: the operations, and all rows of a slice, page by page."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from holdfast.client.generated.tables import AwaitedTables, CalledTables
from holdfast.tables import transfer
from holdfast.tables.reads import Form
from holdfast.tables.records import Item


class ClientTables(CalledTables):
    """The tables of one space of a server."""

    def scan(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        proj: str | Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        index: str | None = None,
        with_ttl: bool = False,
        distinct: bool = False,
        form: Form = "python",
    ) -> Iterator[Item]:
        """Yields all rows of a slice, one after the other, in constant memory. Each page is a
        snapshot."""
        token: str | None = None
        while True:
            page = self.get(
                table,
                attributes,
                proj=proj,
                order=order,
                next=token,
                index=index,
                with_ttl=with_ttl,
                distinct=distinct,
                form=form,
            )
            yield from page.items
            token = page.next
            if token is None:
                return

    def export(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        format: transfer.Format = "ndjson",
        proj: Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        index: str | None = None,
        with_ttl: bool = False,
    ) -> Iterator[bytes]:
        """Returns the rows of a slice as lines of NDJSON or CSV, in constant memory."""
        names = _names(list(self.schema(table)["attributes"]) if proj is None else proj)
        items = self.scan(
            table,
            attributes,
            proj=names,
            order=order,
            index=index,
            with_ttl=with_ttl,
            form="json",
        )
        return transfer.lines_of(items, [*names, "_ttl"] if with_ttl else names, format)


class AsyncTables(AwaitedTables):
    """The tables of one space of a server."""

    async def scan(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        proj: str | Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        index: str | None = None,
        with_ttl: bool = False,
        distinct: bool = False,
        form: Form = "python",
    ) -> AsyncIterator[Item]:
        """Yields all rows of a slice, one after the other, in constant memory. Each page is a
        snapshot."""
        token: str | None = None
        while True:
            page = await self.get(
                table,
                attributes,
                proj=proj,
                order=order,
                next=token,
                index=index,
                with_ttl=with_ttl,
                distinct=distinct,
                form=form,
            )
            for item in page.items:
                yield item
            token = page.next
            if token is None:
                return

    async def export(
        self,
        table: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        format: transfer.Format = "ndjson",
        proj: Sequence[str] | None = None,
        order: Mapping[str, str] | None = None,
        index: str | None = None,
        with_ttl: bool = False,
    ) -> AsyncIterator[bytes]:
        """Yields the rows of a slice as lines of NDJSON or CSV, in constant memory."""
        names = _names(list((await self.schema(table))["attributes"]) if proj is None else proj)
        columns = [*names, "_ttl"] if with_ttl else names
        for head in transfer.lines_of([], columns, format):
            yield head
        token: str | None = None
        while True:
            page = await self.get(
                table,
                attributes,
                proj=names,
                order=order,
                next=token,
                index=index,
                with_ttl=with_ttl,
                form="json",
            )
            lines = transfer.lines_of(page.items, columns, format)
            for line in islice(lines, int(format == "csv"), None):  # after the line of names
                yield line
            token = page.next
            if token is None:
                return


def _names(proj: str | Sequence[str]) -> list[str]:
    """Returns the columns of an export, each once."""
    return list(dict.fromkeys([proj] if isinstance(proj, str) else proj))
