"""`holdfast recover`: opens a store whose log or seal is damaged, with what is left of it."""

import sys

import click

from holdfast.cli.location import Location, folder_options, refuse_missing
from holdfast.cli.output import FOUND, Output, counted


@click.command("recover")
@click.argument("folder", required=False)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Discard what is damaged. Commits that were stored only there are lost.",
)
@folder_options
def command(location: Location, out: Output, folder: str | None, accept_loss: bool) -> None:
    """Report the damage in a store that does not open, and recover the rest.

    Examines the log of commits that are not yet in the data file, the seal of a closed store, and
    its checkpoint. Changes nothing without --accept-loss. With it, log records before the damage
    are kept, later ones are lost, and both are counted. A damaged data file can't be repaired:
    restore a backup. Exits with 3 if there is damage and nothing was changed.

    Example: holdfast recover data --accept-loss
    """
    location.refuse_server("a server's own store can't be recovered while it runs")
    data = location.data if folder is None else folder
    if "://" in data:
        raise click.UsageError("recover works on folders; other engines manage their own logs")
    from pathlib import Path

    from holdfast.engine.lmdb.recovery import recover

    refuse_missing(data, "Name the folder of a store.")
    with out.progress("recover"):
        found = recover(Path(data.removeprefix("lmdb:")), accept_loss=accept_loss)

    def show() -> None:
        for problem in found.problems:
            out.say(problem)
        if not found.problems:
            out.say(f"{data}: nothing is wrong with its log, seal and checkpoint")
            return
        records = f"{counted(found.applied, 'record')} of the log"
        lost = f"at least {counted(found.lost, 'record')}" if found.lost else "what it held besides"
        if found.recovered:
            out.say(f"{data}: {records} applied, {lost} lost. Run `holdfast check` next.")
        else:
            out.say(f"With --accept-loss, {records} would be applied, and {lost} would be lost.")

    out.result(found, show)
    if found.problems and not found.recovered:
        sys.exit(FOUND)
