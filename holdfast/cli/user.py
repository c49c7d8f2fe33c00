"""`holdfast user`: who may use a server, and for what."""

import sys
from pathlib import Path

import click

import holdfast
from holdfast.errors import HoldfastError, StoreBusy
from holdfast.server.auth import ROLES, Grant, add_user, remove_user, users_of

_data = click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default="data",
    show_default=True,
    help="The folder of the store; a server may be running on it.",
)


@click.group()
def user() -> None:
    """Add, remove and list the users of a store.

    While a store has no users, everyone on this machine may use its server, and nobody else.
    Servers that run hear of every change at once.
    """


@user.command("add")
@_data
@click.argument("name")
@click.option(
    "--grant",
    "grants",
    multiple=True,
    metavar="ROLE[:SPACE[:LAYER]]",
    help="read, write or admin; in one space, or * for all; in one layer. May be repeated.",
)
@click.option("--password", is_flag=True, help="Ask for a password instead of making a token.")
def add(data: Path, name: str, grants: tuple[str, ...], password: bool) -> None:
    """Add a user, or replace one, and print its token.

    Example: holdfast user add web --grant write:shop --grant read:*:metrics
    """
    chosen = tuple(_grant(text) for text in grants or ("write",))
    secret = _ask() if password else None
    with _open(data) as store:
        try:
            token = add_user(store.engine, name, secret, chosen)
        except HoldfastError as error:
            raise click.ClickException(str(error)) from None
    if token is not None:
        click.echo(token)
        click.echo("This is the only time that the token is shown.", err=True)


@user.command("remove")
@_data
@click.argument("name")
def remove(data: Path, name: str) -> None:
    """Remove a user. Open connections of theirs stay open until they end."""
    with _open(data) as store:
        if not remove_user(store.engine, name):
            raise click.ClickException(f"there is no user {name!r}")


@user.command("list")
@_data
def list_users(data: Path) -> None:
    """List the users with their grants."""
    with _open(data) as store:
        for each in users_of(store.engine):
            grants = " ".join(f"{grant.role}:{grant.space}:{grant.layer}" for grant in each.grants)
            click.echo(f"{each.name}  {'token' if each.token else 'password'}  {grants}")


def _open(data: Path) -> holdfast.Store:
    """The store, with the durability that a server on it has."""
    try:
        try:
            return holdfast.open(data)
        except StoreBusy:
            return holdfast.open(data, durability="interval")
    except HoldfastError as error:
        raise click.ClickException(str(error)) from None


def _grant(text: str) -> Grant:
    role, _, rest = text.partition(":")
    space, _, layer = rest.rpartition(":") if ":" in rest else (rest, "", "")
    if role not in ROLES:
        raise click.ClickException(f"{role!r} is no role; there are {', '.join(ROLES)}")
    return Grant(role=role, space=space or "*", layer=layer or "*")  # type: ignore[arg-type]  # one of ROLES


def _ask() -> str:
    """The password: typed twice on a terminal, one line otherwise."""
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise click.ClickException("no password came on standard input")
    return given
