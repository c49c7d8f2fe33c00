"""Moves a whole store from one engine to another: `holdfast copy`.

It copies space by space, in key order, in bounded transactions, and skips pairs that the target
already has. So an interrupted copy continues when it is run again, even if the source has changed
since. Then both sides are read once more, and their numbers of pairs and digests are compared.

While a copy is in progress the target has a mark in its directory, and can't be opened as a store:

(0, "copying")    -> text    where it is copied from
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

import msgspec

from holdfast.engine.contract import Engine, Notice, Reader, Transaction
from holdfast.errors import BadInput, StoreBusy, StoreDamaged
from holdfast.keys import after, pack, prefix_range, unpack
from holdfast.limits import COPIED_BYTES_PER_STEP, COPIED_KEYS_PER_STEP
from holdfast.spaces import COPYING, DIRECTORY, refuse_unfinished_copy

__all__ = ["COPY_ENDED", "CopyResult", "Phase", "StoreDigest", "copy"]

COPY_ENDED: Final = "copy.ended"  # a notice in the directory of the target
Phase: TypeAlias = Literal["copy", "verify"]  # what a copy is doing
Progress: TypeAlias = Callable[[Phase, int], None]

_Pairs: TypeAlias = list[tuple[bytes, bytes]]


class StoreDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pairs of a store, and the digest of all of them."""

    keys: int
    digest: str


class CopyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a copy. Source and target have the same `keys` and `digest`."""

    keys: int
    digest: str
    written: int  # pairs that the target lacked, or had with other values
    removed: int  # pairs that only the target had
    spaces: int


def copy(
    source: Engine,
    target: Engine,
    *,
    name: str,
    progress: Progress = lambda phase, keys: None,
) -> CopyResult:
    """Makes `target` the same as `source`, and verifies that it is.

    `name` is the source's name, for errors and for the mark. `target` must be empty, or hold an
    unfinished copy from `name`. Each space is one snapshot of the source; stop all writers first if
    the copy is to replace it.
    """
    refuse_unfinished_copy(source)
    _begin(target, name)
    written = removed = 0
    spaces = _spaces(source)
    # The directory comes last: a space that can be found is complete.
    digest, keys = blake2b(), 0
    for space in [*spaces, DIRECTORY]:
        with source.view(space=space) as reader:
            put, gone = _copy_space(reader, target, space, progress)
            written, removed = written + put, removed + gone
            expected = _digest_of(reader, space, None)
            with target.view(space=space) as copied:
                found = _digest_of(copied, space, progress)
            if found != expected:
                raise StoreDamaged(
                    f"the copy of space {unpack(space)[0]} differs from {name}: "
                    f"{found.keys} keys of {expected.keys}",
                    hint="Run it again; if it differs again, check both with `holdfast check`.",
                )
        keys += expected.keys
        digest.update(expected.digest.encode())
    if _spaces(source) != spaces:
        raise StoreBusy(
            f"spaces were created or dropped in {name} while it was copied",
            hint="Let nobody write to it, and run the copy again.",
        )
    target.transact(_end, space=DIRECTORY)
    target.checkpoint()
    return CopyResult(
        keys=keys,
        digest=digest.hexdigest()[:32],
        written=written,
        removed=removed,
        spaces=len(spaces),
    )


# --- the beginning and the end -------------------------------------------------------------------


def _begin(target: Engine, name: str) -> None:
    def work(tx: Transaction) -> None:
        mark = tx.get(COPYING)
        if mark is None:
            for _ in tx.scan(*prefix_range(DIRECTORY), limit=1):
                raise BadInput(
                    "the target is a store already", hint="Name a folder or URL that is empty."
                )
            tx.put(COPYING, name.encode())
        elif mark != name.encode():
            raise BadInput(
                f"the target is half a copy of {mark.decode()}, and not of {name}",
                hint="Continue that copy, or name another target.",
            )

    target.transact(work, space=DIRECTORY)


def _end(tx: Transaction) -> None:
    tx.delete(COPYING)
    tx.after_commit(Notice(COPY_ENDED))


def _spaces(source: Engine) -> list[bytes]:
    """Returns the prefixes of all spaces, and of those that are being emptied."""
    with source.view(space=DIRECTORY) as view:
        numbers = [int(value) for _, value in view.scan(*prefix_range(pack(0, "space")))]
        dropped = [unpack(key)[2] for key, _ in view.scan(*prefix_range(pack(0, "dropped")))]
    return [pack(number) for number in sorted([*numbers, *dropped])]


# --- one space -----------------------------------------------------------------------------------


def _copy_space(
    reader: Reader, target: Engine, space: bytes, progress: Progress
) -> tuple[int, int]:
    """Makes one space of the target the same; returns how many pairs were put and deleted."""
    begin, end = prefix_range(space)
    written = removed = 0
    for batch, is_last in _batches(reader, begin, end):
        upto = end if is_last else after(batch[-1][0])
        with target.view(space=space) as copied:
            existing = {k: v for k, v in copied.scan(begin, upto) if k != COPYING}
        put = [(key, value) for key, value in batch if existing.pop(key, None) != value]
        gone = list(existing)
        if put or gone:
            target.transact(lambda tx, put=put, gone=gone: _write(tx, put, gone), space=space)  # type: ignore[misc]
        written, removed = written + len(put), removed + len(gone)
        begin = upto
        progress("copy", len(batch))
    return written, removed


def _write(tx: Transaction, put: _Pairs, gone: list[bytes]) -> None:
    for key in gone:
        tx.delete(key)
    for key, value in put:
        tx.put(key, value)


def _batches(reader: Reader, begin: bytes, end: bytes) -> Iterator[tuple[_Pairs, bool]]:
    """Yields the pairs of a range in bounded batches; marks the last one, which may be empty."""
    batch: _Pairs = []
    size = 0
    for key, value in reader.scan(begin, end):
        if batch and (
            len(batch) == COPIED_KEYS_PER_STEP or size + len(value) > COPIED_BYTES_PER_STEP
        ):
            yield batch, False
            batch, size = [], 0
        batch.append((key, value))
        size += len(key) + len(value)
    yield batch, True


def _digest_of(reader: Reader, space: bytes, progress: Progress | None) -> StoreDigest:
    """Reads a space in order, and returns the number of its pairs and their digest."""
    digest = blake2b(digest_size=16)
    keys = reported = 0
    for key, value in reader.scan(*prefix_range(space)):
        if key == COPYING:
            continue
        digest.update(b"%d %d " % (len(key), len(value)) + key + value)
        keys += 1
        if progress is not None and keys - reported == COPIED_KEYS_PER_STEP:
            progress("verify", keys - reported)
            reported = keys
    if progress is not None:
        progress("verify", keys - reported)
    return StoreDigest(keys=keys, digest=digest.hexdigest())


# Their former names, which programs may import.
Side = StoreDigest
Copied = CopyResult
