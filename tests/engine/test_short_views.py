"""Views for a thread that must not be held up: they raise when much has been read."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Reader, TooLong, Transaction
from holdfast.engine.lmdb import flusher
from holdfast.engine.lmdb.engine import LmdbEngine
from holdfast.limits import COMMITS_BEFORE_LOG, MAX_READ_ON_LOOP_BYTES

_ROWS: Final = 200
_LARGE: Final = MAX_READ_ON_LOOP_BYTES // 4


@pytest.fixture(params=["flushed", "unflushed"])
def engine(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LmdbEngine]:
    """Has some small and some large values: in LMDB, or only in the log."""
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 3600.0)
    engine: Any = open_engine(tmp_path / "store", durability="interval")
    if request.param == "unflushed":
        for _ in range(COMMITS_BEFORE_LOG + 2):
            engine.transact(lambda tx: tx.put(b"warm", b"up"))
    engine.transact(_fill)
    if request.param == "flushed":
        engine.stats()
    yield engine
    engine.close()


def _fill(tx: Transaction) -> None:
    for number in range(_ROWS):
        tx.put(b"small %03d" % number, b"x" * 100)
    for number in range(10):
        tx.put(b"large %d" % number, b"x" * _LARGE)


SHORT: Final[dict[str, Callable[[Reader], object]]] = {
    "a value": lambda view: view.get(b"large 1"),
    "four values": lambda view: view.get_many([b"large %d" % number for number in range(4)]),
    "nothing": lambda view: view.get(b"nothing"),
    "the first pair": lambda view: list(view.scan(b"large", b"largf", limit=1)),
    "a range": lambda view: list(view.scan(b"small", b"smalm")),
    "a range backwards": lambda view: list(view.scan(b"small", b"smalm", reverse=True)),
    "a short range": lambda view: list(view.scan(b"small", b"smalm", limit=100)),
}
LONG: Final[dict[str, Callable[[Reader], object]]] = {
    "values one by one": lambda view: [view.get(b"large %d" % number) for number in range(5)],
    "values together": lambda view: view.get_many([b"large %d" % number for number in range(5)]),
    "a range": lambda view: list(view.scan(b"large", b"largf")),
    "a range backwards": lambda view: list(view.scan(b"large", b"largf", reverse=True)),
    "a short range": lambda view: list(view.scan(b"large", b"largf", limit=5)),
    "first pairs": lambda view: [
        list(view.scan(b"large %d" % number, b"largf", limit=1)) for number in range(5)
    ],
    "short ranges": lambda view: [
        list(view.scan(b"small", b"smalm", limit=100)) for _ in range(100)
    ],
    "ranges": lambda view: [list(view.scan(b"small", b"smalm")) for _ in range(100)],
}


@pytest.mark.parametrize("read", SHORT.values(), ids=SHORT)
def test_a_short_read_is_answered_as_by_any_view(
    engine: LmdbEngine, read: Callable[[Reader], object]
) -> None:
    with engine.short_view() as view, engine.view() as ordinary:
        assert read(view) == read(ordinary)


@pytest.mark.parametrize("read", LONG.values(), ids=LONG)
def test_a_long_read_is_abandoned(engine: LmdbEngine, read: Callable[[Reader], object]) -> None:
    with engine.short_view() as view, pytest.raises(TooLong):
        read(view)


def test_no_more_is_read_than_is_left(engine: LmdbEngine) -> None:
    with engine.short_view() as opened:
        view: Any = opened
        scan = view.scan(b"large", b"largf")
        next(scan)
        assert view.left <= MAX_READ_ON_LOOP_BYTES - _LARGE

        view.left = 0
        with pytest.raises(TooLong):
            next(scan)
