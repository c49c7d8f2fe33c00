"""The read cache of a transaction: what it has read from a snapshot, and what a commit must check.

Fetching is not reading: a page holds more rows than a scan walks, and only rows that were walked
can make a transaction conflict. Fetched ranges are known completely, so later reads of them are
answered from here, also for keys that do not exist.

A round trip costs more than the work of most transactions. Therefore work is first run *guessing*:
a read of something unknown is noted, and answered with what this process saw there last, or with
nothing (remembered_rows.py). If it writes, it is committed on the condition that all guesses were
right; if they were not, or if it only reads, all of it is fetched at once and the work runs again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn, TypeVar, cast

from holdfast.engine.remote.protocol import (
    BackendSession,
    ChangesSession,
    Conflicted,
    ConnectionLost,
    RangeRead,
    Refreshed,
    RemoteChanges,
    Row,
    WalkedRange,
)
from holdfast.engine.remote.remembered_rows import Comparison, RememberedRows, covered
from holdfast.limits import MAX_GUESSED_READS, MAX_VIEW_CACHE_BYTES

T = TypeVar("T")
Pair = tuple[bytes, bytes]
Rows = dict[bytes, Row | None]

_UNKNOWN: Final = object()
NO_ROWS: Final[Rows] = {}  # never changed, only replaced
_FIRST_PAGE_ROWS: Final = 64
_MAX_PAGE_ROWS: Final = 2_048
_MIN_NAME_BYTES: Final = 8  # a shorter value is not taken for the name of another row
_MAX_FOLLOWED_ROWS: Final = 8  # of a scan
_MAX_FOLLOWS: Final = 100  # of a space
_PAGE_BYTES: Final = 4 * 1024 * 1024  # a page should not exceed it by much, once sizes are known


class GuessingEnded(BaseException):
    """A run on guesses ends early: it reads too much, its guesses were wrong, or it needs a second
    fetch and may have only one. What it tried to read is fetched, and the work runs again."""


class ReadCache:
    """A reader of stored keys on a session."""

    # The initial values: most transactions change none of these.
    fetches = 0
    first: Rows  # the rows of the first fetch that were read by their keys
    lost: Conflicted | ConnectionLost | None = None  # why the session can't continue
    is_unbounded = False  # whether the run on guesses was cut short
    _known_bytes = 0
    _row_bytes = 0  # the size of a row in the last page
    _guessing = False
    _guard: tuple[bytes, Callable[[Any], None], Any] | None = None

    def __init__(
        self,
        session: BackendSession,
        space: bytes,
        now: float,
        memory: RememberedRows | None = None,
        *,
        prefetch_hints: Rows | None = None,
        at_once: bool = False,
    ) -> None:
        self.session = session
        self.space = space
        self.now = now
        self.first = NO_ROWS
        # Of a view, which commits nothing: rows that told earlier views what to read next.
        self._prefetch_hints = prefetch_hints
        self._told = NO_ROWS  # those that the run of a view has been told
        self._at_once = at_once  # whether it may have only one fetch
        self._rows: dict[bytes, Row | None] = {}
        self._keys: list[bytes] = []  # of all rows within the known spans, in order
        self._begins: list[bytes] = []  # the known spans, disjoint and in order
        self._ends: list[bytes] = []
        self._read: Rows = {}  # each key that was read, and the answer
        self._walked: list[list[bytes]] = []
        self._asked: dict[RangeRead, None] = {}  # all scans of a run on guesses
        self._missed_keys: dict[bytes, None] = {}
        self._missed_pages: dict[RangeRead, None] = {}
        self._memory = memory = RememberedRows() if memory is None else memory
        self.place = memory.place  # of all guesses, and of what a refused commit brought

    # --- runs ------------------------------------------------------------------------------------

    def begin_run(self, *, guessing: bool) -> None:
        """Forgets what was read, but not what was fetched."""
        self._guessing = guessing
        if not (self._read or self._missed_keys or self._asked or self._walked):
            return  # it is the first run
        self._read = {}
        self._walked = []
        self._asked = {}
        self._missed_keys, self._missed_pages = {}, {}
        self._told = NO_ROWS
        self.is_unbounded = False

    def begin_end(self) -> None:
        """Fetches what is unknown from here on; what was read stays."""
        self._guessing = False

    @property
    def guessing(self) -> bool:
        return self._guessing

    @property
    def guessed(self) -> bool:
        """Returns whether the current run was given any guess."""
        return bool(self._missed_keys or self._missed_pages)

    def fetch_missed(self) -> None:
        """Fetches everything that was guessed. Costs 1 round trip."""
        self._fetch(list(self._missed_keys), self._with_named(self._missed_pages))

    def asked(self) -> tuple[list[bytes], list[RangeRead]]:
        """Returns everything that the run on guesses has tried to read, known before or not, and
        what it will probably read next."""
        return list(self._read), self._with_named(self._asked) if self._asked else []

    def _with_named(self, pages: Iterable[RangeRead]) -> list[RangeRead]:
        """Returns pages, and for those whose rows named other rows before: these too."""
        self._note_names()
        follows = self._memory.follows
        asked = list(pages)
        for page in pages if follows else ():
            if (prefix := follows.get(page.begin)) and not page.reverse:
                limit = min(page.limit, _MAX_FOLLOWED_ROWS)
                asked.append(page._replace(limit=limit, follow=prefix))
        return asked

    def _note_names(self) -> None:
        """Notes which scans of this run found the name of an unknown row that it read next."""
        if not self._missed_keys or not self._keys or not hasattr(self.session, "follows"):
            return
        for page in self._asked:
            for _, row in self._known(page.begin, page.end)[:_MAX_FOLLOWED_ROWS]:
                name = row.value
                for key in self._missed_keys if len(name) >= _MIN_NAME_BYTES else ():
                    if key.endswith(name) and len(self._memory.follows) < _MAX_FOLLOWS:
                        self._memory.follows[page.begin] = key[: -len(name)]

    def fetch_asked(self, session: BackendSession) -> Comparison:
        """Forgets what is known, and fetches everything that was requested from another session.
        Returns how that compares with what was remembered. Costs 1 round trip."""
        return self.fetch_first(session, *self.asked())

    def fetch_first(
        self, session: BackendSession, keys: list[bytes], pages: list[RangeRead]
    ) -> Comparison:
        """Like `fetch_asked`, for given keys and pages."""
        self._forget()
        self.session = session
        memory = self._memory
        changed: RemoteChanges | None = None
        if memory.place is not None and hasattr(session, "fetch_since"):
            fetch = cast(ChangesSession, session).fetch_since
            rows, contents, changed = self._ask(lambda: fetch(keys, pages, memory.place))
        else:
            rows, contents = self._ask(lambda: session.fetch(keys, pages))
        compared = memory.compare(keys, rows, pages, contents)
        if changed is not None:
            memory.move(session.place, changed)
        self._learn(keys, pages, rows, contents, session.place)
        self.place = session.place
        return compared

    def refresh(self, keys: list[bytes], pages: list[RangeRead], found: Refreshed) -> list[bytes]:
        """Replaces everything known by the answer to a refused commit. Returns the keys, and the
        starts of scans, that have changed since they were remembered."""
        changed = self._memory.compare(keys, found.rows, pages, found.contents).changed
        self._forget()
        self._memory.move(found.place, found.changed)
        self._learn(keys, pages, found.rows, found.contents, found.place)
        self.place = found.place
        return changed

    def guard(self, key: bytes, refuse: Callable[[Any], None], reader: Any) -> None:
        """Reads `key` with the first fetch, and calls `refuse` if it exists."""
        self._guard = (key, refuse, reader)

    # --- reading ---------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        row: Any = self._rows.get(key, _UNKNOWN)
        if row is _UNKNOWN:
            if not key:
                return None
            row = self._find(key)
        self._read[key] = row
        return None if row is None else row.value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._make_room()
        rows = self._rows
        unknown = [key for key in keys if key not in rows and key and not self._in_span(key)]
        if unknown and not self._guessing:
            self._fetch(unknown, [])
        elif unknown and self._prefetch_hints is not None:
            self._missed_keys.update(dict.fromkeys(unknown))
            if not all(key in self._prefetch_hints for key in unknown):
                self._end_guesses()
        return [self.get(key) for key in keys]

    def has_read(self, key: bytes) -> bool:
        return key in self._read

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[Pair]:
        if begin >= end or (limit is not None and limit <= 0):
            return iter(())
        if self._guessing:
            self._asked[RangeRead(begin, end, self._page_rows(limit, 0), reverse)] = None
        return self._backward(begin, end, limit) if reverse else self._forward(begin, end, limit)

    def _find(self, key: bytes) -> Row | None:
        """Returns a row that was not fetched yet: by a guess, or from the server."""
        if self._begins and self._in_span(key):
            return None
        if not self._guessing:
            self._make_room()
            self._fetch([key], [])
            return self._rows[key]
        missed = self._missed_keys
        missed[key] = None
        if len(missed) + len(self._missed_pages) > MAX_GUESSED_READS:
            self._read[key] = None
            self._end_unbounded()
        if self._prefetch_hints is None:
            return self._memory.rows.get(key)
        return self._find_hint(key, self._prefetch_hints)

    def _find_hint(self, key: bytes, prefetch_hints: Rows) -> Row | None:
        """Returns a row that led earlier views to others; at any other, all are fetched."""
        if key in self._told or key in prefetch_hints:
            # Other threads change the hints meanwhile: what counts is what this run was told.
            if self._told is NO_ROWS:
                self._told = {}
            return self._told.setdefault(key, prefetch_hints.get(key))
        self._end_guesses()
        return self._rows[key]

    def _forward(self, begin: bytes, end: bytes, limit: int | None) -> Iterator[Pair]:
        walked = [begin, begin]
        self._walked.append(walked)
        fetched = 0
        while begin < end:
            span = bisect_right(self._begins, begin) - 1
            if span < 0 or self._ends[span] <= begin:
                stop = self._begins[span + 1] if span + 1 < len(self._begins) else end
                page = RangeRead(begin, min(stop, end), self._page_rows(limit, fetched))
                if not self._guessing:
                    self._make_room()
                    self._fetch([], [page])
                    fetched += page.limit
                    continue
                self._miss(page)
                if not self._guessing:
                    continue
                stop = page.end
                content = self._guess(begin, stop)
            else:
                stop = min(self._ends[span], end)
                content = self._known(begin, stop)
            for key, row in content:
                walked[1] = key + b"\0"
                yield key, row.value
                if limit is not None:
                    limit -= 1
                    if limit <= 0:
                        return
            walked[1] = begin = stop

    def _backward(self, begin: bytes, end: bytes, limit: int | None) -> Iterator[Pair]:
        walked = [end, end]
        self._walked.append(walked)
        fetched = 0
        while begin < end:
            span = bisect_left(self._begins, end) - 1
            if span < 0 or self._ends[span] < end:
                stop = self._ends[span] if span >= 0 else begin
                page = RangeRead(max(stop, begin), end, self._page_rows(limit, fetched), True)
                if not self._guessing:
                    self._make_room()
                    self._fetch([], [page])
                    fetched += page.limit
                    continue
                self._miss(page)
                if not self._guessing:
                    continue
                stop = page.begin
                content = self._guess(stop, end)
            else:
                stop = max(self._begins[span], begin)
                content = self._known(stop, end)
            for key, row in reversed(content):
                walked[0] = key
                yield key, row.value
                if limit is not None:
                    limit -= 1
                    if limit <= 0:
                        return
            walked[0] = end = stop

    def _known(self, begin: bytes, end: bytes) -> list[tuple[bytes, Row]]:
        """Returns the rows of a range that is completely known."""
        keys, rows = self._keys, self._rows
        inside = keys[bisect_left(keys, begin) : bisect_left(keys, end)]
        return [(key, rows[key]) for key in inside]  # type: ignore[misc]  # those of a span are there

    def _guess(self, begin: bytes, end: bytes) -> list[tuple[bytes, Row]]:
        """Returns the remembered rows of a range that is unknown."""
        rows, remembered = self._rows, self._memory.rows
        inside = [(k, rows.get(k, remembered[k])) for k in self._memory.between(begin, end)]
        return [(key, row) for key, row in inside if row is not None]

    def _miss(self, page: RangeRead) -> None:
        self._missed_pages[page] = None
        if len(self._missed_keys) + len(self._missed_pages) > MAX_GUESSED_READS:
            self._end_unbounded()
        if self._prefetch_hints is not None:
            self._end_guesses()

    def _end_guesses(self) -> None:
        """Fetches everything that a view has read so far, and the row that it can't guess. If its
        guesses were right, its run goes on with what was fetched; if not, it has to begin again."""
        self._guessing = False
        self.fetch_missed()
        if not self.guessed_right():
            raise GuessingEnded

    def guessed_right(self) -> bool:
        """Returns whether what was fetched is what the run of a view was told before."""
        for key, told in self._told.items():
            found = self._rows.get(key)
            if (told and told.value) != (found and found.value):
                return False
        return True

    def _end_unbounded(self) -> NoReturn:
        self.is_unbounded = True
        raise GuessingEnded

    def _in_span(self, key: bytes) -> bool:
        if not self._begins:
            return False
        span = bisect_right(self._begins, key) - 1
        return span >= 0 and key < self._ends[span]

    def _page_rows(self, limit: int | None, fetched: int) -> int:
        """Returns how many rows to fetch: more each time, and fewer if they are large."""
        wanted = max(_FIRST_PAGE_ROWS, 4 * fetched)
        if limit is not None:
            wanted = limit if not fetched else min(wanted, limit)
        if self._row_bytes:
            wanted = min(wanted, max(1, _PAGE_BYTES // self._row_bytes))
        return max(1, min(wanted, _MAX_PAGE_ROWS))

    # --- fetching --------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Lets a view forget what it has read, once that is too much: it may read a whole store."""
        if self._prefetch_hints is not None and self._known_bytes > MAX_VIEW_CACHE_BYTES:
            self._read, self._walked = {}, []
            self._forget()

    def _forget(self) -> None:
        self._rows, self._keys, self._begins, self._ends = {}, [], [], []
        self._known_bytes = 0

    def _fetch(self, keys: list[bytes], pages: list[RangeRead]) -> None:
        if self._at_once and self.fetches:
            raise GuessingEnded
        guard = self._guard
        if guard is not None:
            keys = [*keys, guard[0]]
        rows, contents = self._ask(lambda: self.session.fetch(keys, pages))
        if self.fetches == 1:
            self.first = dict(zip(keys, rows, strict=True))
        self._learn(keys, pages, rows, contents, self.session.place)
        if guard is not None:
            self._guard = None
            if rows[-1] is not None:
                guard[1](guard[2])

    def _ask(self, fetch: Callable[[], T]) -> T:
        try:
            found = fetch()
        except (Conflicted, ConnectionLost) as error:
            self.lost = error
            raise
        self.fetches += 1
        return found

    def _learn(
        self,
        keys: list[bytes],
        pages: list[RangeRead],
        rows: list[Row | None],
        contents: list[list[tuple[bytes, Row]]],
        place: Any,
    ) -> None:
        for key, row in zip(keys, rows, strict=True):
            self._rows[key] = row
            self._known_bytes += len(key) if row is None else len(key) + len(row.value)
        for page, content in zip(pages, contents, strict=True):
            if page.follow:
                self._rows.update(content)
            else:
                self._add_page(page, content)
        if self._prefetch_hints is None:
            self._memory.learn(keys, rows, pages, contents, place)

    def _add_page(self, page: RangeRead, content: list[tuple[bytes, Row]]) -> None:
        begin, end = covered(page, content)
        if content:
            value_bytes = sum(len(row.value) for _, row in content)
            self._row_bytes = value_bytes // len(content)
            self._known_bytes += value_bytes + sum(len(key) for key, _ in content)
        if page.reverse:
            content = content[::-1]
        # Pages that were missed in one run on guesses may overlap: what is known already stays.
        for gap_begin, gap_end in self._gaps(begin, end):
            inside = [(key, row) for key, row in content if gap_begin <= key < gap_end]
            self._rows.update(inside)
            place = bisect_left(self._keys, gap_begin)
            self._keys[place:place] = [key for key, _ in inside]
            self._add_span(gap_begin, gap_end)

    def _gaps(self, begin: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        """Returns the parts of a range that are not known yet."""
        gaps = []
        span = max(0, bisect_right(self._begins, begin) - 1)
        while begin < end and span < len(self._begins) and self._begins[span] < end:
            if self._begins[span] > begin:
                gaps.append((begin, self._begins[span]))
            begin = max(begin, self._ends[span])
            span += 1
        if begin < end:
            gaps.append((begin, end))
        return gaps

    def _add_span(self, begin: bytes, end: bytes) -> None:
        """Adds a range, of which nothing was known, and joins it with adjacent spans."""
        place = bisect_left(self._begins, begin)
        first = last = place
        if place > 0 and self._ends[place - 1] == begin:
            first, begin = place - 1, self._begins[place - 1]
        if place < len(self._begins) and self._begins[place] == end:
            last, end = place + 1, self._ends[place]
        self._begins[first:last] = [begin]
        self._ends[first:last] = [end]

    # --- what was read ---------------------------------------------------------------------------

    def read_ranges(self) -> list[WalkedRange]:
        """Returns the ranges that were walked, joined, with the versions of their rows."""
        if not self._walked:
            return []
        joined: list[list[bytes]] = []
        for begin, end in sorted(self._walked):
            if begin >= end:
                continue
            if joined and begin <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([begin, end])
        return [WalkedRange(begin, end, self._versions(begin, end)) for begin, end in joined]

    def read_keys(self, ranges: list[WalkedRange]) -> dict[bytes, int]:
        """Returns the keys that were read outside of `ranges`, with their versions, or 0. One
        inside is among them too if a later fetch has found another row there."""
        read = self._read
        if ranges:
            begins = [walked.begin for walked in ranges]
            rows = self._rows
            read = {}
            for key, row in self._read.items():
                place = bisect_right(begins, key) - 1
                if place < 0 or key >= ranges[place].end or rows.get(key, row) is not row:
                    read[key] = row
        return {key: 0 if row is None else row.version for key, row in read.items()}

    def _versions(self, begin: bytes, end: bytes) -> list[int]:
        content = self._known(begin, end)
        if self._guessing and (gaps := self._gaps(begin, end)):
            for gap in gaps:
                content += self._guess(*gap)
            content.sort()
        return [row.version for _, row in content]
