"""Random schemas and events, against a model of the language that a reader can check by eye."""

from itertools import product
from typing import Any, NamedTuple

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, given, settings

from holdfast.store import Store
from holdfast.testing import Clock
from tests.stores import Stores

# --- the model --------------------------------------------------------------------------------


class Chain(NamedTuple):
    """An expression: literals and attributes in brackets, then steps."""

    literals: tuple[str, ...]
    attributes: tuple[str, ...]
    steps: tuple[str, ...]

    def text(self) -> str:
        terms = [*(f"'{literal}'" for literal in self.literals), *self.attributes]
        return f"[{', '.join(terms)}]" + "".join(f".{step}" for step in self.steps)


class Rule(NamedTuple):
    """A handler."""

    targets: tuple[Chain, ...]
    operation: str
    value: str  # an attribute
    bound: int | None
    gross: bool
    distinct: bool
    expire_after: int | None

    def handler(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "targets": [target.text() for target in self.targets],
            self.operation: self.value,
            "store_gross_counters": self.gross,
            "store_distinct_counters": self.distinct,
        }
        if self.bound is not None:
            fields["max_stored_values"] = self.bound
        if self.expire_after is not None:
            fields["expire_after"] = self.expire_after
        return fields


class Key:
    """The content of a key: every member with its time and arrival, every count, every value."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.members: dict[str, tuple[int, int]] = {}
        self.counts: dict[str, int] = {}
        self.k = 0
        self.gross = 0
        self.distinct: set[str] = set()
        self.expire_after: int | None = None
        self.expires = float("inf")

    def newest(self) -> list[str]:
        return sorted(self.members, key=lambda value: self.members[value], reverse=True)


class Model:
    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.keys: dict[str, Key] = {}
        self.arrivals = 0

    def send(self, attributes: dict[str, Any], at: int, now: float) -> int:
        """Runs all rules and returns how many were skipped."""
        self.keys = {name: key for name, key in self.keys.items() if key.expires > now}
        return sum(not self.run(rule, attributes, at, now) for rule in self.rules)

    def run(self, rule: Rule, attributes: dict[str, Any], at: int, now: float) -> bool:
        named = [name for target in rule.targets for name in target.attributes]
        if any(name not in attributes for name in [*named, rule.value]):
            return False
        parts = [self.strings(rule, i, attributes) for i in range(len(rule.targets))]
        names = list(dict.fromkeys(":".join(combination) for combination in product(*parts)))
        kind = "leaderboard" if rule.operation == "count_frequency" else "set"
        if not attributes[rule.value]:
            return True
        if rule.operation != "remove" and rule.bound == 0 and not (rule.gross or rule.distinct):
            return False  # it keeps nothing
        if any(self.keys[name].kind != kind for name in names if name in self.keys):
            return False
        for name in names:
            self.write(rule, name, kind, attributes[rule.value], at, now)
        return True

    def strings(self, rule: Rule, position: int, attributes: dict[str, Any]) -> list[str]:
        chain = rule.targets[position]
        found = [*chain.literals]
        for name in chain.attributes:
            found += attributes[name]
        is_last = position == len(rule.targets) - 1
        names_last = rule.operation in ("add", "remove") and is_last
        found = list(dict.fromkeys(found))
        for number, step in enumerate(chain.steps, 1):
            if names_last and number == len(chain.steps):
                return [f"{string}:{step}" for string in found]
            sets = [self.keys.get(f"{string}:{step}") for string in found]
            found = [value for key in sets if key is not None for value in key.newest()]
            found = list(dict.fromkeys(found))
        return found

    def write(
        self, rule: Rule, name: str, kind: str, values: list[str], at: int, now: float
    ) -> None:
        key = self.keys.get(name)
        if rule.operation == "remove":
            changed = [value for value in values if key is not None and value in key.members]
            if key is None or not changed:
                return
            for value in changed:
                key.members.pop(value, None)
        else:
            bound = 100 if rule.bound is None and kind == "leaderboard" else rule.bound
            key = self.keys.setdefault(name, Key(kind))
            key.gross += len(values) if rule.gross else 0
            key.distinct.update(values if rule.distinct else ())
            if kind == "leaderboard":
                self.count(key, values, bound or 0)
            else:
                self.add(key, values, bound, at)
        if rule.expire_after is not None:
            key.expire_after = rule.expire_after
        if key.expire_after is not None:
            key.expires = now + key.expire_after

    def add(self, key: Key, values: list[str], bound: int | None, at: int) -> None:
        if bound is not None:
            key.members = {value: key.members[value] for value in key.newest()[:bound]}
        for value in values:
            self.arrivals += 1
            if value not in key.members or key.members[value][0] <= at:
                key.members[value] = (at, self.arrivals)
            if bound is not None and len(key.members) > bound:
                del key.members[key.newest()[-1]]

    def count(self, key: Key, values: list[str], k: int) -> None:
        key.k = k
        for value in values:
            key.counts[value] = key.counts.get(value, 0) + 1


# --- random schemas and events ----------------------------------------------------------------

NAMES = st.sampled_from(["a", "b"])
STEPS = st.sampled_from([(), (), (), ("a",), ("b",), ("a", "b")])


@st.composite
def chains(draw: st.DrawFn, steps: bool) -> Chain:
    literals = tuple(draw(st.lists(NAMES, max_size=2)))
    attributes = () if literals else (draw(st.sampled_from(["x", "y"])),)
    return Chain(literals, attributes, draw(STEPS) if steps else ())


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A handler that writes few values to the many keys of a look-up, or many values to few."""
    looks_up = draw(st.sampled_from([False, False, True]))
    targets = [draw(chains(looks_up))]
    if draw(st.booleans()):
        targets.insert(draw(st.integers(0, 1)), draw(chains(False)))
    return Rule(
        targets=tuple(targets),
        operation=draw(st.sampled_from(["add", "add", "add", "remove", "count_frequency"])),
        value="x" if looks_up else draw(st.sampled_from(["z", "z", "z", "x"])),
        bound=draw(st.sampled_from([None, None, None, 0, 1, 3, 40, 120, 300, 350])),
        gross=draw(st.sampled_from([True, True, False])),
        distinct=draw(st.sampled_from([True, True, True, False])),
        expire_after=draw(st.sampled_from([None, None, 60])),
    )


@st.composite
def many_values(draw: st.DrawFn) -> list[str]:
    """A run of numbers: long ones make sets grow through all their forms."""
    begin = draw(st.integers(0, 400))
    step = draw(st.sampled_from([1, 7]))
    count = draw(st.sampled_from([0, 1, 5, 40, 300]))
    return [str((begin + step * number) % 450) for number in range(count)]


class Sent(NamedTuple):
    attributes: dict[str, list[str]]
    back: int  # how much earlier than now it happened, in milliseconds
    pause: int  # before it is sent, in seconds


SENT = st.builds(
    Sent,
    attributes=st.fixed_dictionaries(
        {"x": st.lists(NAMES, min_size=1, max_size=2), "z": many_values()},
        optional={"y": st.lists(NAMES, min_size=1, max_size=1)},
    ),
    back=st.sampled_from([0, 0, 0, 0, 1_500]),
    pause=st.sampled_from([0, 1, 1, 50]),
)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes longer than reading
)
@given(rules=st.lists(rules(), min_size=1, max_size=4), events=st.lists(SENT, max_size=10))
def test_a_store_says_what_the_model_says(
    stores: Stores, rules: list[Rule], events: list[Sent]
) -> None:
    clock = Clock(1_700_000_000)
    model = Model(rules)
    with stores.open(clock=clock) as store:
        store.events.deploy({"e": [rule.handler() for rule in rules]})
        for attributes, back, pause in events:
            clock.advance(seconds=pause)
            at = round(clock() * 1_000) - back
            skipped = model.send(attributes, at, clock())
            reply = store.events.send({"name": "e", "attributes": attributes, "at": at})
            assert len(reply.skipped) == skipped
        compare(store, model)


def compare(store: Store, model: Model) -> None:
    """All reads of all keys."""
    found = {info.key: info.kind for info in store.events.keys(limit=10_000).keys}
    assert found == {name: key.kind for name, key in model.keys.items()}
    compare_together(store, model)
    for name, key in model.keys.items():
        assert store.events.gross(name) == key.gross
        distinct = store.events.distinct(name)
        if distinct.exact:
            assert distinct.count == len(key.distinct)
        assert abs(distinct.count - len(key.distinct)) <= 0.05 * len(key.distinct)
        if key.kind == "set":
            compare_set(store, name, key)
        else:
            compare_board(store, name, key)


def compare_together(store: Store, model: Model) -> None:
    """Reads of two sets as one: members, bounds, counts."""
    names = [name for name, key in model.keys.items() if key.kind == "set"][:2]
    if len(names) < 2:
        return
    first, second = (model.keys[name] for name in names)
    times = sorted(at for key in (first, second) for at, _ in key.members.values())
    since = times[len(times) // 3] if times else 0
    within = [
        {value: at for value, (at, _) in key.members.items() if at > since}
        for key in (first, second)
    ]
    expected = {
        "union": set(within[0]) | set(within[1]),
        "intersection": set(within[0]) & set(within[1]),
        "difference": set(within[0]) - set(within[1]),
    }
    for op, members in expected.items():
        walked = walk_together(store, names, op, since)
        assert len(walked) == len(members)
        assert {value for value, _ in walked} == members
        assert [at for _, at in walked] == sorted((at for _, at in walked), reverse=True)
        if op != "difference":
            assert all(at == max(each.get(value, 0) for each in within) for value, at in walked)
    assert store.events.gross(names) == first.gross + second.gross
    united = store.events.distinct(names)
    truth = len(first.distinct | second.distinct)
    assert abs(united.count - truth) <= 0.05 * truth


def walk_together(store: Store, names: list[str], op: Any, since: int) -> list[tuple[str, int]]:
    walked: list[tuple[str, int]] = []
    after: str | None = None
    while True:
        page = store.events.members(names, 41, after, since=since, op=op)
        walked += [(member.value, member.at) for member in page.members]
        after = page.next
        if after is None:
            return walked


def compare_set(store: Store, name: str, key: Key) -> None:
    walked: list[tuple[str, int]] = []
    after: str | None = None
    while True:
        page = store.events.members(name, limit=37, after=after)
        walked += [(member.value, member.at) for member in page.members]
        after = page.next
        if after is None:
            break
    assert walked == [(value, key.members[value][0]) for value in key.newest()]
    assert store.events.size(name) == len(key.members)
    for value in ("0", "17", "449", "a"):
        member = store.events.contains(name, value)
        expected = key.members.get(value)
        assert (member is None) == (expected is None)
        if member is not None and expected is not None:
            assert member.at == expected[0]


def compare_board(store: Store, name: str, key: Key) -> None:
    top = store.events.top(name, k=1_000)
    for entry in top:
        # Exact, unless a handler with K = 0 has counted there too: then within the error.
        truth = key.counts.get(entry.value, 0)
        assert truth <= entry.count <= truth + entry.error
    assert top == sorted(top, key=lambda entry: (-entry.count, entry.value))
    assert store.events.top(name) == top[: key.k]
