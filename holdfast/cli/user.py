"""`holdfast user`: who may use a server, and for what."""

import sys

import click

from holdfast.cli.output import Failure, Output
from holdfast.cli.place import Place, place_options


@click.group("user")
def command() -> None:
    """Add, remove and list the users of a store.

    While a store has no users, everyone on this machine may use its server, and nobody else.
    Servers that run hear of every change at once.

    Example: holdfast user add web --data data --grant write:shop
    """


@command.command("add")
@click.argument("name")
@click.option(
    "--grant",
    "grants",
    multiple=True,
    metavar="ROLE[:SPACE[:LAYER]]",
    help="read, write or admin; in one space, or * for all; in one layer. May be repeated.",
)
@click.option("--password", is_flag=True, help="Ask for a password instead of making a token.")
@place_options
def add(place: Place, out: Output, name: str, grants: tuple[str, ...], password: bool) -> None:
    """Add the user NAME, or replace it, and print its token.

    Example: holdfast user add web --data data --grant write:shop --grant read:*:metrics
    """
    from holdfast.users import Grant

    chosen = grants or ("write",)
    for grant in chosen:
        Grant.parse(grant)  # before anyone types a password
    secret = _ask() if password else None
    with place.open(creates=True) as opened:
        user = opened.space.admin.add_user(name, chosen, password=secret)

    def show() -> None:
        if user.token is not None:
            out.say(user.token)
            out.note("This is the only time that the token is shown.")

    out.result(user, show)


@command.command("remove")
@click.argument("name")
@place_options
def remove(place: Place, out: Output, name: str) -> None:
    """Remove the user NAME. Servers that run let them do nothing more, also where they are in.

    Example: holdfast user remove web --data data
    """
    with place.open() as opened:
        if not opened.space.admin.remove_user(name):
            raise Failure(
                "unknown_user",
                f"there is no user {name!r}",
                "`holdfast user list` shows all.",
                is_json=out.is_json,
            )
    out.result({"removed": name}, lambda: None)


@command.command("list")
@place_options
def list_users(place: Place, out: Output) -> None:
    """List the users with their grants.

    Example: holdfast user list --data data
    """
    with place.open() as opened:
        users = opened.space.admin.users()
    out.result(
        {"users": users},
        lambda: (
            out.say(
                "\n".join(f"{user.name}  {user.login}  {' '.join(user.grants)}" for user in users)
            )
            if users
            else out.note("no users: everyone on this machine may use its server, and nobody else")
        ),
    )


def _ask() -> str:
    """The password: typed twice on a terminal, one line otherwise."""
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise click.ClickException("no password came on standard input")
    return given
