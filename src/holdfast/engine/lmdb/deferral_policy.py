"""Decides which commits go to LMDB at once, and which are worth deferring."""

from typing import Final

_MAX_EARLY_VIEWS: Final = 4


class DeferralPolicy:
    """Learns from a program's commits and views whether deferring pays off."""

    def __init__(self, *, without_log: int) -> None:
        self._without_log = without_log  # commits left that go to LMDB at once
        self.viewed = False  # someone has opened a view since the last transaction began
        self._early_views = 0  # views in a row that came after a single commit

    def note_commits_before_view(self, commits: int) -> None:
        """Notes how many commits a view has forced into LMDB's file."""
        self._early_views = self._early_views + 1 if commits == 1 else 0

    def should_defer(self, *, is_log_prepared: bool, is_shared: bool) -> bool:
        """Returns whether to defer the next commit, if LMDB has all commits before it."""
        if self._without_log and not is_log_prepared:
            self._without_log -= 1  # a short program should not pay for creating a log
            return False
        if self._early_views >= _MAX_EARLY_VIEWS and not is_shared:
            # Where every commit is read at once, deferring it only costs time.
            if self.viewed:
                self.viewed = False
                return False
            self._early_views = 0
        return True
