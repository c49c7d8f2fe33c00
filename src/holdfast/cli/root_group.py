"""The command at the root: settings from a file, commands that are imported when they are called,
and the same format of help and of errors for all commands."""

import errno
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import click

from holdfast.cli.output import PIPE_CLOSED
from holdfast.cli.settings import read_file
from holdfast.version import VERSION

_ABOUT = """One durable store, five data models, one transaction.

Commands work on the store in a folder (--data DIR) or on a running server (--url URL). Settings
come from flags, then the environment (HOLDFAST_...), then holdfast.toml, then defaults.

Example: holdfast serve --data data
"""


class CommandEntry(NamedTuple):
    """A command that is not imported yet: its module in this package, and what it does."""

    module: str
    summary: str


class HelpFormatter(click.HelpFormatter):
    """Help whose example can be copied, and that uses narrow terminals well."""

    def write_text(self, text: str) -> None:
        """Writes the paragraphs of a help text; the example at its end stays on one line."""
        from holdfast.cli.output import glued

        before, mark, example = text.partition("\n\nExample: ")
        super().write_text(glued(before))
        if mark:
            self.write_paragraph()
            self.write(f"{'':{self.current_indent}}Example: {example.strip()}\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        from holdfast.cli.output import glued

        whole = [(name, glued(text)) for name, text in rows]
        super().write_dl(whole, min(col_max, self.width // 3), col_spacing)

    def getvalue(self) -> str:
        from holdfast.cli.output import unglued

        return unglued(super().getvalue())


class HelpContext(click.Context):
    """A context that formats help with `HelpFormatter`."""

    formatter_class = HelpFormatter


class CommandGroup(click.Group):
    """Commands whose summaries are shown whole, on as many lines as they need."""

    context_class = HelpContext

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = self._find(ctx, cmd_name)
        if command is not None:
            command.context_class = HelpContext
        return command

    def _find(self, ctx: click.Context, name: str) -> click.Command | None:
        return super().get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            from holdfast.error_text import nearest

            near = nearest(args[0], known)
            more = f"Did you mean {near!r}?" if near else f"The commands are {', '.join(known)}."
            ctx.fail(f"There is no command {args[0]!r}. {more}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, _summary(each)) for name, each in sorted(self.commands.items())]
            )


def _summary(command: click.Command) -> str:
    """Returns the first paragraph of a command's help."""
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


class ErrorReportingGroup(CommandGroup):
    """A command at the root, which reports all errors in the same format."""

    def main(self, *args: Any, **extra: Any) -> Any:
        _open_standard_files()
        return super().main(*args, **extra)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except OSError as error:  # --help and --version write before anything is invoked
            if error.errno == errno.EPIPE:
                raise  # click ends quietly
            reason = (error.strerror or str(error)).lower()
            raise click.ClickException(f"can't write the output: {reason}") from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # or a pipe that nobody reads would be noticed too late
            return result
        except BrokenPipeError:
            _discard_output()
            ctx.exit(PIPE_CLOSED)
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            from holdfast.cli.output import as_command_failure

            is_json = ctx.meta.get("holdfast.json", False)
            if isinstance(error, click.ClickException) and not is_json:
                raise
            said = as_command_failure(error, is_json=is_json)
            if said is None:
                raise
            raise said from None


def _open_standard_files() -> None:
    """Opens standard files that are closed, as a job of cron may leave them.

    The next file to be opened would get the number: what libraries write to standard error would go
    into the store.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _discard_output() -> None:
    """Sends further output to /dev/null, so that Python does not complain when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class Main(ErrorReportingGroup):
    """`holdfast` itself."""

    def __init__(self, entries: Mapping[str, CommandEntry], renamed: Mapping[str, str]) -> None:
        super().__init__(
            "holdfast",
            help=_ABOUT,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            params=[
                click.Option(
                    ["--config"],
                    metavar="FILE",
                    envvar="HOLDFAST_CONFIG",
                    help="A TOML file with settings.  [default: holdfast.toml, if it exists]",
                )
            ],
            callback=_read_settings,
        )
        self.entries = entries
        self._renamed = renamed  # new names, by the former ones
        click.version_option(VERSION, prog_name="holdfast")(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.entries)

    def _find(self, ctx: click.Context, name: str) -> click.Command | None:
        entry = self.entries.get(name)
        if entry is None:
            return None
        module = importlib.import_module(f"holdfast.cli.{entry.module}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.entries:
            self._refuse_renamed(ctx, args)
        return super().resolve_command(ctx, args)

    def _refuse_renamed(self, ctx: click.Context, args: list[str]) -> None:
        for words in (" ".join(args[:2]), args[0]):
            if words in self._renamed:
                new = self._renamed[words]
                ctx.fail(f"`holdfast {words}` is called `{new}` now. See `{new} --help`.")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.entries[name].summary) for name in sorted(self.entries)]
            )


@click.pass_context
def _read_settings(ctx: click.Context, config: str | None) -> None:
    ctx.default_map = read_file(config)
