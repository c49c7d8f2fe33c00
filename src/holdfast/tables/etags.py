"""Entity tags: two are equal exactly if the rows, their static values and their schemas are."""

from hashlib import blake2b
from typing import Any

from holdfast.error_text import shown
from holdfast.errors import InvalidTableRequest, PreconditionFailed
from holdfast.tables import row_codec
from holdfast.tables.plan import TablePlan


def row_etag(plan: TablePlan, body: bytes, static_value: bytes | None) -> str:
    digest = blake2b(plan.digest.encode(), digest_size=12)
    digest.update(body)
    if static_value is not None:
        digest.update(row_codec.decode(static_value).body)
    return digest.hexdigest()


def check_tags(**given: Any) -> bool:
    """Returns whether there are tags to compare; raises for a tag that is neither text nor None."""
    for name, tags in given.items():
        if tags is not None and not isinstance(tags, str):
            raise InvalidTableRequest(
                f"{name} must be a text with entity tags or '*', not {shown(tags)}"
            )
    return any(tags is not None for tags in given.values())


def check_etag(etag: str | None, if_match: str | None, if_none_match: str | None) -> None:
    """Raises `PreconditionFailed` unless the row's etag (None without a row) fits the headers."""
    if not matches(etag, if_match, if_none_match):
        found = "There is no such row" if etag is None else f"The row has the etag {etag}"
        raise PreconditionFailed(found)


def matches(etag: str | None, if_match: str | None, if_none_match: str | None) -> bool:
    if if_match is not None:
        if etag is None:
            return False
        if if_match.strip() != "*" and etag not in _tags(if_match):
            return False
    if if_none_match is not None and etag is not None:
        # A proxy that compresses an answer makes its tag weak, so weak tags match, too.
        return if_none_match.strip() != "*" and etag not in _tags(if_none_match, weak=True)
    return True


def _tags(header: str, *, weak: bool = False) -> set[str]:
    tags = [tag.strip() for tag in header.split(",")]
    return {(tag.removeprefix("W/") if weak else tag).strip('"') for tag in tags}
