"""`holdfast events`: deploy a schema, send events, and see what an event would do."""

import sys
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import click

from holdfast.cli.files import read_file, reading
from holdfast.cli.output import FOUND, Output, many
from holdfast.cli.place import Place, place_options

_FILE = click.argument("file", default="-")
_PER_CALL = 1_000  # events that are sent together


@click.group("events")
def command() -> None:
    """Deploy event schemas, send events, explain what they do.

    Example: holdfast events deploy --data data shop.yaml
    """


@command.command("deploy")
@click.option("--name", default="default", show_default=True, help="The name of the schema.")
@_FILE
@place_options
def deploy(place: Place, out: Output, name: str, file: str) -> None:
    """Put the schema in FILE (JSON or YAML, standard input by default) into force.

    Example: holdfast events deploy --data data shop.yaml
    """
    schema = read_file(file)
    with place.open(creates=True) as opened:
        opened.space.events.deploy(schema, name)
    out.result({"deployed": name}, lambda: out.say(f"deployed {name}"))


@command.command("send")
@_FILE
@place_options
def send(place: Place, out: Output, file: str) -> None:
    """Send the events in FILE (standard input by default).

    FILE holds one event, a JSON array of them, or one event on each line, of any number. Events
    that are refused are named by their position, and the others count; then the exit code is 3.

    Example: holdfast events send --data data events.ndjson
    """
    accepted, seen = 0, 0
    errors: list[tuple[int, str]] = []
    with place.open(creates=True) as opened, reading(file) as source, out.progress("send") as tell:
        events = _events(source)
        while portion := list(islice(events, _PER_CALL)):
            bad = {at: each for at, each in enumerate(portion, seen) if isinstance(each, _BadLine)}
            good = [at for at in range(seen, seen + len(portion)) if at not in bad]
            reply = opened.space.events.send_many([portion[at - seen] for at in good])
            accepted += reply.accepted
            refused = [(good[error.position], error.message) for error in reply.errors]
            errors += sorted([*refused, *((at, str(each)) for at, each in bad.items())])
            seen += len(portion)
            tell(seen)

    def show() -> None:
        out.say(f"accepted {many(accepted, 'event')}")
        for position, message in errors:
            out.note(f"event {position}: {message}")

    listed = [{"position": position, "message": message} for position, message in errors]
    out.result({"accepted": accepted, "errors": listed}, show)
    if errors:
        sys.exit(FOUND)


@command.command("explain")
@_FILE
@place_options
def explain(place: Place, out: Output, file: str) -> None:
    """Show what the events in FILE (standard input by default) would do. Nothing is written.

    Example: echo '{"name": "shop:view"}' | holdfast events explain --data data
    """
    with place.open() as opened, reading(file) as source:
        explanations = [opened.space.events.explain(_good(event)) for event in _events(source)]

    def show() -> None:
        for each in explanations:
            out.say(f"{each.name}{' (seen before)' if each.duplicate else ''}")
            for handler in each.handlers:
                missing = f"no attribute {handler.missing}" if handler.missing else ""
                why = handler.error or missing
                keys = ", ".join(handler.keys)
                words = f"skipped: {why}" if why else f"{handler.operation} {keys}"
                out.say(f"  {handler.handler}: {words}".rstrip())

    out.result({"explanations": explanations}, show)


class _BadLine(click.ClickException):
    """A line that is no JSON."""


def _good(event: Any) -> Any:
    if isinstance(event, _BadLine):
        raise event
    return event


def _events(file: IO[bytes]) -> Iterator[Any]:
    """One event, those of an array, or one from each line: whichever the first line begins.

    Of lines, one that is no JSON comes as a `_BadLine`.
    """
    first = file.readline()
    while first and not first.strip():
        first = file.readline()
    if not first:
        return
    whole = _decoded(first)
    if isinstance(whole, _BadLine):
        whole = _good(_decoded(first + file.read()))
    if isinstance(whole, list):
        yield from whole
        return
    yield whole
    for line in file:
        if line.strip():
            yield _decoded(line)


def _decoded(text: bytes) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except RecursionError:
        return _BadLine("the events are not JSON: nested too deeply")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _BadLine(f"the events are not JSON: {error}")
