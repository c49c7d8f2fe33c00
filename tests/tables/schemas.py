"""Schemas that many tests use."""

from typing import Any
from uuid import UUID

from holdfast.tables.versions import TICKS_TO_1970, version_at

Schema = dict[str, Any]


def hash_on(name: str) -> dict[str, str]:
    return {"type": "hash", "attribute": name}


def range_on(name: str, order: str = "asc") -> dict[str, str]:
    return {"type": "range", "attribute": name, "order": order}


def static_on(name: str) -> dict[str, str]:
    return {"type": "static", "attribute": name}


def proj_of(name: str) -> dict[str, str]:
    return {"type": "proj", "attribute": name}


def example(**members: Any) -> Schema:
    """The table of the specification: versioned, with a descending `tid` as its last range."""
    return {
        "table": "example",
        "attributes": {
            "name": "string",
            "property": "string",
            "tid": "timeuuid",
            "length": "int",
            "value": "string",
        },
        "index": [hash_on("name"), range_on("property"), range_on("tid", "desc")],
        **members,
    }


def simple(**members: Any) -> Schema:
    """An unversioned table with one hash and one range."""
    return {
        "table": "simple",
        "attributes": {"key": "string", "place": "int", "value": "string"},
        "index": [hash_on("key"), range_on("place")],
        **members,
    }


def version(second: float, rest: int = 0x8000_0100_0000_0000) -> UUID:
    """A version whose time is `second`, in seconds since 1970."""
    return version_at(round(second * 10_000_000) + TICKS_TO_1970, rest)
