"""Says why a read of event keys has found nothing: no such key, or one of another kind."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store import Space

_MAX_COMPARED_KEYS: Final = 1_000  # keys that are compared with the one that was given
_READ_WITH: Final = {
    "set": "members",
    "leaderboard": "top",
    "numbers": "aggregate",
    "count": "count",
}


def why_nothing(space: "Space", keys: "Sequence[str]", kind: str, last: str | None = None) -> str:
    """Returns a sentence for a read of `keys`, as things of one `kind`, that has found nothing."""
    if last is not None:
        return f"nothing was written to {' '.join(keys)} in the last {last}"
    found: Any = space.events.read([{"op": "describe", "key": key} for key in keys])
    return "\n".join(_why(space, each.key, each.kinds, kind) for each in found)


def _why(space: "Space", key: str, kinds: "Sequence[str]", kind: str) -> str:
    from holdfast.error_text import did_you_mean

    if kind in kinds:
        return f"{key} has nothing that matches"
    if kinds:
        command = _READ_WITH[kinds[0]]
        return f"{key} holds no {kind}; `holdfast events {command} {key}` reads what it holds"
    near = did_you_mean(key, _similar(space, key))
    return f"nothing is stored at {key}{near or '; `holdfast events keys` lists all keys'}"


def _similar(space: "Space", key: str) -> list[str]:
    """Returns keys with the same beginning, or the first of all keys if there are none."""
    first, colon, _ = key.partition(":")
    for prefix in (first + colon if colon else key[:1], ""):
        page = space.events.keys(prefix, _MAX_COMPARED_KEYS)
        if page.keys:
            return [each.key for each in page.keys]
    return []
