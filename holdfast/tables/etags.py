"""Entity tags: equal exactly if a row, its static values and its schema are."""

from hashlib import blake2b

from holdfast.tables import stored
from holdfast.tables.plan import Plan


def row_etag(plan: Plan, body: bytes, static_value: bytes | None) -> str:
    digest = blake2b(plan.digest.encode(), digest_size=12)
    digest.update(body)
    if static_value is not None:
        digest.update(stored.read(static_value).body)
    return digest.hexdigest()


def matches(etag: str | None, if_match: str | None, if_none_match: str | None) -> bool:
    """Whether a row with that etag, None if there is no row, is the one that is asked for."""
    if if_match is not None:
        if etag is None:
            return False
        if if_match.strip() != "*" and etag not in _tags(if_match):
            return False
    if if_none_match is not None and etag is not None:
        return if_none_match.strip() != "*" and etag not in _tags(if_none_match)
    return True


def _tags(header: str) -> set[str]:
    return {tag.strip().strip('"') for tag in header.split(",")}
