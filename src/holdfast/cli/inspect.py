"""`holdfast inspect`: shows stored keys in a readable form."""

import click

from holdfast.cli.location import Location, location_options
from holdfast.cli.output import Output


@click.command("inspect")
@click.argument("prefix", metavar="[KEY-PREFIX]", default="")
@click.option(
    "--limit", type=int, default=100, show_default=True, metavar="N", help="How many keys to show."
)
@click.option("--after", metavar="POSITION", help="Continue after the position printed last.")
@location_options
def command(location: Location, out: Output, prefix: str, limit: int, after: str | None) -> None:
    """Show the stored keys that begin with KEY-PREFIX, and what they hold.

    A prefix is a layer (expiry, tables, entities, events, jobs, metrics), followed by parts of
    keys: names, numbers, quoted texts and tuples. The names are listed at the top of the layer's
    layout.py.

    Example: holdfast inspect --data data "jobs, job, 'receipt-1001'"
    """
    with location.open() as opened:
        page = opened.space.admin.inspect(prefix, limit=limit, after=after)

    def show() -> None:
        for entry in page.entries:
            out.say(f"{entry.key} = {entry.value}" if entry.value else entry.key)
        if page.next is not None:
            out.note(f"There may be more: --after {page.next}")

    out.result(page, show)
