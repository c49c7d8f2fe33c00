"""Checks and backups: a part at a time, at once, or in the background with progress."""

from pathlib import Path

import msgspec

from holdfast.admin import consistency
from holdfast.admin.home import Home, Layers
from holdfast.admin.maintenance import Run
from holdfast.admin.records import BackupEntry, BackupReport, CheckStep, Maintenance
from holdfast.binding import Runner
from holdfast.declarations import operation
from holdfast.errors import BadInput
from holdfast.limits import MAX_LISTED_BACKUPS
from holdfast.spaces import DIRECTORY


class SoundnessOperations:
    """Operations that look whether a store is sound, and make copies of it."""

    _home: Home
    _space: Layers
    _runner: Runner

    @operation(reads=True, role="admin")
    def check(self, *, after: str | None = None) -> CheckStep:
        """Checks the layers of this space for contradictions, a part at a time.

        Indexes, lists and counts are compared with the records. Hand `next` back as `after`
        until it is None. Others may write meanwhile. Reads up to 1,000 keys and what belongs to
        them.
        """
        if after is None:
            self._home.engine.refuse_unreadable()
        with self._runner.view() as reader:
            return consistency.check_step(reader, after)

    @operation(reads=True, role="admin", scope="store")
    def check_directory(self, *, after: str | None = None) -> CheckStep:
        """Checks the keys of the store that belong to no space: the directory of spaces, and users.

        With these, all spaces have as many keys as a backup. Hand `next` back as `after` until it
        is None. Reads up to 1,000 keys.
        """
        if after is None:
            self._home.engine.refuse_unreadable()
        with self._home.engine.view(space=DIRECTORY) as reader:
            return consistency.check_step(reader, after, look=consistency.directory_problems)

    @operation(role="admin", scope="store")
    def check_engine(self) -> list[str]:
        """Reads everything that the engine stores; what is wrong with it, a sentence each."""
        return self._home.engine.check()

    @operation(role="admin", scope="store")
    def backup(self, target: str) -> BackupReport:
        """Writes a consistent copy of the whole store into the folder `target`, and verifies it.

        A server writes it below the folder that it was given with `--backups`. Reads every key of
        the store twice: to copy it, and in the copy.
        """
        if not target:
            raise BadInput("a backup needs a folder to go to")
        copied = self._home.backup(target)
        size = size_of(Path(target))
        return BackupReport(target=target, keys=copied.keys, bytes=size, digest=copied.digest)

    @operation(reads=True, role="admin", scope="store")
    def backups(self) -> list[BackupEntry]:
        """Returns the newest backups in the folder that the server was given, newest first.

        Each was compared with the store before it got its name. Reads the folder and no key.
        """
        server = self._home.server
        if server is None or server.backups is None or not server.backups.is_dir():
            return []
        found = [
            BackupEntry(name=file.parent.name, bytes=file.stat().st_size, made=file.stat().st_mtime)
            for file in server.backups.glob("*/data.mdb")
        ]
        return sorted(found, key=lambda each: -each.made)[:MAX_LISTED_BACKUPS]

    # --- in the background -----------------------------------------------------------------------

    @operation(role="admin")
    def check_start(self, *, engine: bool = False) -> Maintenance:
        """Checks this space in the background, as `check` does; with `engine`, that one first.

        `maintenance` says how far it is. It ends with the process that runs it. Reads every key of
        the space, 1,000 at a time.
        """

        def work(run: Run) -> None:
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

        return self._home.maintenance.start(work, kind="check", space=self._space.name)

    @operation(role="admin", scope="store")
    def backup_start(self, target: str) -> Maintenance:
        """Makes a backup in the background, as `backup` does.

        `maintenance` says how far it is. Reads every key of the store twice.
        """
        if not target:
            raise BadInput("a backup needs a folder to go to")

        def work(run: Run) -> None:
            made = self.backup(target)
            run.update(keys=made.keys, bytes=made.bytes, digest=made.digest)

        return self._home.maintenance.start(work, kind="backup", target=target)

    @operation(reads=True, role="admin", scope="store")
    def maintenance(self) -> list[Maintenance]:
        """Returns the checks and backups of this process that run or have ended, newest first.

        Reads no key.
        """
        return [self._with_progress(each) for each in self._home.maintenance.all()]

    def _with_progress(self, record: Maintenance) -> Maintenance:
        """Returns a backup that runs with the size of its copy, which then is read back."""
        if record.kind != "backup" or record.state != "running":
            return record
        size = size_of(Path(record.target))
        whole = self._home.engine.stats().get("file_bytes", 0) or 1
        return msgspec.structs.replace(record, bytes=size, done=min(0.9, 0.9 * size / whole))

    @operation(role="admin", scope="store")
    def maintenance_stop(self, id: str) -> bool:
        """Stops a check, and says whether it was running. A backup ends by itself. Reads no key."""
        return self._home.maintenance.stop(id)


def size_of(folder: Path) -> int:
    """Returns how many bytes the files of a folder have; those of one that does not exist, none."""
    try:
        return sum(each.stat().st_size for each in folder.iterdir())
    except FileNotFoundError:
        return 0
