"""Remembers keys that other processes change at the same time, so that they are locked first.

Work that reads what others change is run in vain as often as not. After such a conflict, the next
work that reads the same key or range does not guess: it waits its turn for these, or for its whole
space, as the backend can, and else it is read first. Other work of the space goes on as ever. A
process that has had its turn and found all as it had left it twice in a row guesses again.

Works of one kind read alike. So what the last one read of contended keys is noted as the habit of
its kind: the next one waits its turn and fetches these before it runs at all.
"""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from holdfast.engine.remote.protocol import RangeRead
from holdfast.engine.remote.remembered_rows import Compared
from holdfast.limits import CONTENDED_SECONDS

_MAX_HOT_KEYS: Final = 1_000  # of a process; beyond that old ones are forgotten, or all
_QUIET_TURNS: Final = 2  # in a row, in which nobody else has changed a key: it is contended no more


_MAX_HABITS: Final = 1_000  # of a process; beyond that all are forgotten


class Habit(NamedTuple):
    """The keys for which works of a kind wait their turn, and what they read then that others may
    have changed."""

    contended: frozenset[bytes]
    keys: list[bytes]
    pages: list[RangeRead]


class Contention:
    """The keys and starts of ranges that were recently in conflict."""

    def __init__(self) -> None:
        self._habits: dict[tuple[bytes, str], Habit] = {}  # by space and kind
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

    def note_turn(self, contended: Iterable[bytes], found: Compared) -> None:
        """Notes what was found in a turn at contended keys: those that others changed meanwhile
        stay contended."""
        self.note(key for key in found.changed if key in contended)
        self.note_quiet(key for key in found.same if key in contended)

    def learn_habit(
        self,
        space: bytes,
        kind: str,
        contended: Iterable[bytes],
        keys: Iterable[bytes],
        pages: Iterable[RangeRead],
        found: Compared,
    ) -> None:
        """Notes what a work of this kind has read in its turn at contended keys."""
        if len(self._habits) >= _MAX_HABITS:
            self._habits = {}
        contended, same = frozenset(contended), frozenset(found.same)
        changed = contended.union(found.changed)
        self._habits[space, kind] = Habit(
            contended,
            [key for key in keys if key in changed],
            [page for page in pages if page.begin in contended or page.begin not in same],
        )

    def habit(self, space: bytes, kind: str) -> Habit | None:
        """Returns the habit of a kind, as long as any of its keys is contended."""
        habit = self._habits.get((space, kind))
        if habit is None:
            return None
        contended = self.contended_among(habit.contended, ())
        if len(contended) == len(habit.contended):
            return habit
        return self._keep_habit(space, kind, habit._replace(contended=frozenset(contended)))

    def narrow_habit(
        self,
        space: bytes,
        kind: str,
        contended: Iterable[bytes],
        keys: Iterable[bytes],
        pages: Iterable[RangeRead],
    ) -> None:
        """Leaves of a habit what a work of this kind has read this time: the rest belonged to one
        work, such as the key of the job that it completed."""
        habit = self._habits.get((space, kind))
        if habit is None:
            return
        read, begins = frozenset(keys), {page.begin for page in pages}
        narrowed = Habit(
            habit.contended.intersection(contended),
            [key for key in habit.keys if key in read],
            [page for page in habit.pages if page.begin in begins],
        )
        self._keep_habit(space, kind, narrowed)

    def _keep_habit(self, space: bytes, kind: str, habit: Habit) -> Habit | None:
        if not habit.contended:
            self.forget_habit(space, kind)
            return None
        self._habits[space, kind] = habit
        return habit

    def forget_habit(self, space: bytes, kind: str) -> None:
        self._habits.pop((space, kind), None)

    def _make_room(self, now: float) -> None:
        """Forgets the keys whose time is over; all, if these are few."""
        left = {key: until for key, until in self._until.items() if until >= now}
        self._until = left if len(left) < _MAX_HOT_KEYS // 2 else {}
        self._quiet = {key: turns for key, turns in self._quiet.items() if key in self._until}

    def _forget(self, key: bytes) -> None:
        self._until.pop(key, None)
        self._quiet.pop(key, None)
