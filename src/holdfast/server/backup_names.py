"""Where a server writes backups that clients ask for."""

import re
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.errors import BadInput, Forbidden

# The name of a subfolder; while the backup is written, its name is longer.
_BACKUP: Final = re.compile(r"\w[\w. +@:-]{,199}")


def in_backup_folder(arguments: Any, folder: Path | None) -> Any:
    """Restricts a backup to the server's backup folder: the permission to back up is not a
    permission to write anywhere."""
    name = arguments.target
    if folder is None:
        raise Forbidden("this server makes no backups", hint="Start it with `--backups FOLDER`.")
    if not _BACKUP.fullmatch(name):
        raise BadInput(
            f"{name!r:.100} is not a name for a backup",
            hint="Give a name of up to 200 letters, digits, dots, dashes and blanks; "
            f"it is written below {folder}.",
        )
    return msgspec.structs.replace(arguments, target=str(folder / name))
