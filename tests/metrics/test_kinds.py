"""The table of kinds: it alone decides what depends on the kind of a metric."""

import ast
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import holdfast.metrics
from holdfast.engine.contract import Transaction
from holdfast.errors import BadInput, SpecConflict, WrongMetricType
from holdfast.metrics import kinds
from holdfast.metrics.kinds import KINDS, MetricKind, WriteOperation
from holdfast.metrics.layout import LAST_SAMPLES, Keys
from holdfast.metrics.prometheus import Family, Sample
from holdfast.metrics.records import MetricType, StoredSpec
from holdfast.store import Store
from tests.syntax_trees import quoted, trees_with


class Flag:
    """A toy: a metric that is up or down."""

    def __init__(self, keys: Keys, name: str, stored: StoredSpec) -> None:
        self.metric = stored.metric
        self.stem = keys.entity_key(LAST_SAMPLES, name, b"")

    def raise_flag(
        self, tx: Transaction, suffix: bytes, height: int, count: int, at: float
    ) -> None:
        tx.put(self.stem + suffix, b"%d" % height)


def whole_height(metric: Any, value: Any, count: Any) -> int:
    if value not in (0, 1):
        raise BadInput(f"a flag is at 0 or 1, not {value}")
    return int(value)


FLAG = MetricKind(
    bind=Flag,
    operations={"raise": WriteOperation(whole_height, Flag.raise_flag)},
    series_values="height",
    charted_values=("height",),
    has_series_value=lambda value: value == "height",
    series_point=lambda *given: lambda begins, ends: 1,
    family=lambda reader, keys, name, metric, now, timer: Family(
        f"flag_{name}", "gauge", "", [[Sample("", (), 1)]]
    ),
    conflict=lambda name, old, new: "flags stay exposed" if old.expose > new.expose else None,
)


@pytest.fixture
def _flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "flag", FLAG)


@pytest.mark.usefixtures("_flags")
def test_an_entry_in_the_table_is_all_that_a_new_kind_needs(store: Store) -> None:
    spec: Any = {"mast": {"type": "flag", "expose": True}}
    store.metrics.define(spec)

    assert store.metrics.write([{"metric": "mast", "op": "raise", "value": 1}]).written == 1

    series = store.metrics.series("mast", start=0, end=60, step=60, value="height", at=60)
    assert series.values == [1]
    assert "flag_mast 1" in store.metrics.prometheus()
    assert store.metrics.buckets().buckets == {}
    with pytest.raises(BadInput, match="a flag is at 0 or 1, not 2"):
        store.metrics.write([{"metric": "mast", "op": "raise", "value": 2}])
    with pytest.raises(WrongMetricType, match="a flag has no 'total'"):
        store.metrics.series("mast", start=0, end=60, at=60)
    with pytest.raises(SpecConflict, match="flags stay exposed"):
        store.metrics.define({"mast": {"type": "flag"}})


@pytest.mark.usefixtures("_flags")
def test_operations_of_other_kinds_are_refused_by_the_table(store: Store) -> None:
    store.metrics.define({"mast": {"type": "flag"}, "edits": {}})

    with pytest.raises(
        WrongMetricType, match="'incr' is not an operation of 'mast', which is a flag"
    ):
        store.metrics.incr("mast")
    with pytest.raises(WrongMetricType, match="'raise' is not an operation of 'edits'"):
        store.metrics.write([{"metric": "edits", "op": "raise"}])
    known = ", ".join(op for kind in KINDS.values() for op in kind.operations)
    with pytest.raises(BadInput, match=f"{known}, not 'lower'"):
        store.metrics.write([{"metric": "edits", "op": "lower"}])


def test_the_type_of_a_spec_names_all_kinds() -> None:
    assert list(get_args(MetricType)) == list(KINDS)
    operations = [op for kind in KINDS.values() for op in kind.operations]
    known = msgspec.json.schema(holdfast.metrics.Write)["$defs"]["Write"]["properties"]["op"]
    assert sorted(known["enum"]) == sorted(operations)


@pytest.mark.parametrize("kind", KINDS)
def test_the_hint_for_a_wrong_type_names_the_operations_of_all_kinds(kind: str) -> None:
    operations = " and ".join(f"`{op}`" for op in KINDS[kind].operations)

    assert re.search(rf"\b{kind} (takes )?{operations}", WrongMetricType.hint)


@pytest.mark.parametrize("kind", KINDS)
def test_the_dashboard_offers_values_that_a_series_has(kind: str) -> None:
    assert KINDS[kind].charted_values
    assert all(map(KINDS[kind].has_series_value, KINDS[kind].charted_values))


def test_no_module_beside_the_table_compares_the_type_of_a_metric() -> None:
    """`records.py` may: `Metric.require_type` refuses a read that belongs to another kind, and
    `registry.py` refuses a spec of another kind than the stored one."""
    folder = Path(kinds.__file__).parent
    found = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if (isinstance(side, ast.Attribute) and side.attr == "type")
        or (isinstance(side, ast.Constant) and side.value in KINDS)
        or (isinstance(side, ast.Name) and side.id in ("COUNTER", "GAUGE", "DISTRIBUTION"))
    }

    assert found - {"prometheus.py"} == {"records.py", "registry.py"}


def test_no_other_package_decides_by_the_name_of_a_kind() -> None:
    layer = Path(kinds.__file__).parent
    found = {
        path.relative_to(layer.parent).as_posix()
        for path, tree in trees_with(layer.parent.rglob("*.py"), quoted(KINDS))
        if path.parent != layer
        for node in ast.walk(tree)
        for side in decisive(node)
        if isinstance(side, ast.Constant) and side.value in KINDS
    }

    assert found == set()


def decisive(node: ast.AST) -> list[ast.expr | None]:
    """Returns what a comparison compares, or the keys of a table."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [*node.keys] if isinstance(node, ast.Dict) else []
