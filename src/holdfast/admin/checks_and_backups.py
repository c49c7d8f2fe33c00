"""Checks and backups: a part at a time, at once, or in the background with progress."""

import os
import shutil
import stat
from pathlib import Path
from typing import Final

import msgspec

from holdfast.admin import consistency
from holdfast.admin.contracts import Layers, ParentStore
from holdfast.admin.maintenance import MaintenanceRun
from holdfast.admin.records import BackupEntry, BackupReport, CheckStep, Maintenance
from holdfast.binding import Runner
from holdfast.declarations import operation
from holdfast.errors import BadInput, Forbidden, NotFound
from holdfast.limits import MAX_BACKUP_PIECE_BYTES, MAX_LISTED_BACKUPS
from holdfast.spaces import DIRECTORY

DOWNLOAD: Final = "download-"  # the prefix of the names of backups that are made for a download
BACKUP_FILE: Final = "data.mdb"
_MAX_NAME_BYTES: Final = 255  # of a file, on all usual file systems


class CheckAndBackupOperations:
    """Operations that check a store for damage, and that make and read backups."""

    _store: ParentStore
    _space: Layers
    _runner: Runner

    @operation(reads=True, role="admin")
    def check(self, *, after: str | None = None) -> CheckStep:
        """Checks the layers of this space for contradictions, a part at a time.

        Indexes, lists and counts are compared with the records. Pass `next` as `after` until
        it is None. Others may write meanwhile. Reads up to 1,000 keys and what belongs to
        them.
        """
        if after is None:
            self._store.engine.refuse_unreadable()
        with self._runner.view() as reader:
            return consistency.check_step(reader, after)

    @operation(reads=True, role="admin", scope="store")
    def check_directory(self, *, after: str | None = None) -> CheckStep:
        """Checks the keys of the store that belong to no space: the directory of spaces, and users.

        With these, all spaces have as many keys as a backup. Pass `next` as `after` until it is
        None. Reads up to 1,000 keys.
        """
        if after is None:
            self._store.engine.refuse_unreadable()
        with self._store.engine.view(space=DIRECTORY) as reader:
            return consistency.check_step(reader, after, check=consistency.directory_problems)

    @operation(role="admin", scope="store")
    def check_engine(self) -> list[str]:
        """Reads everything that the engine stores, and returns the problems, a sentence each."""
        return self._store.engine.check()

    @operation(role="admin", scope="store")
    def backup(self, target: str) -> BackupReport:
        """Writes a consistent copy of the whole store into the folder `target`, and verifies it.

        A server writes it below the folder that it was given with `--backups`. Reads every key of
        the store twice: to copy it, and in the copy.
        """
        if not target:
            raise BadInput("a backup needs a target folder")
        copied = self._store.backup(target)
        size = size_of(Path(target))
        return BackupReport(target=target, keys=copied.keys, bytes=size, digest=copied.digest)

    @operation(reads=True, role="admin", scope="store")
    def backups(self) -> list[BackupEntry]:
        """Returns the newest backups in the folder that the server was given, newest first.

        Each was compared with the store before it got its name. Reads the folder and no key.
        """
        server = self._store.server
        if server is None or server.backups is None or not server.backups.is_dir():
            return []
        found = filter(None, map(_entry, server.backups.glob(f"*/{BACKUP_FILE}")))
        return sorted(found, key=lambda each: -each.made)[:MAX_LISTED_BACKUPS]

    @operation(reads=True, role="admin", scope="store")
    def backup_read(
        self, name: str, *, offset: int = 0, count: int = MAX_BACKUP_PIECE_BYTES
    ) -> bytes:
        """Returns up to `count` bytes of a backup in the server's folder, from `offset` on.

        At its end there are fewer, or none. Reads the file and no key.
        """
        if offset < 0 or not 1 <= count <= MAX_BACKUP_PIECE_BYTES:
            raise BadInput(
                f"offset is {offset} and count {count}",
                hint=f"offset is 0 or more, count from 1 to {MAX_BACKUP_PIECE_BYTES}.",
            )
        file = self._backup_folder(name) / BACKUP_FILE
        if not file.is_file():
            raise NotFound(f"there is no backup {name!r:.100}")
        with file.open("rb") as opened:
            opened.seek(min(offset, os.fstat(opened.fileno()).st_size))
            return opened.read(count)

    @operation(role="admin", scope="store")
    def backup_remove(self, name: str) -> bool:
        """Removes a backup that was made for a download; returns whether it existed.

        Its name begins with `download-`. Others can't be removed over the network, so that someone
        who has stolen an administrator's token can't remove all backups. Deletes the files and no
        key.
        """
        if not name.startswith(DOWNLOAD):
            raise Forbidden(
                f"the backup {name!r:.100} can't be removed over the network",
                hint="Remove it on the server's machine.",
            )
        folder = self._backup_folder(name)
        if folder.is_symlink() or not (folder / BACKUP_FILE).is_file():
            return False
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:  # somebody else is removing it
            return False
        return True

    def _backup_folder(self, name: str) -> Path:
        server = self._store.server
        if server is None or server.backups is None:
            raise Forbidden("backups are served only by a server that was started with --backups")
        is_one_part = name not in ("", ".", "..") and "\0" not in name and Path(name).name == name
        if not is_one_part or len(name.encode(errors="replace")) > _MAX_NAME_BYTES:
            raise BadInput(f"{name!r:.100} is not the name of a backup")
        return server.backups / name

    # --- in the background -----------------------------------------------------------------------

    @operation(role="admin")
    def check_start(self, *, engine: bool = False) -> Maintenance:
        """Starts a check of this space in the background; with `engine`, of the engine first.

        `maintenance` returns its progress. It ends with the process that runs it. Reads every key
        of the space, 1,000 at a time.
        """

        def work(run: MaintenanceRun) -> None:
            if engine:
                run.add_problems(self.check_engine())
            after: str | None = None
            while not run.stopped.is_set():
                step = self.check(after=after)
                run.add_problems(step.problems)
                run.update(keys=run.record.keys + step.checked, done=step.done)
                after = step.next
                if after is None:
                    return

        return self._store.maintenance.start(work, kind="check", space=self._space.name)

    @operation(role="admin", scope="store")
    def backup_start(self, target: str) -> Maintenance:
        """Starts a backup of the whole store in the background, as `backup` makes it.

        `maintenance` returns its progress. Reads every key of the store twice.
        """
        if not target:
            raise BadInput("a backup needs a target folder")

        def work(run: MaintenanceRun) -> None:
            made = self.backup(target)
            run.update(keys=made.keys, bytes=made.bytes, digest=made.digest)

        return self._store.maintenance.start(work, kind="backup", target=target)

    @operation(reads=True, role="admin", scope="store")
    def maintenance(self) -> list[Maintenance]:
        """Returns the checks and backups of this process that run or have ended, newest first.

        Reads no key.
        """
        return [self._with_progress(each) for each in self._store.maintenance.all()]

    def _with_progress(self, record: Maintenance) -> Maintenance:
        """Returns the record of a running backup with the size of its copy so far."""
        if record.kind != "backup" or record.state != "running":
            return record
        size = size_of(Path(record.target))
        whole = self._store.engine.stats().get("file_bytes", 0) or 1
        return msgspec.structs.replace(record, bytes=size, done=min(0.9, 0.9 * size / whole))

    @operation(role="admin", scope="store")
    def maintenance_stop(self, id: str) -> bool:
        """Stops a check; returns whether it ran. A backup can't be stopped. Reads no key."""
        return self._store.maintenance.stop(id)


def _entry(file: Path) -> BackupEntry | None:
    """Returns the backup with this file; None for a link that leads nowhere, what was removed
    meanwhile, and a name that is not UTF-8."""
    name = file.parent.name
    try:
        name.encode()
        status = file.stat()
    except (OSError, UnicodeEncodeError):
        return None
    is_file = stat.S_ISREG(status.st_mode)
    return BackupEntry(name=name, bytes=status.st_size, made=status.st_mtime) if is_file else None


def size_of(folder: Path) -> int:
    """Returns how many bytes the files of a folder have; 0 if it does not exist."""
    try:
        return sum(each.stat().st_size for each in folder.iterdir())
    except FileNotFoundError:
        return 0
