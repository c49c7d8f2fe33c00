"""Downloads the backup of a running server: it is made there, read in pieces, and removed there."""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.output import CommandFailure
from holdfast.limits import ABANDONED_DOWNLOAD_SECONDS

if TYPE_CHECKING:
    from holdfast.engine.contract import Backup

_LOOK_SECONDS: Final = 0.2  # between two checks whether the server has made it


def download(admin: Any, file: Path, *, tell: Callable[[float], None], is_json: bool) -> "Backup":
    """Writes the backup that the server makes now into the file; returns what it should contain."""
    import os

    from holdfast.engine.contract import Backup

    with _backup_on_server(admin, is_json) as (name, record), file.open("wb") as written:
        while piece := admin.backup_read(name, offset=written.tell()):
            written.write(piece)
            tell(written.tell())
        written.flush()
        os.fsync(written.fileno())
    return Backup(keys=record.keys, digest=record.digest)


def _remove_abandoned(admin: Any, *, before: float) -> None:
    """Removes what downloads that were killed have left on the server."""
    from holdfast.admin.checks_and_backups import DOWNLOAD

    for each in admin.backups():
        if each.name.startswith(DOWNLOAD) and each.made < before:
            admin.backup_remove(each.name)


@contextmanager
def _backup_on_server(admin: Any, is_json: bool) -> Iterator[tuple[str, Any]]:
    """Has the server make a backup; the block gets its name and record."""
    from holdfast.admin.checks_and_backups import DOWNLOAD

    name = f"{DOWNLOAD}{secrets.token_hex(8)}"
    record = admin.backup_start(name)
    try:
        _remove_abandoned(admin, before=record.started - ABANDONED_DOWNLOAD_SECONDS)
        while record is not None and record.state == "running":
            threading.Event().wait(_LOOK_SECONDS)
            record = next((each for each in admin.maintenance() if each.id == record.id), None)
        if record is None or record.state != "done":
            why = "it was started again meanwhile" if record is None else record.error
            raise CommandFailure(
                "backup_failed", f"the server made no backup: {why}", "", is_json=is_json
            )
        yield name, record
    finally:
        admin.backup_remove(name)
