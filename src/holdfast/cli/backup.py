"""`holdfast backup`: a copy that can be trusted."""

import click

from holdfast.cli.location import Location, store_options
from holdfast.cli.output import Output, counted, size


@click.command("backup")
@click.argument("target")
@store_options
def command(location: Location, out: Output, target: str) -> None:
    """Copy a store into the folder TARGET, and verify the copy.

    The copy is one snapshot, made while others write, and opens as a store of its own. It is read
    back and compared before it gets its name. A server writes it below the folder that it was
    started
    with (`holdfast serve --backups DIR`); there TARGET is a name alone.

    Example: holdfast backup --data data backups/monday
    """
    with location.open() as opened, out.progress("backup"):
        report = opened.space.admin.backup(target)
    out.result(
        report,
        lambda: out.say(
            f"{report.target}: {counted(report.keys, 'key')}, {size(report.bytes)}, verified"
        ),
    )
