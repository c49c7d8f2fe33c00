"""`holdfast backup`: makes a verified copy, or the next one in a folder of dated backups."""

from functools import partial

import click

from holdfast.cli.location import Location, open_store, store_options
from holdfast.cli.output import Output, counted, size


@click.command("backup")
@click.argument("target")
@click.option(
    "--keep",
    metavar="COUNTS",
    help="Write a dated backup below TARGET, then remove old ones: 7d,4w,12m keeps the newest of "
    "7 days, 4 weeks and 12 months (also h and y).",
)
@click.option(
    "--incremental",
    is_flag=True,
    help="With --keep: write only what differs from the newest full backup. A full one is made "
    "every week, or when much has changed.",
)
@store_options
def command(
    location: Location, out: Output, target: str, keep: str | None, incremental: bool
) -> None:
    """Copy a store into the folder TARGET, and verify the copy.

    The copy is one snapshot, made while others write, and opens as a store itself. It is read
    back and compared before it gets its name. With --url, the server writes it below the folder
    that it was started with (`holdfast serve --backups DIR`), and TARGET is just a name; with
    --keep it is downloaded, and TARGET is a folder here.

    Example: holdfast backup --data data backups --keep 7d,4w,12m
    """
    if keep is not None:
        _make_dated(location, out, target, keep, is_incremental=incremental)
        return
    if incremental:
        raise click.UsageError("--incremental needs --keep, and a folder of dated backups")
    with location.open() as opened, out.progress("backup"):
        report = opened.space.admin.backup(target)
    out.result(
        report,
        lambda: out.say(
            f"{report.target}: {counted(report.keys, 'key')}, {size(report.bytes)}, verified"
        ),
    )


def _make_dated(
    location: Location, out: Output, target: str, keep: str, *, is_incremental: bool
) -> None:
    import time
    from pathlib import Path

    from holdfast.backup_folder import (
        backups_in,
        keep_download,
        make_backup,
        parse_keep,
        remove_old,
    )

    folder, rules = Path(target), parse_keep(keep)
    if location.url is None:
        with open_store(location.data) as store, out.progress("backup"):
            made = make_backup(store.engine, folder, now=time.time(), is_incremental=is_incremental)
    else:
        from holdfast.cli.backup_download import download

        with location.open() as opened, out.progress("backup") as tell:
            fetch = partial(download, opened.space.admin, tell=tell, is_json=out.is_json)
            made = keep_download(fetch, folder, now=time.time(), is_incremental=is_incremental)
    removed = remove_old(folder, rules)
    listed = backups_in(folder)

    def show() -> None:
        kind = f"changes since {made.base}" if made.base else "full"
        out.say(f"{folder / made.name}: {kind}, {size(made.bytes)}, verified")
        out.say(f"{counted(len(listed), 'backup')} kept, {len(removed)} removed")

    out.result({"made": made, "removed": removed, "kept": listed}, show)
