"""The hub that follows an engine's log of notices."""

import threading

import pytest

from holdfast.engine.contract import Notice
from holdfast.engine.notices import NoticeHub
from holdfast.limits import MAX_QUEUED_NOTICES


class ListLog:
    """A log that keeps the notices of the last `kept` commits."""

    def __init__(self, kept: int) -> None:
        self.commits: list[list[Notice]] = []
        self.kept = kept

    def newest_notice(self) -> int:
        return len(self.commits)

    def notices_since(self, commit: int) -> tuple[int, int, list[Notice]]:
        oldest = max(0, len(self.commits) - self.kept)
        fresh = self.commits[max(commit, oldest) :]
        return len(self.commits), max(0, oldest - commit), [n for ns in fresh for n in ns]


def test_a_subscriber_that_was_too_slow_learns_how_much_it_missed() -> None:
    log = ListLog(kept=3)
    hub = NoticeHub(log)

    with hub.subscribe(lambda notice: True) as subscription:
        with hub._lock:  # the hub looks away
            log.commits += [[Notice("n", b"%d" % number)] for number in range(10)]
        notices = subscription.poll()

    assert [notice.payload for notice in notices] == [b"7", b"8", b"9"]
    assert subscription.missed == 7


def test_an_unread_subscription_drops_its_oldest_notices_and_counts_them() -> None:
    log = ListLog(kept=1)
    hub = NoticeHub(log)

    with hub.subscribe(lambda notice: True) as subscription:
        log.commits.append([Notice("n")] * (MAX_QUEUED_NOTICES + 5))

        assert len(subscription.poll()) == MAX_QUEUED_NOTICES
        assert subscription.missed == 5


def test_a_subscription_can_be_read_in_a_loop_until_it_is_closed() -> None:
    log = ListLog(kept=9)
    hub = NoticeHub(log)
    subscription = hub.subscribe(lambda notice: notice.topic == "mine")
    log.commits.append([Notice("mine", b"1"), Notice("theirs"), Notice("mine", b"2")])
    seen = []

    for notice in subscription:
        seen.append(notice.payload)
        if len(seen) == 2:
            subscription.close()

    assert seen == [b"1", b"2"]


def test_a_log_that_fails_in_any_way_is_read_again(caplog: pytest.LogCaptureFixture) -> None:
    """The thread ended, and notices of other processes never came again."""

    class FailingLog(ListLog):
        failures = 3

        def notices_since(self, commit: int) -> tuple[int, int, list[Notice]]:
            if self.failures and threading.current_thread().name == "holdfast-notices":
                self.failures -= 1
                raise ValueError("nonsense")
            return super().notices_since(commit)

    log = FailingLog(kept=9)
    hub = NoticeHub(log, poll_seconds=0.001)
    subscription = hub.subscribe(lambda notice: True)
    log.commits.append([Notice("n", b"heard")])

    assert subscription.get(timeout=10) == Notice("n", b"heard")
    assert log.failures == 0
    assert len(caplog.messages) == 1  # not one for each try
    hub.close()
