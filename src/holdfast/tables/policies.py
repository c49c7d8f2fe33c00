"""The five retention policies of a schema: which rows of a table stay, and for how long."""

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

import msgspec

from holdfast.error_text import did_you_mean, shown
from holdfast.errors import InvalidTableSchema
from holdfast.tables import durations
from holdfast.tables.durations import seconds_of
from holdfast.tables.versions import version_attribute

_MEMBERS: Final = {"type", "count", "interval", "grace_ttl", "ttl"}
_DURATIONS: Final = {"interval", "grace_ttl", "ttl"}


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy in the units that the layer works in."""

    type: str = "all"
    count: int = 0
    interval_ticks: int = 0  # of 100 ns, as the time in a version is counted
    grace_ms: int = 0
    ttl_ms: int = 0


def normalise_policy(policy: Any, before: Any) -> Any:
    """The policy as it is stored, with durations as seconds. `before` is what is stored now: a
    number that was taken once is not doubted."""
    if not isinstance(policy, Mapping):
        return policy
    found = dict(policy)
    for name in _DURATIONS & found.keys():
        try:
            found[name] = durations.normalised(found[name])
        except ValueError as error:
            raise InvalidTableSchema(f"{name} must be a number of seconds: {error}") from None
    interval = found.get("interval")
    known = before.get("interval") if isinstance(before, Mapping) else None
    if _is_number(interval) and durations.is_doubtful(interval) and interval != known:
        days = interval / 86_400
        raise InvalidTableSchema(
            f"interval must be a number of seconds, and {shown(interval)} seconds are {days:,.0f} "
            "days: which unit is meant?",
            hint=f'Name it: "{shown(interval)} ms" or "{shown(interval)} s".',
        )
    return found


def check_policy(schema: dict[str, Any]) -> None:
    """Raises unless the schema's policy is valid, alone and with the rest of the schema."""
    policy = schema["revisionRetentionPolicy"]
    members = policy if isinstance(policy, Mapping) else {}
    for name in members:
        if name not in _MEMBERS:
            raise InvalidTableSchema(
                f"Unknown revision policy attribute: {shown(name)}"
                f"{did_you_mean(name, sorted(_MEMBERS))}"
            )
    kind = members.get("type")
    if not isinstance(kind, str) or kind not in _CHECKS:
        raise InvalidTableSchema(
            "Invalid revision retention policy type: use all, latest, interval, ttl or latest_hash"
        )
    needed, least_count = _CHECKS[kind]
    # What is there and wrong is named before what is missing: it is the likelier mistake, and what
    # the originals complain about.
    none: set[str] = set()
    for required in (none, needed):
        _check_number(members, "ttl", required, above=0)
        _check_number(members, "grace_ttl", required, least=0)
        _check_number(members, "interval", required, above=0)
        _check_count(members, required, least_count)
    _check_with_schema(kind, schema)


# The members that each type needs, and the least `count` it takes.
_CHECKS: Final[dict[str, tuple[set[str], int]]] = {
    "all": (set(), 0),
    "latest": ({"count", "grace_ttl"}, 0),
    "interval": ({"count", "interval", "grace_ttl"}, 1),
    "ttl": ({"ttl"}, 0),
    "latest_hash": (set(), 0),
}


def policy_of(schema: dict[str, Any]) -> Policy:
    """The policy of a normalised schema; `latest` with count 0 is `ttl`."""
    stated = schema.get("revisionRetentionPolicy") or {"type": "all"}
    kind = stated["type"]
    if kind == "latest" and stated["count"] == 0:
        return Policy(type="ttl", ttl_ms=_milliseconds(stated["grace_ttl"]))
    return Policy(
        type=kind,
        count=int(stated.get("count", 0)),
        interval_ticks=max(1, round(seconds_of(stated.get("interval", 0)) * 10_000_000)),
        grace_ms=_milliseconds(stated.get("grace_ttl", 0)),
        ttl_ms=_milliseconds(stated.get("ttl", 0)),
    )


def effective_policy(schema: dict[str, Any]) -> dict[str, Any]:
    """The members of a policy that have an effect: equal for policies that are."""
    stated = schema.get("revisionRetentionPolicy") or {"type": "all"}
    needed, _ = _CHECKS[stated["type"]]
    return {
        name: seconds_of(value) if name in _DURATIONS else value
        for name, value in stated.items()
        if name == "type" or name in needed
    }


def _milliseconds(duration: float | str) -> int:
    return round(seconds_of(duration) * 1000)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _check_number(
    policy: Mapping[str, Any],
    name: str,
    needed: set[str],
    *,
    least: float | None = None,
    above: float | None = None,
) -> None:
    if name not in policy and name not in needed:
        return
    value = policy.get(name)
    number = seconds_of(value) if isinstance(value, str) else value  # a text was read before
    fits = _is_number(number) and (
        number >= least if least is not None else above is None or number > above
    )
    if not fits:
        bound = f"at least {least}" if least is not None else f"above {above}"
        raise InvalidTableSchema(
            f"{name} must be a number of seconds, {bound}, not {shown(value)}",
            hint=f'Seconds, or a text with a unit such as "1 day": {durations.UNITS}.',
        )


def _check_count(policy: Mapping[str, Any], needed: set[str], least: int) -> None:
    if "count" not in policy and "count" not in needed:
        return
    value = policy.get("count")
    if not _is_number(value) or value != int(value) or value < least:
        raise InvalidTableSchema(
            f"count must be a number, an integer of at least {least}, not {shown(value)}"
        )


def _check_with_schema(kind: str, schema: dict[str, Any]) -> None:
    ranges = [element for element in schema["index"] if element["type"] == "range"]
    versioned = version_attribute(schema) is not None
    if kind == "interval" and not versioned:
        raise InvalidTableSchema(
            "The policy interval needs a version attribute: a last range of type timeuuid, desc"
        )
    if kind == "latest_hash" and schema.get("secondaryIndexes"):
        raise InvalidTableSchema("The policy latest_hash is not supported with secondary indexes")
    if kind == "latest_hash" and len(ranges) - versioned < 1:
        raise InvalidTableSchema(
            "The policy latest_hash needs a range element beside the version attribute"
        )
    if kind != "all" and schema["options"].get("default_time_to_live") is not None:
        raise InvalidTableSchema(
            "The option default_time_to_live can't be combined with a retention policy"
        )
