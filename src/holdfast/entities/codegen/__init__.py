"""Source code from schema files: models for Python, Go and TypeScript.

One run turns schemas into one source file, tables and columns in the order of the file. The output
is formatted as by the language's own formatter, compiles on its own, and is always the same for the
same schemas.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.entities.codegen import golang, python, python_classic, typescript
from holdfast.entities.codegen.names import NamingRules, check_names, check_records
from holdfast.entities.codegen.python_tree import check_python
from holdfast.entities.schema import Schema
from holdfast.entities.schema_text import SourcePlace
from holdfast.errors import InvalidEntitySchema

Language = Literal["py", "go", "ts"]
Style = Literal["modern", "typed", "classic"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the output, besides its language."""

    style: Style = "modern"  # of Python: plain annotations, `Col[...]`, or the public client's
    package: str = "model"  # of Go
    meduza_types: bool = False  # of Go: the types of the public server's `schema` package
    bigint: bool = False  # of TypeScript: Int and Uint as bigint


def generate(
    schemas: Sequence[Schema],
    language: Language,
    options: Options = Options(),  # noqa: B008  # frozen
    *,
    places: Mapping[tuple[str, ...], SourcePlace] | None = None,
) -> str:
    """Returns the source file. Names that clash or can't be names raise `InvalidEntitySchema`.

    No text of a schema can become code: names are checked, texts are written as literals and as
    comments of one line, and Python is parsed and compared with the schema.
    `places`, from a `ParsedSchemas`, lets such problems name file and line.
    """
    writer = _WRITERS[language]
    names = NamingRules.of(language, options.style)
    found = list(check_records(schemas)) or list(check_names(schemas, names))
    if language == "go" and not found:  # most clashes in Go follow from one found above
        found = [((), problem) for problem in golang.check(schemas, names, options.package)]
    problems = [
        f"{places[path]}: {message}" if places and path in places else message
        for path, message in found
    ]
    if problems:
        raise InvalidEntitySchema.of(problems)
    return writer(schemas, names, options)


def _python(schemas: Sequence[Schema], names: NamingRules, options: Options) -> str:
    if options.style == "classic":
        source = python_classic.write(schemas, names)
    else:
        source = python.write(schemas, names, typed=options.style == "typed")
    return check_python(source, schemas, names, options.style)


def _go(schemas: Sequence[Schema], names: NamingRules, options: Options) -> str:
    return golang.write(schemas, names, package=options.package, meduza_types=options.meduza_types)


def _typescript(schemas: Sequence[Schema], names: NamingRules, options: Options) -> str:
    return typescript.write(schemas, names, bigint=options.bigint)


_WRITERS: Final[dict[Language, Callable[[Sequence[Schema], NamingRules, Options], str]]] = {
    "py": _python,
    "go": _go,
    "ts": _typescript,
}
