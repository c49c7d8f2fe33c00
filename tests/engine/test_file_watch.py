"""The watch on a file that other processes write to."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine.file_watch import FileWatch
from holdfast.engine.notices import NoticeHub
from tests.engine.test_notices import ListLog

LONG = 60.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"0")
    return path


@pytest.fixture
def watch(file: Path) -> Iterator[FileWatch]:
    made = FileWatch.of(file)
    assert made is not None
    yield made
    made.close()


def write(path: Path) -> None:
    number = os.open(path, os.O_WRONLY)
    os.pwrite(number, b"1", 0)
    os.close(number)


def test_a_write_ends_a_wait_once(watch: FileWatch, file: Path) -> None:
    write(file)
    write(file)

    assert watch.wait(LONG)
    assert not watch.wait(0)


def test_a_wait_may_leave_writes_for_the_next_one(watch: FileWatch, file: Path) -> None:
    write(file)

    assert not watch.wait(0, for_writes=False)
    assert watch.wait(LONG)


def test_a_wait_is_ended_by_a_word_of_the_same_process(watch: FileWatch) -> None:
    watch.wake()
    watch.wake()

    assert not watch.wait(LONG)


def test_an_event_loop_may_wait_in_place_of_a_thread(watch: FileWatch, file: Path) -> None:
    write(file)
    told = select.select([watch], [], [], LONG)[0]
    watch.forget()
    watch.forget()

    assert told == [watch]
    assert select.select([watch], [], [], 0)[0] == []


def test_a_closed_watch_touches_no_file(file: Path) -> None:
    watch = FileWatch.of(file)
    assert watch is not None
    watch.close()
    watch.close()

    watch.wake()

    assert not watch.wait(LONG)


def test_a_file_that_does_not_exist_has_no_watch(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    assert FileWatch.of(tmp_path / "none") is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_hub_closes_its_watch(file: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    hub = NoticeHub(ListLog(kept=1), watched=(file,))
    subscription = hub.subscribe(lambda notice: True)
    subscription.close()

    hub.close()

    assert len(os.listdir("/proc/self/fd")) == before
