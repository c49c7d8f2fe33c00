"""Clients in processes of their own that write without end, and the proof of what they were told.

Each transaction reads and writes a number that others of its space change too, notes who it was at
that number, and counts how often it was applied. So a loss, a transaction that was applied twice
and one that did not see its predecessor all leave a trace.
"""

import itertools
import threading
import time
from functools import partial
from typing import Any, NamedTuple

import holdfast
from holdfast.engine.contract import read_counter
from holdfast.errors import HoldfastError
from holdfast.store import Store, Tx
from tests.processes import Child, Connection, start

SPACES = 4  # on a cluster they lie on different primaries
PATIENCE_SECONDS = 60.0


class Report(NamedTuple):
    """What a client was told about one of its transactions."""

    mark: bytes  # the client and a number
    place: int | None  # its place among those of its space, if it was acknowledged
    at: float  # monotonic, the same in all processes
    error: str = ""


def write_without_end(url: str, client: int, options: dict[str, Any], ours: Connection) -> None:
    with holdfast.open(url, **options) as store:
        space = store.space(_space(client))
        for number in itertools.count():
            mark = b"%d/%d" % (client, number)
            try:
                place = space.transact(partial(_write, mark=mark))
            except HoldfastError as error:  # not acknowledged: it may be there or not, at most once
                report = Report(mark, None, time.monotonic(), repr(error))
            else:
                report = Report(mark, place, time.monotonic())
            ours.send(tuple(report))
            if ours.poll():
                break
    ours.send(None)


def _space(client: int) -> str:
    return f"space {client % SPACES}"


def _write(tx: Tx, mark: bytes) -> int:
    raw, prefix = tx.raw, tx.raw.space
    place = int(raw.get(prefix + b"last") or b"0") + 1
    raw.put(prefix + b"last", b"%d" % place)
    raw.put(prefix + b"log/%09d" % place, mark)
    raw.add(prefix + b"times/" + mark, 1)
    return place


class Load:
    """Some clients at work."""

    def __init__(self, url: str, *, clients: int = 8, **options: Any) -> None:
        self._reports: list[list[Report]] = [[] for _ in range(clients)]
        self._more = threading.Condition()
        self._children = [start(write_without_end, url, n, options) for n in range(clients)]
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in zip(self._children, self._reports, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, child: Child, reports: list[Report]) -> None:
        while (message := child.receive()) is not None:
            with self._more:
                reports.append(Report(*message))
                self._more.notify_all()

    def await_acknowledgements(self, count: int, *, since: float = 0.0) -> float:
        """Waits until each client has got `count` since a moment, and says when the last one got
        its first."""
        with self._more:
            done = self._more.wait_for(
                lambda: all(len(each) >= count for each in self._acknowledged(since)),
                PATIENCE_SECONDS,
            )
            found = self._acknowledged(since)
        assert done, (list(map(len, found)), self.errors())
        return max(each[0].at for each in found)

    def _acknowledged(self, since: float) -> list[list[Report]]:
        return [
            [report for report in reports[-1_000:] if report.place and report.at >= since]
            for reports in self._reports
        ]

    def errors(self) -> set[str]:
        """What clients were told when a transaction was not acknowledged."""
        return {report.error for reports in self._reports for report in reports if report.error}

    def end(self) -> list[list[Report]]:
        """Lets all clients finish, and returns what each was told."""
        for child in self._children:
            child.send("enough")
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
            assert not reader.is_alive(), "a client does not end"
        assert [child.join() for child in self._children] == [0] * len(self._children)
        return self._reports


def check(store: Store, told: list[list[Report]]) -> int:
    """Asserts that what was acknowledged is there, and all that is there only once; returns how
    many transactions there are."""
    total = 0
    for name in {_space(client) for client in range(len(told))}:
        with store.space(name).view() as view:
            raw, prefix = view.raw, view.raw.space
            last = int(raw.get(prefix + b"last") or b"0")
            log = [value for _, value in raw.scan(prefix + b"log/", prefix + b"log0")]
            times = {
                key[len(prefix) + len(b"times/") :]: read_counter(value)
                for key, value in raw.scan(prefix + b"times/", prefix + b"times0")
            }
        promised = {
            report.mark: report.place
            for client, reports in enumerate(told)
            if _space(client) == name
            for report in reports
            if report.place is not None
        }
        assert promised.keys() - set(log) == set(), "acknowledged and lost"
        assert set(times.values()) <= {1}, "applied twice"
        assert len(log) == last == len(set(log)) == len(times)
        assert {mark: log[place - 1] for mark, place in promised.items() if place} == {
            mark: mark for mark in promised
        }
        total += last
    return total
