"""RESTBase's paths: the domain, table, index and values that a raw request path names.

A framework that decodes or normalises a path before this module sees it (merging `//`, resolving
`%2F`) loses what tells the values apart.
"""

import re
from typing import Final

import msgspec

from holdfast.errors import InvalidTablePath
from holdfast.limits import MAX_DOMAIN_BYTES
from holdfast.tables.urls import decode_segment

_NOT_IN_DOMAIN: Final = re.compile("[\x00-\x1f\x7f-\x9f/]")


class TablePath(msgspec.Struct, frozen=True, kw_only=True):
    """A path below `/{domain}/sys/table`, decoded."""

    domain: str
    table: str | None = None  # None: all tables of the domain
    is_rows: bool = False  # False: the table's schema
    index: str | None = None
    values: list[str] = []


def parse_path(path: str | bytes) -> TablePath:
    """Returns the target of a raw path.

    >>> parse_path("/en/sys/table/example/Tom/a%2Fb").values
    ['Tom', 'a/b']
    >>> parse_path("/en/sys/table/example//by_tid/x/").index
    'by_tid'
    """
    segments = (path.decode("latin-1") if isinstance(path, bytes) else path).split("/")
    if len(segments) < 4 or segments[0] or segments[2:4] != ["sys", "table"]:
        raise InvalidTablePath("The path is /{domain}/sys/table/{table}/...")
    domain = decode_segment(segments[1])
    if not 1 <= len(domain.encode()) <= MAX_DOMAIN_BYTES or _NOT_IN_DOMAIN.search(domain):
        raise InvalidTablePath(f"Invalid domain {domain!r}")
    if len(segments) == 4 or segments[4:] == [""]:
        return TablePath(domain=domain)
    table = decode_segment(segments[4])
    if not table:
        raise InvalidTablePath("The path has an empty table name")
    if len(segments) == 5:
        return TablePath(domain=domain, table=table)
    index, values = _rest(segments[5:])
    return TablePath(domain=domain, table=table, is_rows=True, index=index, values=values)


def _rest(segments: list[str]) -> tuple[str | None, list[str]]:
    """Returns index and values of the segments after the table."""
    if segments == [""]:
        return None, []
    if len(segments) > 1 and not segments[-1]:
        segments = segments[:-1]  # a trailing slash changes nothing
    index = None
    if not segments[0]:
        if len(segments) < 2 or not segments[1]:
            raise InvalidTablePath("The path has an empty segment that names no index")
        index, segments = decode_segment(segments[1]), segments[2:]
    if not all(segments):
        raise InvalidTablePath(
            "The path has an empty segment",
            hint="Write an empty value as a parameter, such as `name.eq=`.",
        )
    return index, [decode_segment(segment) for segment in segments]
