"""Models: how a class becomes a table, and objects become entities and come back."""

import inspect
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from holdfast.entities import Col, Model, col, column, index, now, schema_yaml
from holdfast.entities.columns import Condition
from holdfast.entities.messages import Change, Ordering
from holdfast.entities.schema_file import parse_schema
from holdfast.errors import (
    BadChange,
    BadFilter,
    BadModel,
    BadValue,
    UnknownColumn,
)
from holdfast.store import Store
from tests.entities.example_models import Plain, User

ROOT = Path(__file__).parents[2]


def test_a_class_gives_columns_and_an_object_gives_values() -> None:
    user = User(name="ann", email="a@b.c")

    assert (user.name, user.email, user.score, user.groups, user.id) == (
        *("ann", "a@b.c", 0, None, None),
    )
    assert isinstance(User.name, Col)
    assert User.registered.name == "time"


def test_a_model_makes_its_own_schema_file() -> None:
    table = parse_schema(User.schema_yaml()).tables[0]

    assert table == User.table_record()
    assert table.full_name == User.table_name() == "test.Users"
    assert [(c.name, c.type, c.attribute) for c in table.columns] == [
        ("name", "Text", "name"),
        ("email", "Text", "email"),
        ("time", "Timestamp", "registered"),
        ("groups", "Set", "groups"),
        ("score", "Int", "score"),
    ]
    assert table.columns[2].default == "$now"
    assert table.primary.columns == ("email",)


def test_annotations_tell_types_elements_choices_and_defaults() -> None:
    columns = {column.name: column for column in Plain.table_record().columns}

    assert {name: column.type for name, column in columns.items()} == {
        "name": "Text",
        "rank": "Int",
        "ratio": "Float",
        "currency": "Text",
        "tags": "Set",
        "remarks": "List",
        "extra": "Map",
        "raw": "Binary",
        "hits": "Uint",
        "anything": "List",
    }
    assert columns["name"].required
    assert columns["currency"].choices == ("usd", "nis")
    assert (columns["tags"].subtype, columns["tags"].default) == ("Text", [])
    assert columns["remarks"].max_len == 3
    assert columns["extra"].subtype == "Int"


def test_unset_columns_read_as_the_default_or_none() -> None:
    loaded = Plain.from_entity(_entity({"name": "x"}))

    assert (loaded.rank, loaded.ratio, loaded.currency, loaded.tags) == (0, None, None, set())
    assert User.from_entity(_entity({"name": "x"})).registered is None


def test_defaults_are_made_for_each_object() -> None:
    one, two = Plain(name="a"), Plain(name="b")

    one.tags.add("x")

    assert (one.tags, two.tags) == ({"x"}, set())


def test_a_keyword_that_is_no_column_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownColumn, match="User has no column 'nmae', did you mean 'name'"):
        User(nmae="x")  # type: ignore[call-arg]  # what mypy sees, too


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "Plain.name is required and not set"),
        ({"name": None}, "Plain.name is required and not set"),
        ({"name": 5}, "Plain.name holds 5, which does not fit a Text column"),
        ({"name": "x", "rank": True}, "Plain.rank holds True, which does not fit a Int column"),
        ({"name": "x", "rank": 1.5}, "does not fit a Int column"),
        ({"name": "x", "currency": "eur"}, "Plain.currency is 'eur', none of 'usd', 'nis'"),
        ({"name": "x", "notes": ["a"] * 4}, "Plain.notes has length 4, at most 3 fit"),
        ({"name": "x", "notes": [1]}, "Plain.notes holds the element 1, which is not of type Text"),
        (
            {"name": "x", "extra": {"a": "b"}},
            "Plain.extra holds the element 'b', which is not of type Int",
        ),
        ({"name": "x", "hits": -1}, "Plain.hits is -1, below 0"),
        ({"name": "x", "tags": ["a"]}, "does not fit a Set column"),
        ({"name": "x", "rank": 2**63}, f"Plain.rank is {2**63}, above {2**63 - 1}"),
        ({"name": "x", "rank": -(2**63) - 1}, f"Plain.rank is {-(2**63) - 1}, below {-(2**63)}"),
        ({"name": "x", "hits": 2**64}, f"Plain.hits is {2**64}, above {2**64 - 1}"),
        ({"name": "x", "extra": {"a": 2**63}}, f"an element that is {2**63}, above {2**63 - 1}"),
    ],
)
def test_what_does_not_fit_its_column_is_refused_before_it_is_sent(
    values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadValue) as caught:
        Plain(**values).to_properties()

    assert reason in str(caught.value)


class Numbers(Model, schema="test", table="Numbers"):
    low: int = column()
    high: int = column(type="Uint")


@pytest.mark.parametrize(("low", "high"), [(2**63, 0), (-(2**63) - 1, 0), (0, 2**64), (0, -1)])
def test_a_model_of_integers_alone_refuses_one_beyond_64_bits(low: int, high: int) -> None:
    edges = Numbers(low=-(2**63), high=2**64 - 1)

    assert edges.to_properties() == {"low": -(2**63), "high": 2**64 - 1}
    with pytest.raises(BadValue):
        Numbers(low=low, high=high).to_properties()


def test_an_update_refuses_an_integer_that_its_column_can_not_hold(store: Store) -> None:
    with pytest.raises(BadValue, match="above"):
        store.entities.update(Numbers, Numbers.all(), low=2**63)


def test_kindred_values_are_converted() -> None:
    plain = Plain(name="x", ratio=3, raw=bytearray(b"ab"), notes=("a",), tags=frozenset("b"))  # type: ignore[arg-type]  # on purpose

    properties = plain.to_properties()

    assert properties["ratio"] == 3.0
    assert type(properties["ratio"]) is float
    assert (properties["raw"], properties["remarks"], properties["tags"]) == (b"ab", ["a"], {"b"})


def test_models_inherit_columns() -> None:
    class Base(Model):
        created: datetime = column(default=now)

    class Child(Base, schema="test", table="Child"):
        name: str

    assert [c.name for c in Child.table_record().columns] == ["created", "name"]
    assert Child(name="x").created.tzinfo is UTC
    with pytest.raises(BadModel, match="Base has no table"):
        Base.table_name()


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (complex, "no column can hold"),
        (int | str, "no column can hold"),
        (object, "has no type"),
        (Literal["a", 1], "of several types"),
        ("Missing", "name 'Missing' is not defined"),
    ],
)
def test_an_annotation_that_no_column_can_hold_is_refused(annotation: Any, reason: str) -> None:
    with pytest.raises(BadModel, match=reason):
        type("Odd", (Model,), {"__annotations__": {"x": annotation}}, schema="s", table="T")


def test_a_column_called_id_is_refused() -> None:
    with pytest.raises(BadModel, match="every entity has its own id"):
        type("Odd", (Model,), {"__annotations__": {"id": int}}, schema="s", table="T")


def test_columns_that_contradict_each_other_are_refused_with_the_class() -> None:
    with pytest.raises(BadModel, match="Keyless has no column 'emial' for its keys"):

        class Keyless(Model, schema="test", table="T", primary=("emial",)):
            email: str = column()

    with pytest.raises(BadModel, match="Indexless has no column 'seen' for its keys"):

        class Indexless(Model, schema="test", table="T", indexes=[index("seen")]):
            seen: datetime = column("time")

    with pytest.raises(BadModel, match="Twins has two columns 'name': name, title"):

        class Twins(Model, schema="test", table="T"):
            name: str = column()
            title: str = column("name")

    with pytest.raises(BadModel, match=r"Silent\.name has no type"):

        class Silent(Model, schema="test", table="T"):
            name = column()

    with pytest.raises(BadModel, match=r"Odd\.name is of type 'Txt'"):

        class Odd(Model, schema="test", table="T"):
            name: str = column(type="Txt")  # type: ignore[arg-type]  # on purpose


def test_a_table_needs_its_schema() -> None:
    with pytest.raises(BadModel, match="needs both"):
        type("Odd", (Model,), {}, table="T")


def test_annotations_may_be_texts() -> None:
    namespace: dict[str, Any] = {"Model": Model, "__name__": __name__}
    program = (
        "from __future__ import annotations\n"
        "def make():\n"
        "    Names = list[str]\n"
        "    class Later(Model, schema='s', table='T'):\n"
        "        names: Names | None = None\n"
        "    return Later\n"
    )

    exec(program, namespace)

    assert namespace["make"]().table_record().columns[0].subtype == "Text"


def test_columns_make_filters_orders_and_changes() -> None:
    assert (User.name == "x") == Condition("name", "=", ("x",))
    assert User.name.in_("a", "b") == Condition("name", "IN", ("a", "b"))
    assert User.score.between(1, 5) == Condition("score", "><", (1, 5))
    assert (User.score > 1, User.score >= 1, User.score < 1, User.score <= 1) == (
        Condition("score", ">", (1,)),
        Condition("score", ">=", (1,)),
        Condition("score", "<", (1,)),
        Condition("score", "<=", (1,)),
    )
    assert (User.registered.asc(), User.email.desc()) == (
        Ordering("time", True),
        Ordering("email", False),
    )
    assert (User.score + 3, User.score - 2, User.score * 2) == (
        Change("INCR", "score", 3),
        Change("INCR", "score", -2),
        Change("MUL", "score", 2),
    )
    assert (User.groups.add("a", "b"), User.groups.remove("a"), User.email.unset()) == (
        Change("SADD", "groups", ["a", "b"]),
        Change("SDEL", "groups", ["a"]),
        Change("PDEL", "email"),
    )
    assert (col(Plain.extra).put_keys(a=1), col(Plain.extra).remove_keys("a", "b")) == (
        Change("MSET", "extra", {"a": 1}),
        Change("MDEL", "extra", ["a", "b"]),
    )
    assert User.groups.add(["a", "b"]) == User.groups.add("a", "b")
    assert User.groups.remove({"a"}) == User.groups.remove("a")
    assert col(Plain.extra).put_keys({"a b": 1}, c=2) == Change("MSET", "extra", {"a b": 1, "c": 2})
    assert col(Plain.extra).remove_keys(["a", "b"]) == col(Plain.extra).remove_keys("a", "b")
    assert (col(Plain.notes).append("n"), User.name.set("x")) == (
        Change("LADD", "remarks", ["n"]),
        Change("SET", "name", "x"),
    )
    assert User.all() == Condition("id", "ALL")


def test_filters_join_with_and() -> None:
    first, second, third = User.name == "a", User.email == "b", User.score == 1

    assert first & second == (first, second)
    assert first & second & third == (first, second, third)
    assert [first] & (second & third) == (first, second, third)
    assert first & [second, third] == (first, second, third)
    assert [first] & second == (first, second)


def test_a_model_with_one_key_column_may_name_it_alone() -> None:
    class Keyed(Model, schema="test", table="T", primary="email"):
        email: str = column()

    assert Keyed.table_record().primary.columns == ("email",)


def test_a_default_of_several_types_is_told_in_the_order_of_the_store() -> None:
    class Mixed(Model, schema="test", table="T"):
        tags: set[object] = column(type="Set", default={"b", 2, "a", 1})

    assert Mixed.table_record().columns[0].default == [1, 2, "a", "b"]


def test_python_s_own_and_or_and_not_equal_are_refused() -> None:
    with pytest.raises(BadFilter, match="neither true nor false"):
        bool(User.name == "a")
    with pytest.raises(BadFilter, match="an index can't select"):
        _ = User.name != "a"
    with pytest.raises(BadChange, match="is not a number"):
        _ = User.score + "3"  # type: ignore[operator]  # on purpose
    with pytest.raises(BadChange, match="is not a number"):
        _ = User.score - "3"  # type: ignore[operator]  # on purpose
    with pytest.raises(TypeError, match="is not a column"):
        col(5)


def _entity(properties: dict[str, Any]) -> Any:
    from holdfast.entities.messages import Entity

    return Entity("1", properties, version=1)


def test_objects_show_what_they_hold() -> None:
    assert repr(Plain(name="x", rank=2)).startswith("Plain(id=None, name='x', rank=2, ratio=None")
    assert Plain(name="x") != Plain(name="y")
    assert Plain(name="x") != "x"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Plain(name="x"))


TYPED = '''
"""A program for type checkers; `# E:` marks the lines that they must refuse."""

from datetime import datetime, timedelta
from typing import Literal, assert_type

import holdfast
from holdfast.entities import Col, Model, Page, col, column, index, now, select
from holdfast.entities.columns import Condition


class User(Model, schema="test", table="Users", primary=("email",), indexes=[index("name")]):
    name: Col[str] = column(required=True)
    email: Col[str] = column(default="")
    registered: Col[datetime] = column("time", default=now)
    groups: Col[set[str] | None] = column()
    rank: Col[int] = column(default=0)


class Plain(Model, schema="test", table="Plain"):
    name: str
    rank: int = column(default=0)
    currency: Literal["usd", "nis"] | None = column()


def use(store: holdfast.Store) -> None:
    user = User(name="ann", email="a@b.c", groups={"a"})
    assert_type(user.name, str)
    assert_type(user.groups, set[str] | None)
    assert_type(user.id, str | None)
    assert_type(User.name, Col[str])
    assert_type(User.name == "x", Condition)

    db = store.entities
    ids = db.put(user, ttl=timedelta(hours=1))
    assert_type(ids, list[str])
    assert_type(db.get(User, *ids), list[User])
    assert_type(db.get_one(User, ids[0]), User | None)
    page = db.select(
        User, User.name.in_("a", "b"), User.email == "x", order=User.email.desc(), limit=4, offset=8
    )
    assert_type(page, Page[User])
    assert_type(page.items, list[User])
    chosen = select(User).where(User.name == "x").order_by(User.rank.desc()).limit(10)
    assert_type(db.select(chosen), Page[User])
    assert_type([found.rank for found in db.select(chosen)], list[int])
    assert_type(db.update(User, User.name == "a", name="Bubba", score=User.rank + 3), int)
    db.update(User, User.id == ids[0], User.groups.add("g1"), User.email.unset())
    db.update(User, User.id.in_(*ids), expire=timedelta(seconds=5))
    assert_type(db.delete(User, User.id.in_(*ids)), int)

    plain = Plain(name="n", rank=3)
    assert_type(plain.rank, int)
    db.select(Plain, Plain.name == "x", order=col(Plain.rank).desc())

    User(nme="x")  # E: call-arg
    User(name=5)  # E: arg-type
    Plain(rank=1)  # E: call-arg
    Plain(name="x", currency="eur")  # E: arg-type
    user.rank = "x"  # E: assignment
    user.rnak = 1  # E: attr-defined
    User.name.in_(1)  # E: arg-type
    db.get(User, 5)  # E: arg-type
'''


def test_type_checkers_see_models_in_full(tmp_path: Path) -> None:
    program = tmp_path / "typed.py"
    program.write_text(inspect.cleandoc(TYPED) + "\n")
    expected = {
        (at, line.rsplit("# E: ", 1)[1])
        for at, line in enumerate(program.read_text().splitlines(), 1)
        if "# E: " in line and "`# E:`" not in line
    }

    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    lines = [line for line in run.stdout.splitlines() if "typed.py:" in line and "error:" in line]
    found = {(int(line.split(":")[1]), line.rsplit("[", 1)[1].rstrip("]")) for line in lines}
    assert found == expected, run.stdout + run.stderr


class Nested(Model, schema="test", table="Nested"):
    groups: list[set[str]] = column(default=[{"b", "a"}])


def test_a_default_with_sets_inside_is_told_as_lists() -> None:
    [column] = parse_schema(schema_yaml(Nested)).tables[0].columns

    assert column.default == [["a", "b"]]
