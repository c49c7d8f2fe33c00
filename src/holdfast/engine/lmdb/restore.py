"""Restores a store from a backup, full or incremental, and compares it with the manifest."""

from contextlib import closing
from pathlib import Path

from holdfast.engine.lmdb.changes import base_of
from holdfast.engine.lmdb.engine import LmdbEngine
from holdfast.engine.lmdb.environment import CHANGES_FILE
from holdfast.errors import StoreDamaged


def restore(backup: Path, target: Path) -> bool:
    """Restores the folder `backup` as the store `target`; returns whether the backup has a digest.

    A copy that differs from the digest is refused with `StoreDamaged`, and removed. A backup of an
    older Holdfast has no digest, nor has one that was written to since: it is copied, and the copy
    is compared with it.
    """
    if (backup / CHANGES_FILE).exists():
        _restore_changes(backup, target)
        return True
    with closing(LmdbEngine(backup, clock=lambda: 0.0)) as source:
        expected = source.manifest()
        source.backup(target, expected=expected)
    return expected is not None


def _restore_changes(backup: Path, target: Path) -> None:
    changes, base = base_of(backup)
    with closing(LmdbEngine(base, clock=lambda: 0.0)) as source:
        expected = source.manifest()
        if expected is None or expected.digest != changes.base_digest.hex():
            raise StoreDamaged(
                f"the full backup {base} is not the one that {backup} was made from",
                hint="It was replaced or written to. Restore another backup.",
            )
        source.backup(target, expected=expected, changes_file=backup / CHANGES_FILE)
