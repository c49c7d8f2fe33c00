"""`holdfast config`: shows which settings apply, and why."""

from typing import Any

import click
from click.core import ParameterSource

from holdfast.cli.output import Output, json_option
from holdfast.cli.root_group import CommandGroup
from holdfast.cli.settings import SETTINGS, FileSettings, settings, unknown_variables


@click.group("config", cls=CommandGroup)
def command() -> None:
    """Show which settings apply, and where they come from.

    Example: holdfast config show
    """


@command.command("show")
@settings(*SETTINGS)
@json_option
@click.pass_context
def show(ctx: click.Context, /, out: Output, **values: Any) -> None:
    """Show every setting, its value, and where the value comes from.

    A flag overrides the environment (HOLDFAST_...), which overrides the file (holdfast.toml, or
    --config FILE), which overrides the default. Variables that look like settings but are not are
    listed, with a suggestion.

    Example: HOLDFAST_SPACE=shop holdfast config show --data data
    """
    rows = [
        {
            "setting": f"{setting.section}.{name}" if setting.section else name,
            "value": "(set)" if name == "token" and values[name] else values[name],
            "source": _source(ctx, name),
        }
        for name, setting in SETTINGS.items()
    ]
    unknown = unknown_variables()

    def show() -> None:
        out.table(
            ("setting", "value", "comes from"),
            [(row["setting"], _shown(row["value"]), row["source"]) for row in rows],
        )
        for words in unknown:
            out.note(words)

    out.result({"settings": rows, "unknown": unknown}, show)


def _source(ctx: click.Context, name: str) -> str:
    source = ctx.get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE:
        return "flag"
    if source is ParameterSource.ENVIRONMENT:
        return SETTINGS[name].variable
    if source is ParameterSource.DEFAULT_MAP and isinstance(ctx.default_map, FileSettings):
        return ctx.default_map.file
    return "default"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # every number is a float here, and most are whole
    return "" if value is None else str(value)
