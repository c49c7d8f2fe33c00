"""`holdfast drill`: proves that the newest backup can be restored."""

import sys
import time
from pathlib import Path

import click

from holdfast.cli.check import problems_of
from holdfast.cli.location import Location
from holdfast.cli.output import (
    FOUND,
    CommandFailure,
    Output,
    counted,
    duration,
    json_option,
    moment,
)
from holdfast.defaults import DEFAULT_SPACE


@click.command("drill")
@click.argument("backups")
@click.option(
    "--max-age",
    type=click.FloatRange(min=0, min_open=True),
    metavar="HOURS",
    help="Fail if the newest backup is older than this.",
)
@click.option(
    "--scratch",
    metavar="DIR",
    help="Where to restore; removed afterwards.  [default: the system's temporary folder]",
)
@json_option
def command(out: Output, backups: str, max_age: float | None, scratch: str | None) -> None:
    """Prove that the newest backup below BACKUPS can be restored.

    BACKUPS is a folder that `holdfast backup --keep` writes to, or one backup. It is restored into
    a temporary folder, compared with the number of keys and the digest in the backup, checked as
    `holdfast check` does, and removed. Exits with 3 if the backup does not hold what it should, or
    is too old.

    Example: holdfast drill backups --max-age 26
    """
    import tempfile

    found, made = _newest(Path(backups), out)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="holdfast-drill-", dir=scratch) as folder:
        keys, problems = _restored(found, Path(folder) / "data", out)
    seconds = time.monotonic() - begin
    age = None if made is None else max(0.0, time.time() - made)
    if age is not None and max_age is not None and age > max_age * 3600:
        problems.append(f"it is older than {max_age:g} hours")

    def show() -> None:
        for each in problems:
            out.say(f"{found}: {each}")
        dated = "" if made is None else f"of {moment(made)}, {duration(round(age or 0))} old, "
        state = "NOT restorable as it should be" if problems else "verified"
        out.say(f"{found}: {dated}{counted(keys, 'key')}, restored in {seconds:.1f} s, {state}")

    result = {"backup": str(found), "made": made, "age_seconds": age, "keys": keys}
    out.result({**result, "seconds": seconds, "problems": problems}, show)
    if problems:
        sys.exit(FOUND)


def _newest(folder: Path, out: Output) -> tuple[Path, float | None]:
    """Returns the backup to restore, and when it was made if its name says so."""
    from holdfast.backup_folder import backups_in
    from holdfast.engine.lmdb.environment import CHANGES_FILE, DATA_FILE

    if not folder.is_dir():
        raise CommandFailure("no_backup", f"there is no folder {folder}", "", is_json=out.is_json)
    if (folder / DATA_FILE).exists() or (folder / CHANGES_FILE).exists():
        return folder, None
    listed = backups_in(folder)
    if not listed:
        hint = f"Make one: holdfast backup --data DIR {folder} --keep 7d,4w,12m"
        raise CommandFailure(
            "no_backup", f"there is no backup in {folder}", hint, is_json=out.is_json
        )
    return folder / listed[0].name, listed[0].made


def _restored(backup: Path, target: Path, out: Output) -> tuple[int, list[str]]:
    """Restores a backup; returns how many keys it has, and what is wrong with it."""
    from holdfast.engine.lmdb.restore import restore
    from holdfast.errors import StoreUnusable

    try:
        with out.progress("restore"):
            has_digest = restore(backup, target)
    except StoreUnusable as error:
        return 0, [error.message]
    location = Location(data=str(target), url=None, token=None, space=DEFAULT_SPACE)
    with location.open() as opened:
        spaces = opened.space.admin.spaces().spaces
        keys, found = problems_of(opened, spaces, out)
    problems = [f"{each['space'] or 'the engine'}: {each['problem']}" for each in found]
    if not has_digest:
        problems.append("it has no digest to be compared with: it was written to, or is old")
    return keys, problems
