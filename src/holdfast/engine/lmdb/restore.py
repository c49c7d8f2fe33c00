"""Restores a store from a backup, and compares it with the backup's manifest."""

from contextlib import closing
from pathlib import Path

from holdfast.engine.lmdb.engine import LmdbEngine


def restore(backup: Path, target: Path) -> bool:
    """Restores the folder `backup` as the store `target`; returns whether the backup keeps a
    digest.

    What differs from it is refused with `StoreDamaged`, and nothing is left of it. A backup of an
    older Holdfast has none, nor has one that was written to: it is copied, and the copy compared.
    """
    with closing(LmdbEngine(backup, clock=lambda: 0.0)) as source:
        expected = source.manifest()
        source.backup(target, expected=expected)
    return expected is not None
