"""`holdfast events`: deploy a schema, send events, and read what they add up to."""

import sys
from collections.abc import Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import click

from holdfast.cli import charts
from holdfast.cli.files import read_file, reading
from holdfast.cli.location import Location, location_options
from holdfast.cli.output import FOUND, Output, counted, moment
from holdfast.cli.root_group import Group

if TYPE_CHECKING:
    from holdfast.events.reads import By

_FILE = click.argument("file", default="-")
_PER_CALL = 1_000  # events that are sent together


@click.group("events", cls=Group)
def command() -> None:
    """Deploy event schemas, send events, read what they add up to.

    Example: holdfast events deploy --data data shop.yaml
    """


@command.command("deploy")
@click.option("--name", default="default", show_default=True, help="The name of the schema.")
@_FILE
@location_options
def deploy(location: Location, out: Output, name: str, file: str) -> None:
    """Put the schema in FILE (JSON or YAML, standard input by default) into force.

    Example: holdfast events deploy --data data shop.yaml
    """
    schema = read_file(file)
    with location.open(creates=True) as opened:
        opened.space.events.deploy(schema, name)
    out.result({"deployed": name}, lambda: out.say(f"deployed {name}"))


@command.command("send")
@_FILE
@location_options
def send(location: Location, out: Output, file: str) -> None:
    """Send the events in FILE (standard input by default).

    FILE holds one event, a JSON array of them, or one event on each line, of any number. Events
    that are refused are named by their position, and the others count; then the exit code is 3.

    Example: holdfast events send --data data events.ndjson
    """
    accepted, seen = 0, 0
    errors: list[tuple[int, str]] = []
    with (
        location.open(creates=True) as opened,
        reading(file) as source,
        out.progress("send") as tell,
    ):
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
        out.say(f"accepted {counted(accepted, 'event')}")
        for position, message in errors:
            out.note(f"event {position}: {message}")

    listed = [{"position": position, "message": message} for position, message in errors]
    out.result({"accepted": accepted, "errors": listed}, show)
    if errors:
        sys.exit(FOUND)


@command.command("explain")
@_FILE
@location_options
def explain(location: Location, out: Output, file: str) -> None:
    """Show what the events in FILE (standard input by default) would do. Nothing is written.

    Example: echo '{"name": "shop:view"}' | holdfast events explain --data data
    """
    with location.open() as opened, reading(file) as source:
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


@command.command("keys")
@click.argument("prefix", default="")
@click.option(
    "--count", type=click.IntRange(1, 1_000), default=100, show_default=True, help="How many."
)
@location_options
def keys(location: Location, out: Output, prefix: str, count: int) -> None:
    """List the keys that events have written, those that begin with PREFIX.

    Example: holdfast events keys --data data visitors:
    """
    with location.open() as opened:
        page = opened.space.events.keys(prefix, count)
    rows = [(each.key, each.kind) for each in page.keys]
    out.result(page, lambda: out.table(("key", "kind"), rows))


@command.command("top")
@click.argument("key")
@click.option(
    "--count", type=click.IntRange(min=1), default=10, show_default=True, help="How many."
)
@location_options
def top(location: Location, out: Output, key: str, count: int) -> None:
    """Rank the values of the leaderboard KEY.

    Example: holdfast events top --data data buyers
    """
    with location.open() as opened:
        found = opened.space.events.top(key, count)
    rows = [(each.value, each.count) for each in found]
    out.result({"top": found}, lambda: charts.ranking(out, ("value", "count"), rows))


@command.command("members")
@click.argument("key")
@click.option(
    "--count", type=click.IntRange(1, 1_000), default=25, show_default=True, help="How many."
)
@click.option("--after", metavar="PLACE", help="Go on behind the place that was printed last.")
@location_options
def members(location: Location, out: Output, key: str, count: int, after: str | None) -> None:
    """List the members of the set KEY, newest first, with the time of their last event.

    Example: holdfast events members --data data ann:followers
    """
    with location.open() as opened:
        page = opened.space.events.members(key, count, after)
    rows = [(each.value, moment(each.at / 1000)) for each in page.members]

    def show() -> None:
        out.table(("value", "at"), rows)
        if page.next is not None:
            out.note(f"There are more: --after {page.next}")

    out.result(page, show)


@command.command("count")
@click.argument("key")
@location_options
def count(location: Location, out: Output, key: str) -> None:
    """Print how many events KEY has counted, and how many different values.

    Example: holdfast events count --data data ann:followers
    """
    with location.open() as opened:
        gross = opened.space.events.gross(key)
        distinct = opened.space.events.distinct(key)
    about = "" if distinct.exact else "about "
    report = {"key": key, "gross": gross, "distinct": distinct.count, "exact": distinct.exact}
    out.result(report, lambda: out.say(f"{gross:,} in all, {about}{distinct.count:,} different"))


@command.command("series")
@click.argument("template")
@click.option("--from", "begin", required=True, metavar="DATE", help="The first step.")
@click.option("--to", "end", required=True, metavar="DATE", help="The last step.")
@click.option(
    "--by",
    type=click.Choice(["gross", "distinct", "size"]),
    default="gross",
    show_default=True,
    help="Which number of each key.",
)
@location_options
def series(location: Location, out: Output, template: str, begin: str, end: str, by: "By") -> None:
    """Print a number for each step of TEMPLATE, a key with one time label in braces.

    On a terminal there is a small chart above them.

    Example: holdfast events series 'visitors:{day}' --data data --from 2026-01-01 --to 2026-01-31
    """
    with location.open() as opened:
        points = opened.space.events.series(template, by, begin, end)
    rows = [(each.label, each.value) for each in points]
    out.result({"points": points}, lambda: charts.series(out, ("step", by), rows))


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
