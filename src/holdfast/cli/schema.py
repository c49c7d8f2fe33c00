"""`holdfast schema`: deploys entity schemas from their files."""

import sys
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.files import read_file, title_of
from holdfast.cli.location import Location, location_options
from holdfast.cli.output import FOUND, Output, counted, json_option
from holdfast.cli.root_group import CommandGroup

if TYPE_CHECKING:
    from holdfast.entities.plan import Plan
    from holdfast.entities.schema_file import ParsedSchemas

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...")
_prune = click.option("--prune", is_flag=True, help="Remove tables that no file mentions.")


@click.group("schema", cls=CommandGroup)
def command() -> None:
    """Check, plan and apply entity schemas: YAML files, or - for standard input.

    Example: holdfast schema plan --data data shop.schema.yaml
    """


@command.command("check")
@_files
@json_option
def check(out: Output, files: tuple[str, ...]) -> None:
    """Check schema files for problems; no store is needed.

    Problems are listed with file and line. Exits with 3 if there are errors; warnings do not count.

    Example: holdfast schema check shop.schema.yaml
    """
    check_files(out, files)


def check_files(out: Output, files: tuple[str, ...], *, is_mdzctl: bool = False) -> None:
    """Prints what is wrong with schema files, and ends the command with 3 if anything is.

    mdzctl prints it on standard error, as it does with all errors.
    """
    say = out.note if is_mdzctl else out.say
    parsed = _read(files)

    def show() -> None:
        for problem in parsed.problems:
            say(str(problem))
        if not parsed.errors:
            tables = sum(len(schema.tables) for schema in parsed.schemas)
            schemas = counted(len(parsed.schemas), "schema")
            out.say(f"{counted(tables, 'table')} in {schemas}, no errors")

    out.result(
        {
            "errors": [str(problem) for problem in parsed.errors],
            "warnings": [str(problem) for problem in parsed.warnings],
        },
        show,
    )
    if parsed.errors:
        sys.exit(FOUND)


@command.command("plan")
@_files
@_prune
@location_options
def plan(location: Location, out: Output, files: tuple[str, ...], prune: bool) -> None:
    """Show what `apply` would change. Nothing is written.

    Example: holdfast schema plan --data data shop.schema.yaml
    """
    schemas = _warned(_read(files), out).checked()
    with location.open() as opened:
        plans = [opened.space.entities.plan(schema, prune=prune) for schema in schemas]
    _print_plans(out, plans, "nothing would change")


@command.command("apply")
@_files
@_prune
@click.option(
    "--force", is_flag=True, help="With --prune: remove tables even if they hold entities."
)
@location_options
def apply(
    location: Location, out: Output, files: tuple[str, ...], prune: bool, force: bool
) -> None:
    """Deploy the schemas in FILEs, all or none, and build new indexes.

    Tables that no file mentions stay, unless --prune is given.

    Example: holdfast schema apply --data data shop.schema.yaml
    """
    schemas = _warned(_read(files), out).checked()
    with location.open(creates=True) as opened, out.progress("apply"):
        plans = opened.space.entities.deploy(*schemas, prune=prune, force=force)
    _print_plans(out, plans, "nothing has changed")


def _read(files: tuple[str, ...]) -> "ParsedSchemas":
    from holdfast.entities.schema_file import read_schemas

    return read_schemas((title_of(file), read_file(file)) for file in files)


def _warned(parsed: "ParsedSchemas", out: Output) -> "ParsedSchemas":
    for warning in parsed.warnings:
        out.note(str(warning))
    return parsed


def _print_plans(out: Output, plans: "list[Plan]", nothing: str) -> None:
    lines = [line for plan in plans for line in plan.lines()]
    result: list[dict[str, Any]] = [
        {
            "schema": plan.schema,
            "tables": [
                {
                    "table": table.table.full_name,
                    "action": table.action,
                    "changes": [line.strip() for line in table.lines()][1:],
                }
                for table in plan.tables
            ],
        }
        for plan in plans
    ]
    out.result({"plans": result}, lambda: out.say("\n".join(lines) or nothing))
