"""Retention policies: which rows of a table stay, and for how long.

One entry of `POLICIES` defines a policy: the members that a schema must give it, what else the
schema must have, and what a put removes or expires. One entry of `MEMBERS` defines a member. The
rest of the layer uses a table's `Policy`, and knows no policy by name.

A policy is applied in the transaction of every put, to the record or hash key that was written.
Rows that already have an expiry are neither counted nor changed. Once the current policy has been
applied, a record has no more rows without expiry than the policy keeps, so the next put finds at
most one row too many and can stop there. Only a record that was last written under another policy
is read to its end, by as many puts as it takes: its newest row stores the generation of the policy
that was applied.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

import msgspec

from holdfast.error_text import did_you_mean, shown
from holdfast.errors import InvalidTableSchema
from holdfast.keys import prefix_range
from holdfast.limits import MAX_KEPT_REVISIONS
from holdfast.tables import durations
from holdfast.tables.durations import seconds_of
from holdfast.tables.row_codec import StoredRow
from holdfast.tables.versions import TICKS_PER_SECOND, bucket_of, version_attribute

if TYPE_CHECKING:  # both import this module
    from holdfast.tables.plan import Values
    from holdfast.tables.row_writer import RowWriter

Schema = dict[str, Any]


class PolicyMember(NamedTuple):
    """A member of a schema's policy besides its type: which numbers are valid, and its field."""

    field: str  # of `Policy`
    per_second: int = 0  # the field's units in a second, if it is a duration; else it is a count
    least: float | None = None
    above: float | None = None
    least_units: int = 0  # shorter durations are rounded up to it

    @property
    def is_duration(self) -> bool:
        return self.per_second > 0

    def converted(self, value: Any) -> int:
        """Returns a checked value in the units of its field."""
        if not self.is_duration:
            return int(value)
        return max(self.least_units, round(seconds_of(value) * self.per_second))


# In the order in which they are checked.
MEMBERS: Final[dict[str, PolicyMember]] = {
    "ttl": PolicyMember("ttl_ms", per_second=1000, above=0),
    "grace_ttl": PolicyMember("grace_ms", per_second=1000, least=0),
    "interval": PolicyMember("interval_ticks", per_second=TICKS_PER_SECOND, above=0, least_units=1),
    "count": PolicyMember("count"),
}


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of a table, in the units of the layer."""

    type: str = "all"
    count: int = 0
    interval_ticks: int = 0  # of 100 ns, as the time in a version is counted
    grace_ms: int = 0
    ttl_ms: int = 0

    @property
    def keeps_all(self) -> bool:
        """Returns whether the policy keeps all rows; only then may a put set its own `_ttl`."""
        return self._kind.keeps_all

    @property
    def sets_expiry(self) -> bool:
        """Returns whether every row expires `ttl_ms` after it was put."""
        return self._kind.sets_expiry

    @property
    def has_generations(self) -> bool:
        """Returns whether rows store the generation of the policy applied to their record."""
        return self._kind.has_generations

    def prune(self, writer: "RowWriter", key: bytes, values: "Values") -> None:
        """Expires or removes what the policy no longer keeps, after the row `key` was written."""
        if self._kind.prune is not None:
            self._kind.prune(self, writer, key, values)

    @property
    def _kind(self) -> "PolicyKind":
        return POLICIES[self.type]


class PolicyKind(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the layer needs to know about one type of policy."""

    needs: frozenset[str] = frozenset()  # members of the schema's policy
    least_count: int = 0
    keeps_all: bool = False
    sets_expiry: bool = False
    has_generations: bool = False
    check: Callable[[Schema], None] | None = None  # against the rest of the schema
    prune: Callable[[Policy, "RowWriter", bytes, "Values"], None] | None = None  # after a put


# --- in a schema ---------------------------------------------------------------------------------


def normalise_policy(policy: Any, before: Any) -> Any:
    """Returns the policy as it is stored, with durations as seconds.

    `before` is the stored policy: a number that was accepted once is accepted again.
    """
    if not isinstance(policy, Mapping):
        return policy
    found = dict(policy)
    for name in found:
        if name not in MEMBERS or not MEMBERS[name].is_duration:
            continue
        try:
            found[name] = durations.normalised(found[name])
        except ValueError as error:
            raise InvalidTableSchema(f"{name} must be a number of seconds: {error}") from None
    interval = found.get("interval")
    known = before.get("interval") if isinstance(before, Mapping) else None
    if _is_number(interval) and durations.is_ambiguous(interval) and interval != known:
        days = interval / 86_400
        raise InvalidTableSchema(
            f"interval must be a number of seconds, and {shown(interval)} seconds are {days:,.0f} "
            "days: which unit is meant?",
            hint=f'Name it: "{shown(interval)} ms" or "{shown(interval)} s".',
        )
    return found


def check_policy(schema: dict[str, Any]) -> None:
    """Raises unless the schema's policy is valid, by itself and with the rest of the schema."""
    policy = schema["revisionRetentionPolicy"]
    members = policy if isinstance(policy, Mapping) else {}
    for name in members:
        if name != "type" and name not in MEMBERS:
            raise InvalidTableSchema(
                f"Unknown revision policy attribute: {shown(name)}"
                f"{did_you_mean(name, sorted(['type', *MEMBERS]))}"
            )
    kind = members.get("type")
    found = POLICIES.get(kind) if isinstance(kind, str) else None
    if found is None:
        *others, last = POLICIES
        raise InvalidTableSchema(
            f"Invalid revision retention policy type: use {', '.join(others)} or {last}"
        )
    # A wrong member is reported before a missing one: it is the likelier mistake, and RESTBase
    # does the same.
    none: frozenset[str] = frozenset()
    for required in (none, found.needs):
        for name, member in MEMBERS.items():
            if name not in members and name not in required:
                continue
            if member.is_duration:
                _check_duration(name, members.get(name), member)
            else:
                _check_count(name, members.get(name), found.least_count)
    if found.check is not None:
        found.check(schema)
    if not found.keeps_all and schema["options"].get("default_time_to_live") is not None:
        raise InvalidTableSchema(
            "The option default_time_to_live can't be combined with a retention policy"
        )


def policy_of(schema: dict[str, Any]) -> Policy:
    """Returns the policy of a normalised schema; `latest` with count 0 is `ttl`."""
    stated = schema.get("revisionRetentionPolicy") or {"type": "all"}
    kind = stated["type"]
    if kind == "latest" and stated["count"] == 0:
        return Policy(type="ttl", ttl_ms=MEMBERS["grace_ttl"].converted(stated["grace_ttl"]))
    fields: dict[str, Any] = {
        member.field: member.converted(stated[name])
        for name, member in MEMBERS.items()
        if name in stated
    }
    return Policy(type=kind, **fields)


def effective_policy(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the members of a policy that have an effect, for comparing policies."""
    stated = schema.get("revisionRetentionPolicy") or {"type": "all"}
    needed = POLICIES[stated["type"]].needs
    return {
        name: seconds_of(value) if name != "type" and MEMBERS[name].is_duration else value
        for name, value in stated.items()
        if name == "type" or name in needed
    }


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _check_duration(name: str, value: Any, member: PolicyMember) -> None:
    # `normalise_policy` has checked the text.
    number = seconds_of(value) if isinstance(value, str) else value
    least, above = member.least, member.above
    fits = _is_number(number) and (
        number >= least if least is not None else above is None or number > above
    )
    if not fits:
        bound = f"at least {least}" if least is not None else f"above {above}"
        raise InvalidTableSchema(
            f"{name} must be a number of seconds, {bound}, not {shown(value)}",
            hint=f'Seconds, or a text with a unit such as "1 day": {durations.UNITS}.',
        )


def _check_count(name: str, value: Any, least: int) -> None:
    if not _is_number(value) or value != int(value) or value < least:
        raise InvalidTableSchema(
            f"{name} must be a number, an integer of at least {least}, not {shown(value)}"
        )
    if value > MAX_KEPT_REVISIONS:
        raise InvalidTableSchema(
            f"{name} must be a number of at most {MAX_KEPT_REVISIONS}, not {shown(value)}",
            hint='To keep more, use the policies "all" or "ttl".',
        )


def _check_interval(schema: Schema) -> None:
    if version_attribute(schema) is None:
        raise InvalidTableSchema(
            "The policy interval needs a version attribute: a last range of type timeuuid, desc"
        )


def _check_latest_hash(schema: Schema) -> None:
    if schema.get("secondaryIndexes"):
        raise InvalidTableSchema("The policy latest_hash is not supported with secondary indexes")
    ranges = [element for element in schema["index"] if element["type"] == "range"]
    if len(ranges) - (version_attribute(schema) is not None) < 1:
        raise InvalidTableSchema(
            "The policy latest_hash needs a range element beside the version attribute"
        )


# --- after a put ---------------------------------------------------------------------------------


def _keep_latest(policy: Policy, writer: "RowWriter", key: bytes, values: "Values") -> None:
    if writer.plan.version is not None:
        _keep_newest(policy, writer, key, *prefix_range(writer.record_of(key)))


def _keep_latest_of_interval(
    policy: Policy, writer: "RowWriter", key: bytes, values: "Values"
) -> None:
    record = writer.record_of(key)
    version = writer.plan.primary.ranges[-1]
    component = version.component
    first, last = bucket_of(values[version.attribute.id], policy.interval_ticks)
    # Versions are in descending order, so the last of the interval comes first.
    begin, end = record + component(last), prefix_range(record + component(first))[1]
    _keep_newest(policy, writer, key, begin, end)


def _keep_first_of_hash(policy: Policy, writer: "RowWriter", key: bytes, values: "Values") -> None:
    begin, end = prefix_range(writer.hash_prefix(values))
    room = writer.prune_room
    rows: list[tuple[bytes, StoredRow]] = []
    for row_key, row in writer.rows_between(begin, end):
        if not row.expires_ms:
            rows.append((row_key, row))
        else:
            room.expiring -= 1
        # A put adds one row, so it may always remove one. The next put goes on.
        if len(rows) > max(1, room.rows) or (row.expires_ms and room.expiring < 0):
            break
    room.rows -= len(rows[1:])
    writer.remove(rows[1:])


def _keep_newest(
    policy: Policy, writer: "RowWriter", written: bytes, begin: bytes, end: bytes
) -> None:
    """Keeps the newest `count` rows without expiry of a range that begins with the newest.

    After a change of the policy there may be very many others. One put prunes some, and leaves the
    record as one that the policy was not yet applied to.
    """
    generation = writer.plan.record.policy_generation
    room = writer.prune_room
    kept = 0
    is_cut = False
    marked: list[tuple[bytes, StoredRow]] = []  # those of the generation, to be marked otherwise
    superfluous: list[tuple[bytes, StoredRow]] = []
    is_applied: bool | None = None  # unknown until a row other than the one just written is seen
    newest: tuple[bytes, StoredRow] | None = None
    for key, row in writer.rows_between(begin, end):
        if row.expires_ms:
            room.expiring -= not is_applied
            is_cut = not is_applied and room.expiring < 0
            if is_cut:
                break
            continue
        newest = newest or (key, row)
        if is_applied is None and key != written:
            is_applied = row.generation == generation
        if kept < policy.count:
            kept += 1
            if row.generation == generation:
                marked.append((key, row))
            if kept == policy.count and is_applied and key < written:
                # The row just written is the only other one: those between them expire.
                superfluous += writer.without_expiry(written)
                break
            continue
        is_cut = not is_applied and room.rows <= 0
        if is_cut:
            break
        superfluous.append((key, row))
        if is_applied:
            break
        room.rows -= 1
    _expire(policy, writer, superfluous)
    if is_cut:
        for key, row in marked:
            writer.store_generation(key, row, 0)
    elif generation and not is_applied and newest is not None and newest[0] != written:
        writer.store_generation(*newest, generation)


def _expire(policy: Policy, writer: "RowWriter", rows: list[tuple[bytes, StoredRow]]) -> None:
    if not policy.grace_ms:
        writer.remove(rows)
        return
    expires_ms = writer.now_ms + policy.grace_ms
    for key, row in rows:
        writer.expire(key, row, expires_ms)


POLICIES: Final[dict[str, PolicyKind]] = {
    "all": PolicyKind(keeps_all=True),
    "latest": PolicyKind(
        needs=frozenset({"count", "grace_ttl"}), has_generations=True, prune=_keep_latest
    ),
    "interval": PolicyKind(
        needs=frozenset({"count", "interval", "grace_ttl"}),
        least_count=1,
        has_generations=True,
        check=_check_interval,
        prune=_keep_latest_of_interval,
    ),
    "ttl": PolicyKind(needs=frozenset({"ttl"}), sets_expiry=True),
    "latest_hash": PolicyKind(check=_check_latest_hash, prune=_keep_first_of_hash),
}
