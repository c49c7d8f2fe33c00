"""`holdfast status`: a store at a glance."""

import click

from holdfast.cli.output import Output, many, size
from holdfast.cli.place import Place, place_options


@click.command("status")
@place_options
def command(place: Place, out: Output) -> None:
    """Show a store at a glance: its size, its spaces, and what is in one of them.

    Example: holdfast status --data data --space shop
    """
    with place.open() as opened:
        status = opened.space.admin.status()

    def show() -> None:
        figures = status.store
        about = [many(figures["keys"], "key")] if "keys" in figures else []
        about += [size(figures["file_bytes"])] if "file_bytes" in figures else []
        out.say(f"Holdfast {status.version}: {', '.join([*about, many(status.spaces, 'space')])}")
        rows = [
            ("entities", name, many(count, "entity")) for name, count in status.entities.items()
        ]
        for name, (done, total) in status.building.items():
            rows.append(("entities", name, f"index, {done:,} of {total:,} entities are in it"))
        rows += [("tables", name, many(count, "row")) for name, count in status.tables.items()]
        for queue in status.queues:
            words = f"{queue.waiting:,} waiting, {queue.running:,} running, "
            words += f"{queue.scheduled:,} scheduled, {queue.stalled:,} stalled"
            rows.append(("jobs", queue.name, words + (", paused" if queue.paused else "")))
        rows += [("events", name, "schema") for name in status.events]
        rows += [("metrics", name, "metric") for name in status.metrics]
        if rows:
            out.table(("layer", f"in {status.space}", ""), rows)
        else:
            out.say(f"The space {status.space} is empty.")

    out.result(status, show)
