"""`holdfast copy`: copies a whole store from one engine to another."""

import click

from holdfast.cli.location import refuse_missing, with_durability_of_others
from holdfast.cli.output import Output, counted, json_option


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def command(out: Output, source: str, target: str) -> None:
    """Copy the whole store FROM into the empty store TO, and verify the copy.

    Both are folders or URLs of engines. Nobody may write to FROM during the copy. If a copy is
    interrupted, run it again and it continues; until it is complete, TO can't be opened as a store.
    At the end both sides are compared by their number of keys and a digest of all of them.

    Example: holdfast copy data postgresql://localhost/holdfast
    """
    from holdfast.engine import open_engine
    from holdfast.engine.urls import without_password
    from holdfast.errors import BadInput
    from holdfast.store_copy import copy

    refuse_missing(source, "FROM is the folder of a store, or the URL of an engine.")
    if _is_same_store(source, target):
        raise BadInput("FROM and TO are the same store")
    done = {"copy": 0, "verify": 0}
    engine = with_durability_of_others(lambda chosen: open_engine(source, durability=chosen))
    try:
        total = engine.stats().get("keys")
        into = open_engine(target)
        try:
            with out.progress("copy", total=2 * total if total else None) as tell:

                def progress(phase: str, keys: int) -> None:
                    done[phase] += keys
                    tell(sum(done.values()))

                copied = copy(engine, into, name=_full_name(source), progress=progress)
        finally:
            into.close()
    finally:
        engine.close()
    out.result(
        copied,
        lambda: out.say(
            f"{without_password(target)}: {counted(copied.keys, 'key')} "
            f"in {counted(copied.spaces, 'space')}, "
            f"{copied.written:,} written, verified, digest {copied.digest}"
        ),
    )


def _is_same_store(source: str, target: str) -> bool:
    if "://" in source or "://" in target:
        return source == target
    return _full_name(source) == _full_name(target)


def _full_name(store: str) -> str:
    """Returns the name of a store that means the same in every working directory."""
    from pathlib import Path

    from holdfast.engine.urls import without_password

    if "://" in store:
        return without_password(store)
    return str(Path(store.removeprefix("lmdb:")).resolve())
