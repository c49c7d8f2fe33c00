"""The output of commands: for people or as JSON on standard output, progress and errors on standard
error."""

import datetime
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, TypeVar

import click

from holdfast.error_text import counted

__all__ = [
    "FOUND",
    "JSON_HELP",
    "PIPE_CLOSED",
    "WRONG_USAGE",
    "CommandFailure",
    "Output",
    "as_command_failure",
    "cell_text",
    "cell_width",
    "counted",
    "figures",
    "glued",
    "harmless",
    "json_option",
    "moment",
    "size",
    "terminal_width",
    "unglued",
]

F = TypeVar("F", bound=Callable[..., Any])

JSON_HELP: Final = "Print the result, and errors, as JSON."
_MIN_TEXT_COLUMNS: Final = 24  # a narrower column of text is hard to read
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_QUOTED: Final = re.compile(r"`[^`\n]{,40}`")
# What moves a terminal's cursor, changes its clipboard, or reverses the order of letters.
_CONTROLS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
PIPE_CLOSED: Final = 141  # as a shell reports a program that wrote to a pipe nobody reads
WRONG_USAGE: Final = 2  # the exit code of click for options and settings that are invalid
FOUND: Final = 3  # the exit code of a command that ran, and found something wrong


class CommandFailure(click.ClickException):
    """An error of Holdfast, as a command prints it."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str,
        *,
        is_json: bool,
        problems: Sequence[str] = (),
        exit_code: int = 1,
    ) -> None:
        super().__init__(message)
        self.__dict__["exit_code"] = exit_code  # click has it as a variable of the class
        self.problems = problems  # if there are many, these are printed instead
        self.code = code
        self.hint = hint
        self.is_json = is_json

    def show(self, file: IO[Any] | None = None) -> None:
        if self.is_json:
            error = {"code": self.code, "message": self.message, "hint": self.hint}
            problems = {"problems": self.problems} if self.problems else {}
            click.echo(_json({"error": error | problems}), err=True)
            return
        if self.problems:
            click.echo(harmless("\n".join(self.problems)), err=True)
            return
        click.echo(_fitted(f"Error: {self.message}"), err=True)
        if self.hint:
            click.echo(_fitted(f"hint: {self.hint}"), err=True)


def as_command_failure(error: Exception, *, is_json: bool) -> click.ClickException | None:
    """Returns the error to print if the user can do something about it; None for a bug."""
    from holdfast.errors import HoldfastError

    if isinstance(error, CommandFailure):
        return error
    if isinstance(error, click.ClickException):
        code = "wrong_usage" if isinstance(error, click.UsageError) else "failed"
        message = error.format_message()
        return CommandFailure(code, message, "", is_json=is_json, exit_code=error.exit_code)
    if isinstance(error, HoldfastError):
        problems = getattr(error, "problems", ())
        return CommandFailure(
            error.code, error.message, error.hint, is_json=is_json, problems=problems
        )
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        message = where + (error.strerror or str(error)).lower()
        return CommandFailure("os_error", message, "", is_json=is_json)
    return None


class Output:
    """The output of one command."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json

    def result(self, value: Any, show: Callable[[], None]) -> None:
        """Prints the result as JSON, or calls `show`."""
        if self.is_json:
            click.echo(_json(value))
        else:
            show()

    def json(self, value: Any) -> None:
        """Prints a result that is JSON in either case."""
        click.echo(_json(value))

    def say(self, text: str) -> None:
        click.echo(harmless(text))

    def note(self, text: str) -> None:
        """Prints a remark about the result."""
        if not self.is_json:
            click.echo(_fitted(text), err=True)

    def table(
        self, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str = ""
    ) -> None:
        """Prints rows in columns, numbers to the right; without rows, the remark `empty` instead.

        Where a terminal is too narrow, text in the last column is broken between words. If that is
        not enough, each cell gets its own line, so that nothing is cut.
        """
        if empty and not rows:
            self.note(empty)
            return
        heads = [harmless(head) for head in heads]
        words = [[harmless(cell_text(cell)) for cell in row] for row in rows]
        columns = list(zip(heads, *words, strict=True))
        widths = [max(map(cell_width, column)) for column in columns]
        are_numbers = [_are_numbers(column) for column in zip(*rows, strict=True)] or [False] * len(
            heads
        )
        if sys.stdout.isatty() and sum(widths) + 2 * (len(widths) - 1) > terminal_width():
            room = terminal_width() - sum(widths[:-1]) - 2 * (len(widths) - 1)
            texts = [row[-1] for row in words]
            if are_numbers[-1] or not _can_be_wrapped(texts, room):
                self._listed(heads, words)
                return
            widths[-1] = room
            words = [line for row in words for line in _wrapped(row, room)]
        lines = [
            "  ".join(map(_padded, row, widths, are_numbers)).rstrip()
            for row in [list(heads), *words]
        ]
        if sys.stdout.isatty():
            lines[0] = click.style(lines[0], bold=True)
            lines.insert(1, "─" * (sum(widths) + 2 * (len(widths) - 1)))
        click.echo("\n".join(lines))

    def _listed(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Returns a line for each cell that is not empty, and a blank line between two rows."""
        shown = [
            "\n".join(
                f"{click.style(head, bold=True)}: {cell}" if head else cell
                for head, cell in zip(heads, row, strict=True)
                if cell
            )
            for row in rows
        ]
        click.echo("\n\n".join(shown))

    def has_bar(self, *, prints_data: bool = False) -> bool:
        """Returns whether `progress` draws a bar: only then is a total worth what it costs."""
        would_mix_with_data = prints_data and sys.stdout.isatty()
        return sys.stderr.isatty() and not self.is_json and not would_mix_with_data

    @contextmanager
    def progress(
        self,
        label: str,
        total: float | None = None,
        noun: str = "",
        *,
        prints_data: bool = False,
    ) -> Iterator[Callable[[float], None]]:
        """Shows a progress bar on a terminal; nothing elsewhere.

        It is drawn on standard error. `prints_data`: data goes to standard output, so on a
        terminal that shows both there is no bar.
        """
        if not self.has_bar(prints_data=prints_data):
            yield lambda done: None
            return
        from holdfast.cli.progress_bar import ProgressBar

        bar = ProgressBar(sys.stderr, label, total, lambda done: figures(done, total, noun))
        try:
            yield bar.update
        finally:
            bar.close()


def json_option(command: F) -> F:
    """Adds `--json`, which every command has; the command gets an `Output` as `out`."""

    def keep(ctx: click.Context, parameter: click.Parameter, value: bool) -> Output:
        ctx.find_root().meta["holdfast.json"] = value
        return Output(is_json=value)

    return click.option(
        "--json",
        "out",
        is_flag=True,
        is_eager=True,
        callback=keep,
        help=JSON_HELP,
    )(command)


def count_option(default: int, *, most: int | None = None, what: str = "") -> Callable[[F], F]:
    """Returns the option `--count`: how many of `what` a list shows."""
    return click.option(
        "--count",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        metavar="N",
        help=f"How many {what} to show at most." if what else "How many to show at most.",
    )


def _json(value: Any) -> str:
    import msgspec

    return harmless(msgspec.json.format(msgspec.json.encode(_whole(value))).decode())


def harmless(text: str) -> str:
    r"""Returns a text whose control characters are escaped as in JSON, lines and tabs aside.

    Stored names and values come from others, and a terminal obeys what is printed on it.

    >>> print(harmless("a\x1b]52;c;eA==\x07"))
    a\u001b]52;c;eA==\u0007
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _whole(value: Any) -> Any:
    """Returns records with all of their fields, defaults too: programs rely on them."""
    import msgspec

    if isinstance(value, msgspec.Struct):
        return {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value


def cell_text(value: Any) -> str:
    """Returns a cell of a table as it is printed."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return f"{int(value):,}"  # priorities are floats, and mostly whole
    return "" if value is None else str(value)


def figures(done: float, total: float | None, noun: str) -> str:
    """Returns progress in words.

    >>> figures(1_000, 2_500, "key"), figures(1, None, "entity"), figures(512, 2048, "byte")
    ('1,000 of 2,500 keys', '1 entity', '512 B of 2.0 KiB')
    """
    if noun == "byte":
        return size(done) if not total else f"{size(done)} of {size(total)}"
    if not noun:
        return f"{done / total:.0%}" if total else ""
    return (
        counted(int(done), noun) if not total else f"{int(done):,} of {counted(int(total), noun)}"
    )


def _fitted(text: str) -> str:
    """Returns a remark or an error broken between words, if a terminal would break it elsewhere.

    A command in backquotes stays on one line, so that it can be copied.
    """
    text = harmless(text)
    if not sys.stderr.isatty():
        return text
    return "\n".join(
        unglued(
            textwrap.fill(
                glued(line), terminal_width(), break_long_words=False, break_on_hyphens=False
            )
        )
        for line in text.split("\n")
    )


def glued(text: str) -> str:
    """Returns a text in which no line breaks inside backquotes; see `unglued`."""
    return _QUOTED.sub(lambda quoted: quoted[0].replace(" ", _NO_BREAK), text)


def unglued(text: str) -> str:
    """Reverses `glued`, after the lines were broken."""
    return text.replace(_NO_BREAK, " ")


def terminal_width() -> int:
    return shutil.get_terminal_size().columns


def cell_width(text: str) -> int:
    """Returns how many columns of a terminal a text takes: some characters take two, others none.

    >>> cell_width("ann"), cell_width("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0  # it combines with the character before it: an accent, a mark of direction
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _are_numbers(column: Sequence[Any]) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in column)


def _can_be_wrapped(texts: Sequence[str], room: int) -> bool:
    """Returns whether texts fit into a column of `room`, broken between words."""
    longest = max((cell_width(word) for text in texts for word in text.split()), default=0)
    return longest <= room >= _MIN_TEXT_COLUMNS


def _wrapped(row: Sequence[str], room: int) -> list[list[str]]:
    """Returns the lines of a row whose last cell is broken between words."""
    first, *others = textwrap.wrap(row[-1], room, break_on_hyphens=False) or [""]
    before = [""] * (len(row) - 1)
    return [[*row[:-1], first], *([*before, other] for other in others)]


def _padded(cell: str, width: int, is_number: bool) -> str:
    space = " " * (width - cell_width(cell))
    return space + cell if is_number else cell + space


def moment(seconds: float) -> str:
    """Returns a time for people, with its zone.

    >>> moment(1_800_000_000)
    '2027-01-15 08:00:00Z'
    """
    found = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return found.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def age(since: float) -> str:
    """Returns how long ago a time was, in the largest unit that fits.

    >>> import time
    >>> age(time.time() - 7300)
    '2 h'
    """
    seconds = max(0.0, time.time() - since)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"


def duration(seconds: float) -> str:
    """Returns a length of time in the largest unit that divides it.

    >>> duration(86_400), duration(90), duration(5_400)
    ('1 d', '90 s', '90 min')
    """
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def size(number: float) -> str:
    """Returns bytes for people.

    >>> size(512), size(1_536), size(3 * 1024**3)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
