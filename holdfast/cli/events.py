"""`holdfast events`: deploy a schema, send events, and see what an event would do."""

import sys
from collections.abc import Iterator
from typing import IO, Any

import click
import msgspec

from holdfast.errors import HoldfastError, InvalidSchema
from holdfast.store import Space, open

_DATA = click.option(
    "--data", default="data", show_default=True, metavar="DIR", help="The folder of the store."
)
_SPACE = click.option("--space", default="default", show_default=True, metavar="NAME")
_FILE = click.argument("file", type=click.File("rb"), default="-")


@click.group()
def events() -> None:
    """Events: deploy schemas, send events, explain what they do."""


@events.command()
@_DATA
@_SPACE
@click.option("--name", default="default", show_default=True, help="The name of the schema.")
@_FILE
def deploy(data: str, space: str, name: str, file: IO[bytes]) -> None:
    """Puts the schema in FILE (JSON or YAML, standard input by default) into force."""
    with _Space(data, space) as opened:
        opened.events.deploy(file.read(), name)
    click.echo(f"deployed {name}")


@events.command()
@_DATA
@_SPACE
@_FILE
def send(data: str, space: str, file: IO[bytes]) -> None:
    """Sends the events in FILE (standard input by default).

    FILE holds one event, a JSON array of them, or one event on each line, of any number.
    """
    with _Space(data, space) as opened:
        reply = opened.events.send_stream(_events(file))
    click.echo(f"accepted {reply.accepted}")
    for error in reply.errors:
        click.echo(f"event {error.position}: {error.message}", err=True)
    if reply.errors:
        sys.exit(1)


@events.command()
@_DATA
@_SPACE
@_FILE
def explain(data: str, space: str, file: IO[bytes]) -> None:
    """Shows what the event in FILE (standard input by default) would do. Nothing is written."""
    with _Space(data, space) as opened:
        for event in _events(file):
            explanation = opened.events.explain(event)
            click.echo(msgspec.json.format(msgspec.json.encode(explanation)))


class _Space:
    """A space of the store in a folder, for one command; what goes wrong is said in a line each."""

    def __init__(self, data: str, space: str) -> None:
        self._data = data
        self._space = space

    def __enter__(self) -> Space:
        self._store = open(self._data)
        return self._store.space(self._space)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._store.close()
        if isinstance(error, InvalidSchema):
            click.echo("\n".join(error.problems), err=True)
            sys.exit(1)
        if isinstance(error, HoldfastError | msgspec.DecodeError):
            click.echo(str(error), err=True)
            sys.exit(1)


def _events(file: IO[bytes]) -> Iterator[Any]:
    """One event, those of an array, or one from each line: whichever the first line begins."""
    first = file.readline()
    while first and not first.strip():
        first = file.readline()
    try:
        whole = msgspec.json.decode(first)
    except msgspec.DecodeError:
        whole = msgspec.json.decode(first + file.read())
    if isinstance(whole, list):
        yield from whole
        return
    yield whole
    for line in file:
        if line.strip():
            yield msgspec.json.decode(line)
