"""Checks schemas that come as records, from programs and clients, by the rules of schema files."""

from datetime import datetime

import msgspec

from holdfast.entities.schema import Schema
from holdfast.errors import InvalidEntitySchema
from holdfast.limits import MAX_SCHEMA_BYTES


def check_records(schema: Schema) -> None:
    """Raises `InvalidEntitySchema` for a schema that no file could describe."""
    # Imported where they are needed: YAML would more than double the time of `import holdfast`.
    import yaml

    from holdfast.entities.schema_dump import dump_schema
    from holdfast.entities.schema_file import parse_schema

    try:
        plain = msgspec.to_builtins(schema, builtin_types=(bytes, datetime))
        msgspec.convert(plain, Schema, builtin_types=(bytes, datetime))
        problems = _repeated_names(schema)
        size = len(msgspec.json.encode(plain))
        if size > MAX_SCHEMA_BYTES:  # before more time is spent on them
            problems = [
                f"The records of the schema have {size} bytes, at most {MAX_SCHEMA_BYTES} fit"
            ]
        text = "" if problems else dump_schema(schema, filled=False)
    except (
        msgspec.ValidationError,
        TypeError,
        ValueError,
        RecursionError,
        yaml.YAMLError,
    ) as error:
        raise InvalidEntitySchema(f"the records of a schema are invalid: {error}") from None
    if problems:
        raise InvalidEntitySchema.of(problems)
    parse_schema(text)


def _repeated_names(schema: Schema) -> list[str]:
    problems = []
    if len({table.name for table in schema.tables}) < len(schema.tables):
        problems.append(f"The schema {schema.name} has two tables of one name")
    for table in schema.tables:
        if table.schema != schema.name:
            problems.append(f"The table {table.full_name} is not of the schema {schema.name}")
        if len({column.name for column in table.columns}) < len(table.columns):
            problems.append(f"The table {table.name} has two columns of one name")
    return problems
