"""`holdfast status`: shows a store at a glance."""

import click

from holdfast.cli.location import Location, location_options
from holdfast.cli.output import Output, age, counted, size


@click.command("status")
@location_options
def command(location: Location, out: Output) -> None:
    """Show a store at a glance: its size, its spaces, and what is in one of them.

    Example: holdfast status --data data --space shop
    """
    with location.open() as opened:
        status = opened.space.admin.status()

    def show() -> None:
        figures = status.store
        about = [counted(figures["keys"], "key")] if "keys" in figures else []
        about += [size(figures["file_bytes"])] if "file_bytes" in figures else []
        out.say(
            f"Holdfast {status.version}: {', '.join([*about, counted(status.spaces, 'space')])}"
        )
        rows = [
            ("entities", name, counted(count, "entity")) for name, count in status.entities.items()
        ]
        for name, (done, total) in status.building.items():
            rows.append(("entities", name, f"index, {done:,} of {total:,} entities are in it"))
        rows += [("tables", name, counted(count, "row")) for name, count in status.tables.items()]
        for queue in status.queues:
            words = f"{queue.waiting:,} waiting, {queue.running:,} running, "
            words += f"{queue.scheduled:,} scheduled, {queue.stalled:,} stalled"
            words += ", paused" if queue.paused else ""
            words += f", limited for {queue.limited:.0f} s" if queue.limited else ""
            rows.append(("jobs", queue.name, words))
        for failed in status.failed:
            words = f"{counted(failed.jobs, 'failed job')}, the newest {age(failed.when)} ago"
            rows.append(("jobs", failed.group, f"{words}: {failed.message}"))
        rows += [("events", name, "schema") for name in status.events]
        rows += [("metrics", name, "metric") for name in status.metrics]
        if rows:
            out.table(("layer", f"in {status.space}", ""), rows)
        else:
            out.say(f"The space {status.space} is empty.")

    out.result(status, show)
