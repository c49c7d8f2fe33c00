"""Tests that large work in threads leaves the event loop its share of the interpreter."""

import threading
from pathlib import Path

import pytest

import holdfast
from holdfast.limits import LARGE_READ_PAUSE_SECONDS, MAX_READ_ON_LOOP_BYTES
from holdfast.server.pacing import Pacer, pause, pause_between_reads
from holdfast.store import short_view


class _Time:
    """A clock that goes on only while somebody works or sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        if seconds:
            self.slept.append(round(seconds, 6))
        self.now += seconds

    def work(self, seconds: float) -> None:
        self.now += seconds

    def pacer(self) -> Pacer:
        return Pacer(lambda: self.now, self.sleep)


def test_large_work_leaves_as_much_time_as_it_takes() -> None:
    time = _Time()
    pacer = time.pacer()

    for took in (0.008, 0.5, 0.001):
        pacer.paced(lambda took=took: time.work(took))()  # type: ignore[misc]  # mypy can't infer it

    assert time.slept == [0.008, LARGE_READ_PAUSE_SECONDS]


def test_large_work_pauses_between_its_calls() -> None:
    time = _Time()

    def work() -> None:
        for took in (0.002, 0.002, 0.002, 0.5):
            time.work(took)
            pause()

    time.pacer().paced(work)()

    assert time.slept == [0.006, LARGE_READ_PAUSE_SECONDS]


def test_a_pause_does_nothing_outside_of_large_work() -> None:
    time = _Time()
    time.pacer().paced(lambda: time.work(0.5))()

    pause()

    assert time.slept == []


def test_work_that_fails_lets_the_next_one_begin() -> None:
    pacer = _Time().pacer()

    def fail() -> None:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        pacer.paced(fail)()

    assert pacer.paced(lambda: "done")() == "done"


def test_another_threads_work_has_its_turn_in_a_pause() -> None:
    pacer = Pacer(sleep=lambda seconds: None)
    order: list[str] = []
    has_begun, is_done = threading.Event(), threading.Event()

    def long_work() -> None:
        order.append("long work begins")
        has_begun.set()
        while not is_done.is_set():
            pause()
        order.append("long work ends")

    def other_work() -> None:
        order.append("other work")

    long_one = threading.Thread(target=pacer.paced(long_work))
    long_one.start()
    has_begun.wait()
    pacer.paced(other_work)()
    is_done.set()
    long_one.join()

    assert order == ["long work begins", "other work", "long work ends"]


def test_a_large_read_in_a_thread_pauses_and_reads_everything(tmp_path: Path) -> None:
    time = _Time()
    with holdfast.open(tmp_path) as store:
        for number in range(4):
            store.jobs.put("large", id=f"{number}", data="x" * (MAX_READ_ON_LOOP_BYTES + 1))

        def read() -> int:
            with short_view(store.space("default")) as view:
                pause_between_reads(view.raw)
                found = 0
                for number in range(4):
                    time.work(0.01)
                    job = view.jobs.get(f"{number}")
                    found += 0 if job is None else len(job.data)
                return found

        read_bytes = time.pacer().paced(read)()

    assert read_bytes == 4 * (MAX_READ_ON_LOOP_BYTES + 1)
    assert time.slept == [0.01] * 4
