"""`holdfast gen`: writes source code from schema files."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.files import read_file, title_of, write_text
from holdfast.cli.output import Output, json_option

if TYPE_CHECKING:
    from holdfast.entities.codegen import Language, Style


@click.command("gen")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A schema file, or - for standard input. May be repeated.",
)
@click.option(
    "-l",
    "--lang",
    type=click.Choice(["py", "go", "ts"]),
    required=True,
    help="Python, Go or TypeScript.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="The file to write.  [default: standard output]"
)
@click.option(
    "--style",
    type=click.Choice(["modern", "typed", "classic"]),
    default="modern",
    show_default=True,
    help="Python: plain annotations, Col[...] annotations, or classes of the Meduza client.",
)
@click.option(
    "--package",
    default="model",
    show_default=True,
    metavar="NAME",
    help="Go: the name of the package.",
)
@click.option(
    "--meduza-types", is_flag=True, help="Go: use the types of the public Meduza package."
)
@click.option("--bigint", is_flag=True, help="TypeScript: Int and Uint as bigint.")
@json_option
def command(
    out: Output,
    files: tuple[str, ...],
    lang: "Language",
    output: str | None,
    style: "Style",
    package: str,
    meduza_types: bool,
    bigint: bool,
) -> None:
    """Write source code with models for the tables of schema files.

    If a file has problems, they are listed with file and line, and nothing is written.

    Example: holdfast gen -f shop.schema.yaml -l py -o models.py
    """
    from holdfast.entities.codegen import Options, generate
    from holdfast.entities.schema_file import read_schemas

    options = Options(style=style, package=package, meduza_types=meduza_types, bigint=bigint)
    parsed = read_schemas((title_of(file), read_file(file)) for file in files)
    for warning in parsed.warnings:
        out.note(str(warning))
    source = generate(parsed.checked(), lang, options, places=parsed.places)
    if output is not None and output != "-":
        write_text(output, source)
    warnings = [str(warning) for warning in parsed.warnings]
    shown = source if output in (None, "-") else None
    out.result(
        {"language": lang, "output": output, "source": shown, "warnings": warnings},
        lambda: click.echo(shown, nl=False) if shown is not None else None,
    )
