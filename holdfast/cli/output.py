"""What commands say: for people or as JSON on standard output, progress and errors on standard
error."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

JSON_HELP: Final = "Print the result, and errors, as JSON."
FOUND: Final = 3  # the exit code of a command that ran, and found something wrong


class Failure(click.ClickException):
    """An error of Holdfast, as a command says it."""

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
        self.problems = problems  # where there are many, they are said instead, a line each
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
            click.echo("\n".join(self.problems), err=True)
            return
        click.echo(f"Error: {self.message}", err=True)
        if self.hint:
            click.echo(f"hint: {self.hint}", err=True)


def explained(error: Exception, *, is_json: bool) -> click.ClickException | None:
    """An error that people can do something about; None for a mistake of ours."""
    from holdfast.errors import HoldfastError

    if isinstance(error, Failure):
        return error
    if isinstance(error, click.ClickException):
        code = "wrong_usage" if isinstance(error, click.UsageError) else "failed"
        message = error.format_message()
        return Failure(code, message, "", is_json=is_json, exit_code=error.exit_code)
    if isinstance(error, HoldfastError):
        problems = getattr(error, "problems", ())
        return Failure(error.code, error.message, error.hint, is_json=is_json, problems=problems)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        message = where + (error.strerror or str(error)).lower()
        return Failure("os_error", message, "", is_json=is_json)
    return None


class Output:
    """How one command speaks."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json

    def result(self, value: Any, show: Callable[[], None]) -> None:
        """The result as JSON, or as `show` prints it."""
        if self.is_json:
            click.echo(_json(value))
        else:
            show()

    def json(self, value: Any) -> None:
        """A result that is JSON for people too."""
        click.echo(_json(value))

    def say(self, text: str) -> None:
        click.echo(text)

    def note(self, text: str) -> None:
        """Something beside the result."""
        if not self.is_json:
            click.echo(text, err=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Rows in columns: a table on a terminal, plain text for other programs."""
        words = [[_cell(cell) for cell in row] for row in rows]
        if sys.stdout.isatty():
            from rich import box
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            table = Table(*heads, box=box.SIMPLE_HEAD)
            for row in words:
                table.add_row(*map(Text, row))
            Console().print(table)
            return
        widths = [max(map(len, column)) for column in zip(heads, *words, strict=True)]
        for row in [list(heads), *words]:
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            click.echo("  ".join(padded).rstrip())

    @contextmanager
    def progress(self, label: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """A bar on a terminal, told how far things are; elsewhere nothing."""
        if self.is_json or not sys.stderr.isatty():
            yield lambda done: None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(label, total=total)
            yield lambda done: bars.update(task, completed=done)


def json_option(command: F) -> F:
    """`--json`, which every command has; the command is given an `Output` as `out`."""

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


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(_whole(value))).decode()


def _whole(value: Any) -> Any:
    """Records with all of their fields, also those that are as always: programs count on them."""
    import msgspec

    if isinstance(value, msgspec.Struct):
        return {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def many(number: int, noun: str) -> str:
    """
    >>> many(1, "space"), many(2_000, "key")
    ('1 space', '2,000 keys')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: float) -> str:
    """Bytes for people.

    >>> size(512), size(1_536), size(3 * 1024**3)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
