"""Puts many pairs into LMDB so that its pages become full.

LMDB splits a full page in the middle. If all further keys go to one place between the halves, every
page that they fill is split in turn, and stays half empty. Only a key that goes behind all others
of its page begins a new page, and leaves the old one full. So a run of keys that all go to one
place is put like this: the pairs behind that place, about as many as its page holds, are taken out,
and put back when the run is in.

Where a page ends is not known. If too few pairs were taken out, the run still goes before others of
its page; if nearly all of the next page were, LMDB refills that one with pairs from before the run.
Either shows in the number of pages after some keys; then these are deleted, and another amount is
tried, three in all.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final

Pairs = list[tuple[bytes, bytes]]

_RUN: Final = 32  # keys, at least: fewer hardly fill a page
_PAGE_BYTES: Final = 4080
_PAIR_BYTES: Final = 10  # that LMDB adds to each pair
_MAX_BYTES: Final = 1024  # of a pair: LMDB stores long values outside of its tree
_TAKEN_OUT: Final = (3000, 1000, 2000)  # bytes, at most, by attempt; chosen by trying
_TRIED_PAGES: Final = 2  # that a run should fill before its pages are counted


def put_packed(cursor: Any, pairs: Pairs, count_pages: Callable[[], int]) -> None:
    """Puts pairs, which must be in order, by a cursor of an LMDB transaction. `count_pages` returns
    the number of leaf pages.

    Looks for one key in 32 before it is put.
    """
    done = at = 0
    while at + _RUN <= len(pairs):
        if not cursor.set_range(pairs[at][0]):
            break  # nothing is behind them
        behind = cursor.key()
        if pairs[at + _RUN - 1][0] < behind:
            cursor.putmulti(pairs[done:at])
            end = bisect_left(pairs, (behind,), at)
            _put_run(cursor, pairs[at:end], behind, count_pages)
            done = at = end
        else:
            at += _RUN
    cursor.putmulti(pairs[done:])


def _put_run(cursor: Any, run: Pairs, behind: bytes, count_pages: Callable[[], int]) -> None:
    size = sum([_size(pair) for pair in run[:_RUN]])
    if size > _RUN * _MAX_BYTES:
        cursor.putmulti(run)
        return
    tried = _TRIED_PAGES * _PAGE_BYTES * _RUN // size  # keys
    for most in _TAKEN_OUT:
        moved = _take_out(cursor, behind, most)
        pages = count_pages()
        cursor.putmulti(run[:tried])
        is_packed = count_pages() - pages <= _TRIED_PAGES
        if is_packed or most == _TAKEN_OUT[-1]:
            cursor.putmulti(run[tried:])
            cursor.putmulti(moved)
            return
        _delete(cursor, run[:tried])
        cursor.putmulti(moved)


def _take_out(cursor: Any, begin: bytes, most: int) -> Pairs:
    """Deletes pairs from `begin` on, of at most so many bytes, and returns them."""
    moved: Pairs = []
    cursor.set_key(begin)
    for pair in cursor.iternext():
        most -= _size(pair)
        if most < 0 or _size(pair) > _MAX_BYTES:
            break
        moved.append(pair)
    _delete(cursor, moved)
    return moved


def _delete(cursor: Any, pairs: Pairs) -> None:
    """Deletes pairs that follow each other in LMDB."""
    if pairs:
        cursor.set_key(pairs[0][0])
        for _ in pairs:
            cursor.delete()  # which also moves to the next key


def _size(pair: tuple[bytes, bytes]) -> int:
    key, value = pair
    return len(key) + len(value) + _PAIR_BYTES
