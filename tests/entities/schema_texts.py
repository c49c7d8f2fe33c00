"""Texts of schema files, for the tests of how they are read."""

from holdfast.entities.schema import Column
from holdfast.entities.schema_file import parse_schema, read_schemas

SHOP = """\
schema: shop                    # required
tables:
  Packages:                     # name in the database
    comment: What is on offer
    class: Package              # name of the generated class; default: the table name
    engines: [redis]            # accepted and ignored
    strict: false               # 13.4
    primary:
      type: compound            # compound | random; default random
      columns: [packageId, locale]
      options: {hashed: true}
    columns:
      packageId:
        type: Text
        options: {required: true, max_len: 100}
      locale: {type: Text}
      name: {type: Text}
      rank: {type: Int, default: 0}
      currency:
        type: Text
        options: {choices: [usd, nis]}
      screens:
        comment: keys of the screenshots
        clientName: screenshots # attribute name in generated code; default: the column name
        type: List
        options: {subtype: Text}
      lmtime: {type: Timestamp, clientName: lastModification, default: $now}
    indexes:
      - {type: compound, columns: [name, locale]}
"""


def table(columns: str, rest: str = "") -> str:
    """A schema file with one table; the columns begin in line 4."""
    lines = "".join(f"      {line}\n" for line in columns.splitlines())
    return f"schema: s\ntables:\n  T: {{columns: {{\n{lines}    }}{rest}}}\n"


def problems(*contents: str | bytes) -> list[str]:
    files = [(f"{name}.yaml", content) for name, content in zip("abc", contents, strict=False)]
    return [str(problem) for problem in read_schemas(files).problems]


def column(text: str) -> Column:
    return parse_schema(table(f"x: {text}")).tables[0].columns[0]
