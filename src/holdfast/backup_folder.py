"""A folder of dated backups: makes the next one, lists them, and removes old ones.

    backups/20261117T033000Z/data.mdb    a full backup
    backups/20261118T033000Z/changes     an incremental one: what differs from a full one

A backup is valid once its file has its final name, which it gets after it was read and compared.
A killed process leaves an `unfinished-copy`, which the next run removes.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from holdfast.engine.contract import Backup, Engine
from holdfast.engine.folder import create_folder
from holdfast.engine.lmdb.changes import base_of
from holdfast.engine.lmdb.engine import LmdbEngine
from holdfast.engine.lmdb.environment import CHANGES_FILE, DATA_FILE, UNFINISHED_FILE
from holdfast.errors import BadInput, StoreDamaged, StoreUnusable
from holdfast.limits import FULL_BACKUP_SECONDS, MAX_CHANGES_SHARE, MAX_KEPT_BACKUPS

__all__ = [
    "DatedBackup",
    "Keep",
    "backups_in",
    "keep_download",
    "kept",
    "make_backup",
    "parse_keep",
    "remove_old",
]

_NAME: Final = re.compile(r"\d{8}T\d{6}Z")
_RULE: Final = re.compile(r"(\d{1,6})([hdwmy])")
_NAME_FORMAT: Final = "%Y%m%dT%H%M%SZ"
_DOWNLOAD_FOLDER: Final = "unfinished-download"
# Formats of the period of each unit: backups with the same text belong to the same period.
_PERIODS: Final = {"h": "%Y%m%d%H", "d": "%Y%m%d", "w": "%G%V", "m": "%Y%m", "y": "%Y"}


class DatedBackup(msgspec.Struct, frozen=True, kw_only=True):
    """One backup of a folder, judging by its name and its files."""

    name: str
    made: float  # seconds since 1970
    bytes: int
    base: str | None = None  # the full backup that an incremental one needs
    problem: str | None = None  # why it can't be restored, as far as a quick check can tell


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """Keeps the newest backup of each of the last `count` units of time."""

    count: int
    unit: str


def parse_keep(text: str) -> list[Keep]:
    """Reads what `--keep` takes.

    >>> parse_keep("7d,4w")
    [Keep(count=7, unit='d'), Keep(count=4, unit='w')]
    """
    found = [_RULE.fullmatch(part.strip()) for part in text.split(",")]
    rules = [Keep(count=int(each[1]), unit=each[2]) for each in found if each]
    if len(rules) < len(found) or not all(1 <= rule.count <= MAX_KEPT_BACKUPS for rule in rules):
        raise BadInput(
            f"{text!r:.100} does not say how many backups to keep",
            hint="Give numbers of hours, days, weeks, months or years, from 1 to "
            f"{MAX_KEPT_BACKUPS:,}: 7d,4w,12m.",
        )
    return rules


def backups_in(folder: Path) -> list[DatedBackup]:
    """Lists the dated backups of a folder, newest first, each with the result of a quick check.

    Reads the names in the folder and the end of each incremental backup.
    """
    names = [name for name in os.listdir(folder) if _NAME.fullmatch(name)]
    listed = (_backup_at(folder / name) for name in sorted(names, reverse=True))
    return [each for each in listed if each is not None]


def _backup_at(path: Path) -> DatedBackup | None:
    """Returns the backup in a folder with such a name; None if it holds none."""
    try:
        made = datetime.strptime(path.name, _NAME_FORMAT).replace(tzinfo=UTC).timestamp()
        if (path / DATA_FILE).exists():
            size = (path / DATA_FILE).stat().st_size
            return DatedBackup(name=path.name, made=made, bytes=size)
        size = (path / CHANGES_FILE).stat().st_size
    except (ValueError, FileNotFoundError, NotADirectoryError):
        return None
    try:
        base = base_of(path)[1].name
    except StoreDamaged as error:
        return DatedBackup(name=path.name, made=made, bytes=size, problem=error.message)
    return DatedBackup(name=path.name, made=made, bytes=size, base=base)


# --- the next one --------------------------------------------------------------------------------


def make_backup(
    engine: Engine, folder: Path, *, now: float, is_incremental: bool = False
) -> DatedBackup:
    """Makes a dated backup of the store in the folder, and verifies it.

    With `is_incremental` it holds only the differences from the newest full one, unless there is
    none, or it is a week old, or the last incremental backup was half as large.
    """
    create_folder(folder)
    with _locked(folder):
        _remove_unfinished(folder)
        return _make_next(engine, folder, now, is_incremental=is_incremental)


def keep_download(
    download: Callable[[Path], Backup], folder: Path, *, now: float, is_incremental: bool = False
) -> DatedBackup:
    """Makes a dated backup in the folder from one that `download` writes, and verifies it.

    `download` gets the path of a file to write, and returns what its source says about the content.
    Until the end the disk holds the download next to the backup.
    """
    create_folder(folder)
    with _locked(folder):
        _remove_unfinished(folder)
        unfinished = folder / _DOWNLOAD_FOLDER
        unfinished.mkdir(mode=0o700)
        try:
            expected = download(unfinished / DATA_FILE)
            with closing(LmdbEngine(unfinished, clock=lambda: now)) as engine:
                return _make_next(engine, folder, now, expected, is_incremental=is_incremental)
        finally:
            shutil.rmtree(unfinished)


def _make_next(
    engine: Engine,
    folder: Path,
    now: float,
    expected: Backup | None = None,
    *,
    is_incremental: bool,
) -> DatedBackup:
    """Makes the next backup of a folder; removes a copy that is not what was `expected`."""
    target = folder / datetime.fromtimestamp(now, UTC).strftime(_NAME_FORMAT)
    base = _base(backups_in(folder), now) if is_incremental else None
    if base is None or not isinstance(engine, LmdbEngine):
        copied = engine.backup(target)
    else:
        copied = engine.backup_changes(target, folder / base.name)
    if expected is not None and copied != expected:
        shutil.rmtree(target)
        raise StoreDamaged(
            f"the download differs from the server's backup: it has {copied.keys} keys of "
            f"{expected.keys}, or other values",
            hint="Try again: nothing was kept.",
        )
    made = _backup_at(target)
    assert made is not None
    return made


def _base(backups: Sequence[DatedBackup], now: float) -> DatedBackup | None:
    """Returns the full backup that the next incremental one can be based on."""
    full = next((each for each in backups if each.base is None and each.problem is None), None)
    if full is None or now - full.made >= FULL_BACKUP_SECONDS:
        return None
    last = next((each.bytes for each in backups if each.base == full.name), 0)
    return full if last <= MAX_CHANGES_SHARE * full.bytes else None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time make or remove backups in a folder."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StoreUnusable(
            f"another process is making or removing backups in {folder}",
            hint="Wait until it has finished.",
        ) from None
    finally:
        os.close(number)


def _remove_unfinished(folder: Path) -> None:
    """Removes what a killed process has left; the lock keeps other processes away."""
    shutil.rmtree(folder / _DOWNLOAD_FOLDER, ignore_errors=True)
    for name in filter(_NAME.fullmatch, os.listdir(folder)):
        path = folder / name
        if path.is_dir() and {*os.listdir(path)} <= {UNFINISHED_FILE}:
            (path / UNFINISHED_FILE).unlink(missing_ok=True)
            path.rmdir()


# --- retention ----------------------------------------------------------------------------------


def kept(backups: Sequence[DatedBackup], rules: Sequence[Keep]) -> set[str]:
    """Returns the names of the backups to keep, from a list that has the newest first.

    Each rule keeps the newest backup of each of the last `count` periods that have one; the newest
    of all, and the full backups that kept ones need, are kept as well.
    """
    good = [each for each in backups if each.problem is None]
    names = {each.name for each in good[:1]}
    for rule in rules:
        newest: dict[str, str] = {}
        for each in good:
            period = datetime.fromtimestamp(each.made, UTC).strftime(_PERIODS[rule.unit])
            newest.setdefault(period, each.name)
        names.update(list(newest.values())[: rule.count])
    return names | {each.base for each in good if each.name in names and each.base}


def remove_old(folder: Path, rules: Sequence[Keep]) -> list[str]:
    """Removes the backups that no rule keeps, and returns their names."""
    with _locked(folder):
        backups = backups_in(folder)
        kept_names = kept(backups, rules)
        gone = [each for each in backups if each.name not in kept_names]
        # Incremental backups first: a killed process leaves none without its base.
        for each in sorted(gone, key=lambda each: each.base is None):
            shutil.rmtree(folder / each.name)
        return [each.name for each in gone]
