"""`holdfast space`: lists and drops spaces."""

import click

from holdfast.cli.location import Location, store_options
from holdfast.cli.output import CommandFailure, Output
from holdfast.cli.root_group import CommandGroup


@click.group("space", cls=CommandGroup)
def command() -> None:
    """List and drop spaces. Each space has its own data in every layer.

    Example: holdfast space list --data data
    """


@command.command("list")
@store_options
def list_spaces(location: Location, out: Output) -> None:
    """List all spaces.

    Example: holdfast space list --data data --json
    """
    with location.open() as opened:
        spaces = opened.space.admin.spaces()
    out.result(spaces, lambda: out.say("\n".join(spaces.spaces)))


@command.command("drop")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@store_options
def drop(location: Location, out: Output, name: str, yes: bool) -> None:
    """Remove the space NAME and everything in it.

    It disappears at once for everyone. Its keys are then removed in steps, between other writes.

    Example: holdfast space drop --data data staging --yes
    """
    if not yes:
        with location.open() as opened:
            if name not in opened.space.admin.spaces().spaces:
                raise _unknown(name, out)
        click.confirm(f"Remove the space {name!r} and everything in it?", abort=True, err=True)
    with location.open() as opened, out.progress(f"drop {name}") as tell:
        if opened.is_server:
            found = opened.space.admin.drop_space(name)
        else:
            found = opened.space.admin.drop_space(name, progress=tell)
    if not found:
        raise _unknown(name, out)
    out.result({"dropped": name}, lambda: out.say(f"dropped {name}"))


def _unknown(name: str, out: Output) -> CommandFailure:
    return CommandFailure(
        "unknown_space",
        f"there is no space {name!r}",
        "`holdfast space list` shows all.",
        is_json=out.is_json,
    )
