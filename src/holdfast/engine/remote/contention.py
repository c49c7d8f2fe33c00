"""Remembers keys that other processes change at the same time, so that they are locked first.

Work that reads what others change often runs for nothing. After a conflict, the next work that
reads the same key or range does not guess. If the backend supports it, the work waits its turn for
these keys, or for the whole space; otherwise it reads them first. Other work of the space is not
affected. A process that finds the keys unchanged in two turns in a row guesses again.

Operations of one kind read the same keys. So the contended keys that the last one read are the
access pattern of its kind: the next one waits its turn for them, and fetches them before it runs.
"""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from holdfast.engine.remote.protocol import RangeRead
from holdfast.engine.remote.remembered_rows import Comparison
from holdfast.limits import CONTENDED_SECONDS

_MAX_HOT_KEYS: Final = 1_000  # of a process; beyond that old ones are forgotten, or all
_QUIET_TURNS: Final = (
    2  # turns in a row without a change by others, after which a key is not contended
)


_MAX_PATTERNS: Final = 1_000  # of a process; beyond that all are forgotten


class AccessPattern(NamedTuple):
    """The keys for which operations of a kind wait their turn, and the other keys and pages that
    they read then and others may have changed."""

    contended: frozenset[bytes]
    keys: list[bytes]
    pages: list[RangeRead]


class Contention:
    """The keys and starts of ranges that were recently in conflict."""

    def __init__(self) -> None:
        self._patterns: dict[tuple[bytes, str], AccessPattern] = {}  # by space and kind
        self._until: dict[bytes, float] = {}
        self._quiet: dict[bytes, int] = {}  # turns in a row in which a key was as it had been left

    def note(self, keys: Iterable[bytes]) -> None:
        now = time.monotonic()
        until = now + CONTENDED_SECONDS
        if len(self._until) > _MAX_HOT_KEYS:
            self._make_room(now)
        for key in keys:
            self._until[key] = until
            self._quiet.pop(key, None)

    def note_quiet(self, keys: Iterable[bytes]) -> None:
        """Notes that these contended keys were unchanged since this process last wrote them."""
        for key in keys:
            quiet = self._quiet.get(key, 0) + 1
            if quiet < _QUIET_TURNS:
                self._quiet[key] = quiet
            else:
                self._forget(key)

    def contended_among(self, keys: Iterable[bytes], pages: Iterable[RangeRead]) -> list[bytes]:
        """Returns those of these keys, and starts of ranges, for which conflicts are expected."""
        hot = self._until
        if not hot:
            return []
        now = time.monotonic()
        # A key may also be the start of a range, and other threads forget keys meanwhile.
        found = {key for key in (*keys, *(page.begin for page in pages)) if key in hot}
        for key in found:
            if hot.get(key, now) < now:
                self._forget(key)
        return [key for key in found if hot.get(key, 0.0) >= now]

    def note_turn(self, contended: Iterable[bytes], found: Comparison) -> None:
        """Notes what was found in a turn at contended keys: those that others changed meanwhile
        stay contended."""
        self.note(key for key in found.changed if key in contended)
        self.note_quiet(key for key in found.same if key in contended)

    def learn_pattern(
        self,
        space: bytes,
        kind: str,
        contended: Iterable[bytes],
        keys: Iterable[bytes],
        pages: Iterable[RangeRead],
        found: Comparison,
    ) -> None:
        """Notes what an operation of this kind has read in its turn at contended keys."""
        if len(self._patterns) >= _MAX_PATTERNS:
            self._patterns = {}
        contended, same = frozenset(contended), frozenset(found.same)
        changed = contended.union(found.changed)
        self._patterns[space, kind] = AccessPattern(
            contended,
            [key for key in keys if key in changed],
            [page for page in pages if page.begin in contended or page.begin not in same],
        )

    def pattern(self, space: bytes, kind: str) -> AccessPattern | None:
        """Returns the pattern of a kind, as long as any of its keys is contended."""
        pattern = self._patterns.get((space, kind))
        if pattern is None:
            return None
        contended = self.contended_among(pattern.contended, ())
        if len(contended) == len(pattern.contended):
            return pattern
        return self._keep_pattern(space, kind, pattern._replace(contended=frozenset(contended)))

    def narrow_pattern(
        self,
        space: bytes,
        kind: str,
        contended: Iterable[bytes],
        keys: Iterable[bytes],
        pages: Iterable[RangeRead],
    ) -> None:
        """Removes from a pattern what an operation of this kind has not read this time: that
        belonged to one call, such as the key of the job that it completed."""
        pattern = self._patterns.get((space, kind))
        if pattern is None:
            return
        read, begins = frozenset(keys), {page.begin for page in pages}
        narrowed = AccessPattern(
            pattern.contended.intersection(contended),
            [key for key in pattern.keys if key in read],
            [page for page in pattern.pages if page.begin in begins],
        )
        self._keep_pattern(space, kind, narrowed)

    def _keep_pattern(
        self, space: bytes, kind: str, pattern: AccessPattern
    ) -> AccessPattern | None:
        if not pattern.contended:
            self.forget_pattern(space, kind)
            return None
        self._patterns[space, kind] = pattern
        return pattern

    def forget_pattern(self, space: bytes, kind: str) -> None:
        self._patterns.pop((space, kind), None)

    def _make_room(self, now: float) -> None:
        """Forgets the keys whose time is over, or all keys if few are over."""
        left = {key: until for key, until in self._until.items() if until >= now}
        self._until = left if len(left) < _MAX_HOT_KEYS // 2 else {}
        self._quiet = {key: turns for key, turns in self._quiet.items() if key in self._until}

    def _forget(self, key: bytes) -> None:
        self._until.pop(key, None)
        self._quiet.pop(key, None)
