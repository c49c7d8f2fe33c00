"""`holdfast user`: manages who may use a server, and for what."""

import sys
from typing import TYPE_CHECKING, Final

import click

from holdfast.cli.location import Location, store_options
from holdfast.cli.output import CommandFailure, Output
from holdfast.cli.root_group import CommandGroup

if TYPE_CHECKING:
    from holdfast.admin import NewUser


_grants = click.option(
    "--grant",
    "grants",
    multiple=True,
    required=True,
    metavar="ROLE[:SPACE[:LAYER]]",
    help="read, write or admin; in one space, or * for all; in one layer. May be repeated.",
)


@click.group("user", cls=CommandGroup)
def command() -> None:
    """Add, change, remove and list the users of a store.

    While a store has no users, everyone on this machine may use its server, and nobody else.
    Running servers apply every change at once.

    Example: holdfast user add web --data data --grant write:shop
    """


@command.command("add")
@click.argument("name")
@_grants
@click.option("--password", is_flag=True, help="Ask for a password instead of making a token.")
@click.option("--replace", is_flag=True, help="Replace the user of that name, if there is one.")
@store_options
def add(
    location: Location,
    out: Output,
    name: str,
    grants: tuple[str, ...],
    password: bool,
    replace: bool,
) -> None:
    """Add the user NAME, and print its token.

    Example: holdfast user add web --data data --grant write:shop --grant read:*:metrics
    """
    from holdfast.users import parse_grants

    parse_grants(grants)  # before anyone types a password
    secret = _ask() if password else None
    with location.open(creates=True) as opened:
        user = opened.space.admin.add_user(name, grants, password=secret, replace=replace)
    _show_token(out, user)


@command.command("grant")
@click.argument("name")
@_grants
@store_options
def grant(location: Location, out: Output, name: str, grants: tuple[str, ...]) -> None:
    """Replace the grants of the user NAME. Password and token stay.

    Example: holdfast user grant web --data data --grant read:shop
    """
    with location.open() as opened:
        user = opened.space.admin.grant_user(name, grants)
    out.result(user, lambda: out.say(f"{user.name}  {' '.join(user.grants)}"))


@command.command("token")
@click.argument("name")
@click.option("--revoke", is_flag=True, help="Revoke the token without making a new one.")
@store_options
def token(location: Location, out: Output, name: str, revoke: bool) -> None:
    """Make a new token for the user NAME and print it. The old one stops working at once.

    Example: holdfast user token web --data data
    """
    with location.open() as opened:
        user = opened.space.admin.renew_token(name, revoke=revoke)
    _show_token(out, user)


@command.command("remove")
@click.argument("name")
@store_options
def remove(location: Location, out: Output, name: str) -> None:
    """Remove the user NAME. Running servers refuse it at once, even on open connections.

    Example: holdfast user remove web --data data
    """
    with location.open() as opened:
        if not opened.space.admin.remove_user(name):
            raise CommandFailure(
                "unknown_user",
                f"there is no user {name!r}",
                "`holdfast user list` shows all.",
                is_json=out.is_json,
            )
        is_empty = not opened.is_server and not opened.space.admin.users()
    out.result({"removed": name}, lambda: out.note(_NO_USERS) if is_empty else None)


@command.command("list")
@store_options
def list_users(location: Location, out: Output) -> None:
    """List the users with their grants.

    Example: holdfast user list --data data
    """
    with location.open() as opened:
        users = opened.space.admin.users()
    out.result(
        {"users": users},
        lambda: (
            out.table(
                ("user", "login", "grants"),
                [(user.name, user.login, " ".join(user.grants)) for user in users],
            )
            if users
            else out.note(_NO_USERS)
        ),
    )


_NO_USERS: Final = "no users: a server on loopback accepts everyone, any other server nobody"


def _show_token(out: Output, user: "NewUser") -> None:
    def show() -> None:
        if user.token is not None:
            out.say(user.token)
            out.note("This is the only time that the token is shown.")

    out.result(user, show)


def _ask() -> str:
    """Returns the password: typed twice on a terminal, one line otherwise."""
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise click.ClickException("no password was given on standard input")
    return given
