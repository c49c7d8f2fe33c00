"""`holdfast restore`: restores a store from a backup."""

import sys
from pathlib import Path

import click

from holdfast.cli.check import problems_of
from holdfast.cli.location import Location, folder_options, refuse_missing
from holdfast.cli.output import FOUND, Output, counted, size

_NOT_COMPARED = (
    "The backup has no digest: an older Holdfast made it, or it was written to later. The restored "
    "store was read back and checked, but could not be compared with the original."
)


@click.command("restore")
@click.argument("backup")
@folder_options
def command(location: Location, out: Output, backup: str) -> None:
    """Restore the folder BACKUP into the folder --data, and verify it.

    An incremental backup needs the full one that it was made from, in the folder next to it.

    The folder --data must be new or empty: an existing store is never overwritten. The result is
    read back, compared with the number of keys and the digest in the backup, and checked as
    `holdfast check` does. To restore into another engine, use `holdfast copy BACKUP URL`.

    Example: holdfast restore backups/monday --data data
    """
    location.refuse_server("a server's own store can't be replaced while it runs")
    if "://" in location.data:
        raise click.UsageError("restore writes a folder; use `holdfast copy` for other engines")
    from holdfast.engine.lmdb.restore import restore

    files = ("data.mdb", "changes")
    refuse_missing(backup, _hint(Path(backup)), files)
    with out.progress("restore"):
        kept = restore(Path(backup.removeprefix("lmdb:")), Path(location.data))
    with location.open() as opened:
        keys = opened.space.admin.status().store["keys"]
        problems = problems_of(opened, opened.space.admin.spaces().spaces, out)[1]
    written = sum(each.stat().st_size for each in Path(location.data).iterdir())

    def show() -> None:
        for each in problems:
            out.say(f"{each['space'] or 'the engine'}: {each['problem']}")
        sound = "verified" if kept else "read back"
        sound = f"{counted(len(problems), 'problem')} came with the backup" if problems else sound
        out.say(f"{location.data}: {counted(keys, 'key')}, {size(written)}, {sound}")
        if not kept:
            out.note(_NOT_COMPARED)

    result = {"target": location.data, "keys": keys, "bytes": written, "problems": problems}
    out.result({**result, "verified": kept}, show)
    if problems:
        sys.exit(FOUND)


def _hint(folder: Path) -> str:
    """Returns what to name instead of a folder that is no backup."""
    from holdfast.backup_folder import backups_in

    dated = backups_in(folder) if folder.is_dir() else []
    if dated:
        return f"It holds dated backups, {folder / dated[0].name} is the newest: name one of them."
    return "Name a folder that `holdfast backup` has written."
