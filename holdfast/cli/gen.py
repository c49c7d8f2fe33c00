"""`holdfast gen`: source code from schema files."""

import sys
from pathlib import Path

import click

from holdfast.entities.codegen import Language, Options, Style, generate
from holdfast.entities.schema_file import read_schemas
from holdfast.errors import SchemaInvalid


@click.command()
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
    "-o", "--output", metavar="FILE", help="Where the source goes; standard output if not given."
)
@click.option(
    "--style",
    type=click.Choice(["modern", "typed", "classic"]),
    default="modern",
    show_default=True,
    help="Python: plain annotations, Col[...] annotations, or the public Meduza client's classes.",
)
@click.option("--package", default="model", show_default=True, help="Go: the name of the package.")
@click.option("--meduza-types", is_flag=True, help="Go: the types of the public server's package.")
@click.option("--bigint", is_flag=True, help="TypeScript: Int and Uint as bigint.")
def gen(
    files: tuple[str, ...],
    lang: Language,
    output: str | None,
    style: Style,
    package: str,
    meduza_types: bool,
    bigint: bool,
) -> None:
    """Writes models for the tables of schema files.

    Problems of the files are listed with file and line; then nothing is written.
    """
    options = Options(style=style, package=package, meduza_types=meduza_types, bigint=bigint)
    reading = read_schemas((_title(file), _read(file)) for file in files)
    for warning in reading.warnings:
        click.echo(str(warning), err=True)
    try:
        source = generate(reading.checked(), lang, options, places=reading.places)
    except SchemaInvalid as invalid:
        click.echo("\n".join(invalid.problems), err=True)
        sys.exit(1)
    if output is None or output == "-":
        click.echo(source, nl=False)
    else:
        _write(Path(output), source)


def _title(file: str) -> str:
    return "<stdin>" if file == "-" else file


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None


def _write(path: Path, source: str) -> None:
    try:
        path.write_text(source, encoding="utf-8", newline="\n")
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
