"""The store that a command works on: in a folder, or on a running server, whichever is given."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

import click
from click.core import ParameterSource

from holdfast.cli.output import CommandFailure, json_option
from holdfast.cli.settings import SETTINGS, settings
from holdfast.defaults import DEFAULT_SPACE

if TYPE_CHECKING:
    from holdfast.client.client import Client, ClientSpace
    from holdfast.store import Durability, Space, Store

P = ParamSpec("P")
T = TypeVar("T")

CALL_SECONDS: Final = 60.0  # for one call to a server: a step of a check reads much

# If both a folder and a server are given, the one from the stronger source wins.
_EXPLICITNESS = {
    ParameterSource.COMMANDLINE: 3,
    ParameterSource.ENVIRONMENT: 2,
    ParameterSource.DEFAULT_MAP: 1,
}


class Opened:
    """An open store: the chosen space, and a way to open others."""

    def __init__(
        self, store: "Store | Client", space: "Space | ClientSpace", *, is_server: bool
    ) -> None:
        self._store = store
        # Both have the same methods, and the commands use no others: one type serves for both.
        self.space = cast("Space", space)
        self.is_server = is_server

    def at(self, name: str) -> "Space":
        """Returns another space of the same store."""
        return self.space if name == self.space.name else cast("Space", self._store.space(name))


class Location:
    """A folder or a server, not opened yet."""

    def __init__(self, *, data: str, url: str | None, token: str | None, space: str) -> None:
        self.data = data
        self.url = url
        self.token = token
        self.space = space
        self.names_space = False  # whether --space was given

    @contextmanager
    def open(self, *, creates: bool = False) -> Iterator[Opened]:
        """Opens the store for one command. Without `creates`, a missing store or space is an
        error."""
        if self.url is not None:
            with _connect(self.url, self.token) as client:
                name = self.space if self.names_space else client.name
                if not creates:
                    _refuse_unknown_there(client, name)
                yield Opened(client, client.space(name), is_server=True)
            return
        with open_store(self.data, creates=creates) as store:
            if not creates:
                _refuse_unknown(store.spaces(), self.space)
            is_own = self.space == store.name
            space = store if is_own else store.space(self.space, create=False)
            yield Opened(store, space, is_server=False)

    def refuse_server(self, why: str) -> None:
        """Raises for a command that a server can't do."""
        if self.url is not None:
            raise CommandFailure("not_on_a_server", why, "Give --data FOLDER.", is_json=_is_json())


def location_options(command: Callable[Concatenate[Location, P], T]) -> Callable[..., T]:
    """Adds --data, --url, --token, --space and --json; the command gets a `Location`."""
    return settings("data", "url", "token", "space")(_with_location(command))


def store_options(command: Callable[Concatenate[Location, P], T]) -> Callable[..., T]:
    """Like `location_options`, without --space, for a command about the whole store."""
    return settings("data", "url", "token")(_with_location(command))


def any_space_options(command: Callable[Concatenate[Location, P], T]) -> Callable[..., T]:
    """Like `location_options`, for a command about all spaces, or the one that --space names."""
    one = SETTINGS["space"]._replace(help="Only this space.  [default: all]", shows_default=False)
    return settings("data", "url", "token", one)(_with_location(command))


def folder_options(command: Callable[Concatenate[Location, P], T]) -> Callable[..., T]:
    """Adds --data and --json, for a command that no server can do; a --url is refused."""
    url = SETTINGS["url"]._replace(is_hidden=True)
    return settings("data", url)(_with_location(command))


def _with_location(command: Callable[Concatenate[Location, P], T]) -> Callable[..., T]:
    def call(
        data: str,
        url: str | None,
        token: str | None = None,
        space: str = DEFAULT_SPACE,
        **more: Any,
    ) -> T:
        ctx = click.get_current_context()
        chosen = _more_explicit(ctx, url)
        location = Location(
            data=data, url=url if chosen == "url" else None, token=token, space=space
        )
        location.names_space = ctx.get_parameter_source("space") in _EXPLICITNESS
        return command(location, **more)  # type: ignore[call-arg]  # click knows the rest

    update_wrapper(call, command)
    return json_option(call)


def _more_explicit(ctx: click.Context, url: str | None) -> str:
    strengths = {
        name: _EXPLICITNESS.get(ctx.get_parameter_source(name) or ParameterSource.DEFAULT, 0)
        for name in ("data", "url")
    }
    if url is None or strengths["data"] > strengths["url"]:
        return "data"
    if strengths["data"] == strengths["url"]:
        raise click.UsageError("--data and --url name two stores: give one of them")
    return "url"


def open_store(data: str, *, creates: bool = False) -> "Store":
    """Returns the store, opened with the durability of the processes that already use it."""
    from holdfast.store import open

    if not creates:
        refuse_missing(data)
    return with_durability_of_others(lambda durability: open(data, durability=durability))


def with_durability_of_others(open: "Callable[[Durability], T]") -> T:
    """Opens a folder with the durability of the processes that already use it."""
    from holdfast.errors import StoreBusy

    try:
        return open("commit")
    except StoreBusy as busy:
        try:
            return open("interval")
        except StoreBusy:
            raise busy from None


def refuse_missing(
    data: str,
    hint: str = "Name its folder with --data, or a server with --url.",
    names: tuple[str, ...] = ("data.mdb",),
) -> None:
    """Raises if there is no store: a command that only reads should not create one."""
    if "://" in data:
        return
    folder = Path(data.removeprefix("lmdb:"))
    if not any((folder / name).exists() for name in names):
        raise CommandFailure(
            "no_store",
            f"there is no store in {folder}",
            hint,
            is_json=_is_json(),
        )


def _refuse_unknown(names: list[str], name: str) -> None:
    from holdfast.cli.settings import suggestion

    if name not in names:
        words = suggestion(name, set(names)).removeprefix(", ").removeprefix("; ")
        raise CommandFailure(
            "unknown_space",
            f"there is no space {name!r}",
            f"{words[0].upper()}{words[1:]}",
            is_json=_is_json(),
        )


def _refuse_unknown_there(client: "Client", name: str) -> None:
    """Refuses an unknown space of a server, for users who may list its spaces."""
    from holdfast.errors import Forbidden

    try:
        names = client.admin.spaces().spaces
    except Forbidden:
        return
    _refuse_unknown(names, name)


def server_url(url: str, token: str | None) -> str:
    """Returns the URL of a server with the token in it, unless it has a user already."""
    from urllib.parse import quote

    scheme, separator, rest = url.partition("://")
    if token is None or "@" in rest.partition("/")[0]:
        return url
    return f"{scheme}{separator}default:{quote(token, safe='')}@{rest}"


def _connect(url: str, token: str | None) -> "Client":
    """Connects with time for what takes long, unless the URL says otherwise."""
    from holdfast.client import connect

    url = server_url(url, token)
    return connect(url, timeout=None if "timeout=" in url else CALL_SECONDS)


def _is_json() -> bool:
    return bool(click.get_current_context().find_root().meta.get("holdfast.json", False))
