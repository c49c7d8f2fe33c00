"""Column types: one table holds all that is known of each."""

import ast
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from holdfast.entities.types import COLUMN_KINDS, COLUMN_TYPES, ColumnType
from tests.syntax_trees import quoted, trees_with

PACKAGE = Path(__file__).parent.parent.parent / "src" / "holdfast"
MODULES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name not in ("types.py", "bson_codec.py")  # whose names are BSON's
]

# A day, stored as its number: what somebody would write into types.py, and then the whole way
# from a schema file to generated code.
NEW_TYPE = """
import sys
from datetime import date
from typing import Literal, get_args

from holdfast.entities import types

types.COLUMN_KINDS["Day"] = types.ColumnKind(
    python=int,
    fits=lambda value: type(value) is int and 0 <= value < 100_000,
    read=lambda scalar: (scalar.value - date(1970, 1, 1)).days,
    bounds=(0, 99_999),
    go="int64",
    typescript="number",
    meduza="Int",
)
types.ColumnType = Literal[(*get_args(types.ColumnType), "Day")]
types.COLUMN_TYPES = (*types.COLUMN_TYPES, "Day")
for name in [name for name in sys.modules if name.startswith("holdfast.entities")]:
    if not name.endswith((".types", ".order", ".values")):  # which have not read the table
        del sys.modules[name]

from hypothesis import find

import holdfast
from holdfast.dashboard.entity_filters import TypedFilter, as_filters
from holdfast.entities import Model, column
from holdfast.entities.codegen import Options, generate
from holdfast.entities.schema_file import parse_schema
from holdfast.errors import BadValue
from holdfast.testing.factories import Factory, sequence
from holdfast.testing.strategies import objects

TEXT = '''
schema: shop
tables:
  Orders:
    strict: true
    columns:
      sent: {type: Day, default: 2026-11-16}
      late: {type: Set, options: {subtype: Day}}
    indexes: [{type: simple, columns: [sent]}]
'''
schema = parse_schema(TEXT)
assert schema.tables[0].columns[0].default == 20_773


class Order(Model, schema="shop", table="Orders"):
    sent: int | None = column(type="Day")


def refusal(call):
    try:
        call()
    except BadValue as error:
        return str(error)


with holdfast.open("store") as store:
    store.entities.deploy(TEXT)
    store.entities.put(Order(sent=20_000), Order(sent=3))
    page = store.entities.select(Order, Order.sent > 5)
    assert [each.sent for each in page] == [20_000], page
    assert b"20000" in b"".join(store.entities.dump("shop.Orders", format="jsonl"))
    for wrong in ("monday", 100_000):
        put = lambda: store.entities.put_raw("shop.Orders", [{"sent": wrong}])
        assert "is not of type Day" in refusal(put)
    assert "above 99999" in refusal(lambda: store.entities.put(Order(sent=100_000)))

assert Factory(Order, sent=sequence(int)).build().sent == 1
assert 5 < find(objects(Order), lambda order: (order.sent or 0) > 5).sent < 100_000
assert as_filters(schema.tables[0], [TypedFilter("sent", "=", "7")])[0]["values"] == [7]

classic = generate([schema], "py", Options(style="classic"))
assert "import Int, Set" in classic and 'sent = Int("sent", default=20773)' in classic, classic
exec(classic, {})
assert "schema.Int" in generate([schema], "go", Options(meduza_types=True))
python, go, typescript = (generate([schema], each) for each in ("py", "go", "ts"))
assert 'sent: int = column(type="Day", default=20773)' in python, python
assert 'late: set[int] | None = column(subtype="Day")' in python, python
assert "map[int64]struct{}" in go, go
assert "sent: number;" in typescript and "late?: Set<number> | null;" in typescript, typescript
print("done")
"""


def test_the_table_has_the_types_that_type_checkers_know() -> None:
    assert tuple(COLUMN_KINDS) == get_args(ColumnType) == COLUMN_TYPES


def test_no_other_module_decides_by_the_name_of_a_type() -> None:
    def names(nodes: Sequence[ast.expr | None]) -> list[str]:
        inner = [part for node in nodes if node is not None for part in ast.walk(node)]
        constants = [node.value for node in inner if isinstance(node, ast.Constant)]
        return [value for value in constants if isinstance(value, str) and value in COLUMN_TYPES]

    found = []
    for path, tree in trees_with(MODULES, quoted(COLUMN_TYPES)):
        for node in ast.walk(tree):
            named: list[str] = []
            if isinstance(node, ast.Compare):
                named = names([node.left, *node.comparators])
            elif isinstance(node, ast.Dict):
                named = names([*node.keys, *node.values])
            elif isinstance(node, ast.MatchValue):
                named = names([node.value])
            found += [(path.relative_to(PACKAGE).as_posix(), name) for name in named]

    assert found == []


def test_a_new_type_is_one_entry(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(NEW_TYPE)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "done\n", done.stderr
