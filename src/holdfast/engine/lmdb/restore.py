"""A store out of a backup, compared with what the backup says that it holds."""

from contextlib import closing
from pathlib import Path

from holdfast.engine.lmdb.engine import LmdbEngine


def restore(backup: Path, target: Path) -> bool:
    """Makes the store `target` of the folder `backup`; says whether the backup has kept a digest.

    What differs from it is refused with `StoreDamaged`, and nothing is left of it. A backup of an
    older Holdfast has none, nor has one that was written to: it is copied, and the copy compared.
    """
    with closing(LmdbEngine(backup, clock=lambda: 0.0)) as source:
        expected = source.manifest()
        source.backup(target, expected=expected)
    return expected is not None
