"""`holdfast restore`: a store out of a backup."""

import click

from holdfast.cli.output import Output, size
from holdfast.cli.place import Place, place_options, refuse_missing


@click.command("restore")
@click.argument("backup")
@place_options
def command(place: Place, out: Output, backup: str) -> None:
    """Make the store in --data of the folder BACKUP, and verify it.

    The folder must be new or empty: a store that is there is never overwritten. What was written
    is read back and compared, and then checked as `holdfast check` does. To restore into another
    engine, use `holdfast copy BACKUP URL`.

    Example: holdfast restore backups/monday --data data
    """
    place.refuse_server("a server's own store can't be replaced while it runs")
    if "://" in place.data:
        raise click.UsageError("restore writes a folder; use `holdfast copy` for other engines")
    from pathlib import Path

    from holdfast.engine import open_engine
    from holdfast.errors import StoreDamaged

    refuse_missing(backup)
    target = Path(place.data)
    with out.progress("restore"):
        source = open_engine(backup)
        try:
            source.backup(target)
        finally:
            source.close()
        engine = open_engine(target)
        try:
            problems = engine.check()
            keys = engine.stats()["keys"]
        finally:
            engine.close()
    if problems:
        raise StoreDamaged(f"{backup} is damaged: {problems[0]}", hint="Restore an older backup.")
    written = sum(each.stat().st_size for each in target.iterdir())
    out.result(
        {"target": str(target), "keys": keys, "bytes": written},
        lambda: out.say(f"{target}: {keys:,} keys, {size(written)}, verified"),
    )
