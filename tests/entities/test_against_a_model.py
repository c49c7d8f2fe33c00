"""Random histories against a plain dict: every filter, order and page, and the indexes after."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from holdfast.entities import index_builds
from holdfast.entities.messages import Change, Filter, Ordering, PutEntity
from holdfast.entities.order import entry_part
from holdfast.errors import IndexNotReady, NoIndex
from holdfast.testing import Clock
from tests.entities.older_form import make_older
from tests.stores import Stores

TABLE = "m.T"
COLUMNS = ("a", "b", "c")
IDS = [f"id{n}" for n in range(12)]
VALUES: list[Any] = [None, True, -1, 0, 1, 1.5, 2, "", "a", "A", "ab", "á b", b"x", [1], {"k": 1}]
VALUES.append(datetime(2020, 1, 1, tzinfo=UTC))
INDEXES = [("a",), ("a", "b"), ("b", "a"), ("c", "a", "b"), ("b",)]

values = st.sampled_from(VALUES)
comparable = st.sampled_from([value for value in VALUES if not isinstance(value, (list, dict))])
properties = st.dictionaries(st.sampled_from([*COLUMNS, "d", "e f"]), values, max_size=4)
ids = st.sampled_from(IDS)


class Entities(RuleBasedStateMachine):
    """The store beside a dict of id -> (properties, expiry in ms or 0)."""

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self.clock = Clock(1_000)
        self.context = stores.open(clock=self.clock)
        self.store = self.context.__enter__()
        self.entities = self.store.entities
        # Two entities a step, so that most of what happens meets an index that is half built.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(index_builds, "INDEX_STEP_ENTITIES", 2)
        self.model: dict[str, tuple[dict[str, Any], int]] = {}
        self.indexes: list[tuple[str, ...]] = []

    def teardown(self) -> None:
        self.patch.undo()
        self.context.__exit__(None, None, None)

    # --- what happens -------------------------------------------------------------------------

    @initialize(indexes=st.lists(st.sampled_from(INDEXES), unique=True, min_size=2))
    def deploy_first(self, indexes: list[tuple[str, ...]]) -> None:
        self.deploy(indexes, wait=True)

    @rule(indexes=st.lists(st.sampled_from(INDEXES), unique=True), wait=st.booleans())
    def deploy(self, indexes: list[tuple[str, ...]], wait: bool) -> None:
        lines = [f"      - {{type: compound, columns: [{', '.join(i)}]}}" for i in indexes]
        columns = ", ".join(f"{name}: {{type: Text}}" for name in COLUMNS)
        text = f"schema: m\ntables:\n  T:\n    columns: {{{columns}}}\n    indexes:\n"
        self.entities.deploy(text + ("\n".join(lines) or "      []"), wait=wait)
        self.indexes = indexes

    @rule(
        batch=st.lists(st.tuples(ids, properties, st.sampled_from([0, 0, 0, 2, -1])), min_size=1),
        mode=st.sampled_from(["merge", "merge", "replace"]),
    )
    def put(self, batch: list[tuple[str, dict[str, Any], int]], mode: Any) -> None:
        self.entities.put_raw(
            TABLE, [PutEntity(own, id, ttl * 10**9) for id, own, ttl in batch], mode=mode
        )
        for id, own, ttl in batch:
            before, expires = self.live().get(id, ({}, 0))
            if mode == "replace":
                before, expires = {}, 0
            expires = {0: expires, -1: 0}.get(ttl, self.now() + ttl * 1000)
            self.model[id] = ({**before, **own}, expires)

    @rule(
        chosen=st.lists(ids, min_size=1),
        name=st.sampled_from(COLUMNS),
        value=values,
        op=st.sampled_from(["SET", "PDEL", "INCR", "DEL", "EXP"]),
    )
    def update(self, chosen: list[str], name: str, value: Any, op: str) -> None:
        selected = [id for id in dict.fromkeys(chosen) if id in self.live()]
        amount = {"INCR": 1, "EXP": 10**9}.get(op, value)

        found = self.entities.update_raw(
            TABLE, [Filter("id", "IN", chosen)], [Change(op, name, amount)]
        )

        assert found.num == len(selected)
        for id in selected:
            own, expires = self.model[id]
            own = dict(own)
            if op == "SET":
                own[name] = value
            elif op == "PDEL":
                own.pop(name, None)
            elif op == "INCR" and type(own.get(name)) in (int, float, type(None)):
                own[name] = (own.get(name) or 0) + 1
            elif op == "EXP":
                expires = self.now() + 1000
            self.model[id] = (own, expires)
            if op == "DEL":
                del self.model[id]

    @rule(id=ids)
    def delete(self, id: str) -> None:
        expected = int(id in self.live())

        assert self.entities.delete_raw(TABLE, [Filter("id", "=", [id])]) == expected
        self.model.pop(id, None)

    @rule(seconds=st.sampled_from([0.5, 1, 2]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    @rule(keep_lists=st.booleans())
    def make_older(self, keep_lists: bool) -> None:
        make_older(self.store, TABLE, keep_lists=keep_lists)

    @rule()
    def build(self) -> None:
        self.entities.build()

    @rule()
    def sweep(self) -> None:
        self.store.sweep()

    # --- what is seen -------------------------------------------------------------------------

    @rule(
        data=st.data(),
        index=st.sampled_from(INDEXES),
        descending=st.booleans(),
        offset=st.integers(0, 3),
        limit=st.sampled_from([-1, 1, 2, 5]),
    )
    def select(
        self, data: st.DataObject, index: tuple[str, ...], descending: bool, offset: int, limit: int
    ) -> None:
        names = index[: data.draw(st.integers(1, len(index)))]
        filters = [self.equality(data, name) for name in names[:-1]]
        filters.append(data.draw(st.sampled_from([self.equality, self.range]))(data, names[-1]))
        by = names[-1] if filters[-1].op in ("><", ">", "<", ">=", "<=") else index[len(names) - 1]
        order = data.draw(st.sampled_from([None, Ordering(by, not descending)]))
        serving = self.serving(names, filters, order)
        if serving is None:
            return
        if serving not in self.ready():
            with pytest.raises(IndexNotReady):
                self.entities.select_raw(TABLE, filters, order=order)
            return
        page = self.entities.select_raw(TABLE, filters, order=order, offset=offset, limit=limit)

        matching = [(id, own) for id, (own, _) in self.live().items() if all_match(filters, own)]
        start = serving.index(order.by) if order else 0
        matching.sort(key=lambda pair: sort_key(serving[start:], *pair))
        if order and not order.asc:
            matching.reverse()
        end = len(matching) if limit == -1 else offset + limit
        assert [(e.id, e.properties) for e in page] == matching[offset:end]
        assert page.total == len(matching)

    def equality(self, data: st.DataObject, name: str) -> Filter:
        if data.draw(st.booleans()):
            return Filter(name, "=", [data.draw(comparable)])
        return Filter(name, "IN", data.draw(st.lists(comparable, min_size=1, max_size=3)))

    def range(self, data: st.DataObject, name: str) -> Filter:
        op = data.draw(st.sampled_from(["><", ">", "<", ">=", "<="]))
        return Filter(name, op, [data.draw(comparable) for _ in range(2 if op == "><" else 1)])

    def serving(
        self, names: Iterable[str], filters: list[Filter], order: Ordering | None
    ) -> tuple[str, ...] | None:
        """The index that section 7.3 chooses, worked out independently."""
        names = list(names)
        best: tuple[bool, float, tuple[str, ...]] | None = None
        ready = self.ready()
        for index in self.indexes:
            if set(index[: len(names)]) != set(names):
                continue
            if filters[-1].op not in ("IN", "=") and index[len(names) - 1] != names[-1]:
                continue
            if order and order.by not in index[: len(names) + 1]:
                continue
            follows = order is not None and order.by in index[len(names) : len(names) + 1]
            score = (len(names) + follows) / len(index)
            if best is None or (index in ready, score) > best[:2]:
                best = (index in ready, score, index)
        return best[2] if best else None

    def ready(self) -> set[tuple[str, ...]]:
        stats = self.entities.stats()[TABLE].indexes
        states = {tuple(name[5:-9].split(",")): index.state for name, index in stats.items()}
        return {columns for columns, state in states.items() if state == "ready"}

    @rule()
    def everything_by_id(self) -> None:
        page = self.entities.select_raw(TABLE, [Filter("id", "ALL")], limit=-1)

        live = self.live()
        assert [(e.id, e.properties) for e in page] == [(id, live[id][0]) for id in sorted(live)]
        assert page.total == self.entities.count_raw(TABLE) == len(live)

    @rule(name=st.sampled_from(COLUMNS))
    def refuse_what_no_index_serves(self, name: str) -> None:
        if not any(index[0] == name for index in self.indexes):
            with pytest.raises(NoIndex):
                self.entities.select_raw(TABLE, [Filter(name, "=", [1])])

    @invariant()
    def indexes_equal_a_recomputation(self) -> None:
        if not self.indexes:
            return
        found = self.entities.check(TABLE)
        assert (found.added, found.removed, found.recounted) == (0, 0, 0)

    def now(self) -> int:
        return round(self.clock() * 1000)

    def live(self) -> dict[str, tuple[dict[str, Any], int]]:
        now = self.now()
        return {id: pair for id, pair in self.model.items() if not pair[1] or pair[1] > now}


def all_match(filters: list[Filter], own: dict[str, Any]) -> bool:
    return all(matches(filter, own.get(filter.property)) for filter in filters)


def matches(filter: Filter, value: Any) -> bool:
    part = entry_part(value)
    is_null = part == entry_part(None)
    if filter.op in ("IN", "="):
        wanted = {entry_part(v) for v in filter.values}
        return part in wanted or (is_null and "" in filter.values)
    if is_null:
        return False
    if filter.op == "><":
        low, high = (None if v is None else entry_part(v) for v in filter.values)
        return (low is None or low <= part) and (high is None or part <= high)
    [bound] = filter.values
    if bound is None or part[:1] != entry_part(bound)[:1]:
        return False
    other = entry_part(bound)
    return {
        ">": part > other,
        ">=": part >= other,
        "<": part < other,
        "<=": part <= other,
    }[filter.op]


def sort_key(columns: Iterable[str], id: str, own: dict[str, Any]) -> tuple[bytes, ...]:
    return (*(entry_part(own.get(name)) for name in columns), id.encode())


def test_a_store_answers_as_a_dict_would(stores: Stores) -> None:
    run_state_machine_as_test(
        lambda: Entities(stores),  # type: ignore[arg-type]  # a function will do as well
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
