"""`holdfast events`: deploys a schema, sends events, and reads the results."""

import shlex
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import click

from holdfast.cli import charts
from holdfast.cli.event_keys import why_nothing
from holdfast.cli.files import read_file, reading
from holdfast.cli.location import Location, location_options
from holdfast.cli.output import FOUND, Output, count_option, counted, moment
from holdfast.cli.root_group import CommandGroup

if TYPE_CHECKING:
    from holdfast.events.deployment import Dialect
    from holdfast.events.reads import SeriesMeasure
    from holdfast.events.set_reads import SetOperation
    from holdfast.store import Space

_FILE = click.argument("file", default="-")
_LAST = click.option(
    "--last",
    metavar="DURATION",
    help="Treat KEY as a template, and combine its steps over this time: 7d.",
)
_SINCE = click.option("--since", metavar="TIME", help="Only values added after this time.")
_OP = click.option(
    "--op",
    type=click.Choice(["union", "intersection", "difference"]),
    default="union",
    show_default=True,
    help="How to combine several sets.",
)
_AFTER_KEY = click.option("--after", metavar="KEY", help="Continue after the key printed last.")
_PER_CALL = 1_000  # events that are sent together
# The days that a series shows without dates, by the unit of its steps.
_SHOWN_DAYS = {
    "minute": 1 / 24,
    "hour": 1,
    "week": 182,
    "month": 365,
    "quarter": 1_095,
    "year": 3_650,
}


@click.group("events", cls=CommandGroup)
def command() -> None:
    """Deploy event schemas, send events, and query the results.

    Example: holdfast events deploy --data data shop.yaml
    """


@command.command("deploy")
@click.option(
    "--name",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The name of the schema.",
)
@click.option(
    "--dialect",
    type=click.Choice(["mql", "flux"]),
    default="mql",
    show_default=True,
    help="The language of the schema.",
)
@_FILE
@location_options
def deploy(location: Location, out: Output, name: str, dialect: "Dialect", file: str) -> None:
    """Deploy the schema in FILE (JSON or YAML, standard input by default).

    Example: holdfast events deploy --data data shop.yaml
    """
    schema = read_file(file)
    with location.open(creates=True) as opened:
        opened.space.events.deploy(schema, name, dialect)
    out.result({"deployed": name}, lambda: out.say(f"deployed {name}"))


@command.command("send")
@_FILE
@location_options
def send(location: Location, out: Output, file: str) -> None:
    """Send the events in FILE (standard input by default).

    FILE holds one event, a JSON array of events, or any number of lines with one event each.
    Refused events are listed by position, the others count, and the exit code is 3.

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
        explanations = [
            _explained(opened.space, number, event) for number, event in enumerate(_events(source))
        ]

    def show() -> None:
        for each in explanations:
            out.say(f"{each.name}{' (seen before)' if each.duplicate else ''}")
            if not each.handlers:
                out.say("  no handler matches")
            for handler in each.handlers:
                missing = f"no attribute {handler.missing}" if handler.missing else ""
                why = handler.error or missing
                keys = ", ".join(handler.keys)
                words = f"skipped: {why}" if why else f"{handler.operation} {keys}"
                if handler.background is not None:
                    words = f"{handler.operation} {handler.background:,} keys in the background"
                out.say(f"  {handler.handler}: {words}".rstrip())
                for empty in handler.empty:
                    out.say(f"    {empty.key} is {empty.reason}: the look-up finds nothing")

    out.result({"explanations": explanations}, show)


@command.command("keys")
@click.argument("prefix", default="")
@count_option(100, most=1_000)
@_AFTER_KEY
@location_options
def keys(location: Location, out: Output, prefix: str, count: int, after: str | None) -> None:
    """List the keys that events have written and that begin with PREFIX.

    Example: holdfast events keys --data data visitors:
    """
    with location.open() as opened:
        page = opened.space.events.keys(prefix, count, after)
    rows = [(each.key, each.kind) for each in page.keys]
    out.result(page, lambda: out.table(("key", "kind"), rows, empty=_no_keys(prefix, after)))
    _note_more(out, page.next)


@command.command("sizes")
@click.argument("prefix", default="")
@count_option(25, most=1_000)
@_AFTER_KEY
@location_options
def sizes(location: Location, out: Output, prefix: str, count: int, after: str | None) -> None:
    """Show how much the keys that begin with PREFIX hold, with a bar for each on a terminal.

    The size is the number of members of a set, of entries of a leaderboard, or of numbers.

    Example: holdfast events sizes --data data visitors:
    """
    with location.open() as opened:
        page = opened.space.events.keys(prefix, count, after)
        names = list(dict.fromkeys(each.key for each in page.keys))
        found: Any = opened.space.events.read([{"op": "describe", "key": name} for name in names])
    rows = [(each.key, each.size or each.numbers) for each in found]
    report = {"sizes": [{"key": key, "size": size} for key, size in rows], "next": page.next}
    empty = _no_keys(prefix, after)
    out.result(report, lambda: charts.ranking(out, ("key", "size"), rows, empty=empty))
    _note_more(out, page.next)


@command.command("top")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@count_option(10)
@_LAST
@location_options
def top(
    location: Location, out: Output, keys: tuple[str, ...], count: int, last: str | None
) -> None:
    """Rank the values of a leaderboard, or of several together.

    Example: holdfast events top --data data buyers
    """
    with location.open() as opened:
        found = opened.space.events.top(list(keys), count, last)
        empty = "" if found else why_nothing(opened.space, keys, "leaderboard", last)
    rows = [(each.value, each.count) for each in found]
    heads = ("value", "count")
    out.result({"top": found}, lambda: charts.ranking(out, heads, rows, empty=empty))
    if error := max((each.error for each in found), default=0):
        out.note(f"A count may be too high, by {error:,} at most; --json has the error of each.")


@command.command("members")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@count_option(25, most=1_000)
@click.option("--after", metavar="POSITION", help="Continue after the position printed last.")
@_SINCE
@click.option("--until", metavar="TIME", help="Only members added until this time.")
@_OP
@location_options
def members(
    location: Location,
    out: Output,
    keys: tuple[str, ...],
    count: int,
    after: str | None,
    since: str | None,
    until: str | None,
    op: "SetOperation",
) -> None:
    """List the members of a set, or of several, newest first, with the time of their last event.

    Example: holdfast events members --data data ann:followers
    """
    with location.open() as opened:
        page = opened.space.events.members(list(keys), count, after, since, until, op)
        empty = "" if page.members else why_nothing(opened.space, keys, "set")
    rows = [(each.value, moment(each.at / 1000)) for each in page.members]
    out.result(page, lambda: out.table(("value", "at"), rows, empty=empty))
    _note_more(out, page.next)


@command.command("aggregate")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@_LAST
@location_options
def aggregate(location: Location, out: Output, keys: tuple[str, ...], last: str | None) -> None:
    """Print count, sum, extremes and percentiles of the numbers of a key, or of several.

    Example: holdfast events aggregate 'sales:{day}' --data data --last 7d
    """
    with location.open() as opened:
        found = opened.space.events.aggregate(list(keys), last=last)
        empty = "" if found.count else why_nothing(opened.space, keys, "numbers", last)
    names = ("count", "sum", "min", "max", "avg", "last")
    numbers = {name: getattr(found, name) for name in names} | found.percentiles
    rows = [(name, _rounded(name, value)) for name, value in numbers.items()] if found.count else []
    out.result(found, lambda: out.table(("number", "value"), rows, empty=empty))


@command.command("fan-outs")
@location_options
def fan_outs(location: Location, out: Output) -> None:
    """Show the progress of background fan-outs.

    Example: holdfast events fan-outs --data data
    """
    with location.open() as opened:
        found = opened.space.events.fan_outs()
    rows = [
        (each.handler, f"{each.done:,}", f"{each.keys:,}", each.failed, moment(each.started / 1000))
        for each in found
    ]
    heads = ("handler", "done", "keys", "failed", "started")
    empty = "no fan-out is running, and none has ended within a day"
    out.result({"fan_outs": found}, lambda: out.table(heads, rows, empty=empty))


@command.command("count")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@_OP
@_SINCE
@_LAST
@location_options
def count(
    location: Location,
    out: Output,
    keys: tuple[str, ...],
    op: "SetOperation",
    since: str | None,
    last: str | None,
) -> None:
    """Print how many values were added to KEY, or to several keys, and how many are different.

    Also reports if a counter was off while values were added.

    Example: holdfast events count --data data ann:followers
    """
    with location.open() as opened:
        gross, is_complete = _gross(opened.space, keys, since, last)
        distinct = opened.space.events.distinct(list(keys), op, since, last)
        is_empty = since is None and not gross and not distinct.count
        empty = why_nothing(opened.space, keys, "set", last) if is_empty else ""
    was_off = {"gross": not is_complete, "distinct": distinct.incomplete}
    off = [name for name, counter_was_off in was_off.items() if counter_was_off]
    report = {
        "key": keys[0] if len(keys) == 1 else keys,
        "gross": gross,
        "distinct": distinct.count,
        "exact": distinct.exact,
        "error": distinct.error,
        "incomplete": off,
    }
    about = "" if distinct.exact or distinct.incomplete else "about "
    which = {"intersection": " in every key", "difference": " in the first key alone"}.get(op, "")
    line = f"{gross:,} in all, {about}{distinct.count:,} different{which}"
    if off:
        line += f"; values were added while the {' and '.join(off)} counter was off"
    out.result(report, lambda: out.say(line))
    if empty:
        out.note(empty)


def _gross(
    space: "Space", keys: tuple[str, ...], since: str | None, last: str | None
) -> tuple[int, bool]:
    """Returns how many values were added, and whether the counters have counted all of them."""
    from holdfast.errors import IncompleteCounter

    try:
        return space.events.gross(list(keys), since, last, complete=True), True
    except IncompleteCounter:
        return space.events.gross(list(keys), since, last), False


@command.command("series")
@click.argument("template")
@click.option(
    "--from",
    "begin",
    metavar="DATE",
    help="The first step.  [default: 24 hours ago for hours, 30 days ago for days, and so on]",
)
@click.option("--to", "end", metavar="DATE", help="The last step.  [default: the current one]")
@click.option(
    "--by",
    default="gross",
    show_default=True,
    metavar="NAME",
    help="gross, distinct or size; for numbers: count, sum, min, max, avg, last or p95.",
)
@location_options
def series(
    location: Location,
    out: Output,
    template: str,
    begin: str | None,
    end: str | None,
    by: "SeriesMeasure",
) -> None:
    """Print a number for each step of TEMPLATE, a key with a time label such as {day}.

    On a terminal, a small chart comes first.

    Example: holdfast events series 'visitors:{day}' --data data --from 2026-01-01 --to 2026-01-31
    """
    now = int(time.time() * 1_000)
    shown = next((days for unit, days in _SHOWN_DAYS.items() if f"{{{unit}" in template), 30)
    first = begin or now - int(shown * 86_400_000)
    with location.open() as opened:
        points = opened.space.events.series(template, by, first, end or now)
    rows = [(each.label, _rounded(by, each.value)) for each in points]
    out.result({"points": points}, lambda: charts.series(out, ("step", by), rows))
    if not any(each.value for each in points):
        prefix = shlex.quote(template.partition("{")[0])
        out.note(f"all steps are empty; `holdfast events keys {prefix}` lists keys that exist")


def _rounded(name: str, value: float | None) -> float | None:
    """Returns a number as people read it; --json has all digits.

    A percentile is right to a hundredth, an average rarely a short number.
    """
    if value is None or not (name == "avg" or name[0] == "p"):
        return value
    return float(f"{value:.6g}" if name == "avg" else f"{value:.4g}")


def _no_keys(prefix: str, after: str | None) -> str:
    rest = "" if after is None else f" after {after}"
    return f"no keys begin with {prefix}{rest}" if prefix else f"there are no keys{rest}"


def _note_more(out: Output, after: str | None) -> None:
    if after is not None:
        out.note(f"There are more: --after {shlex.quote(after)}")


class _BadLine(click.ClickException):
    """A line that is not JSON."""


def _explained(space: "Space", number: int, event: Any) -> Any:
    """Explains an event; one that is refused is named by its position, as `send` does."""
    from holdfast.errors import HoldfastError

    try:
        return space.events.explain(_raise_bad_line(event))
    except HoldfastError as error:
        error.message = f"event {number}: {error.message}"
        raise


def _raise_bad_line(event: Any) -> Any:
    if isinstance(event, _BadLine):
        raise event
    return event


def _events(file: IO[bytes]) -> Iterator[Any]:
    """Yields one event, those of an array, or one from each line, depending on the first line.

    A line that is not JSON is yielded as a `_BadLine`.
    """
    first = file.readline()
    while first and not first.strip():
        first = file.readline()
    if not first:
        return
    whole = _decoded(first)
    if isinstance(whole, _BadLine):
        whole = _raise_bad_line(_decoded(first + file.read()))
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
