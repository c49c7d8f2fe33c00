"""The plan of a redeploy: what changes, what stays, and what people are told."""

from holdfast.entities.plan import Plan, plan
from holdfast.entities.schema import Column, Index, Primary, Schema, Table

NAME = Column(name="name", type="Text")
AGE = Column(name="age", type="Int")
BY_NAME = Index(columns=("name",), type="simple")
BY_AGE = Index(columns=("age",), type="simple")
USERS = Table(schema="s", name="Users", columns=(NAME, AGE), indexes=(BY_NAME,))
ORDERS = Table(schema="s", name="Orders")


def of(*tables: Table) -> Schema:
    return Schema(name="s", tables=tables)


def changed(**fields: object) -> Table:
    return Table(**{name: getattr(USERS, name) for name in USERS.__struct_fields__} | fields)


def only(made: Plan) -> tuple[object, ...]:
    [table] = made.tables
    return table.action, table.add_indexes, table.keep_indexes, table.remove_indexes


def test_a_first_deploy_creates_every_table_with_its_indexes() -> None:
    made = plan(None, of(USERS, ORDERS))

    assert [table.action for table in made.tables] == ["create", "create"]
    assert made.tables[0].add_indexes == (BY_NAME,)
    assert made.lines() == ["+ table s.Users", "+ table s.Orders"]


def test_deploying_the_same_again_changes_nothing() -> None:
    made = plan(of(USERS, ORDERS), of(USERS))

    assert only(made) == ("keep", (), (BY_NAME,), ())
    assert made.is_empty
    assert made.lines() == []


def test_tables_that_are_not_mentioned_stay_unless_the_deploy_prunes() -> None:
    assert [table.action for table in plan(of(USERS, ORDERS), of(USERS)).tables] == ["keep"]

    pruned = plan(of(USERS, ORDERS), of(ORDERS), prune=True)

    assert [(table.action, table.must_be_empty) for table in pruned.tables] == [
        ("keep", False),
        ("remove", True),
    ]
    assert pruned.tables[1].remove_indexes == (BY_NAME,)
    assert pruned.lines() == ["- table s.Users"]


def test_indexes_are_told_apart_by_table_columns_and_type() -> None:
    compound = Index(columns=("name",), type="compound")

    made = plan(of(USERS), of(changed(indexes=(BY_AGE, compound))))

    assert only(made) == ("change", (BY_AGE, compound), (), (BY_NAME,))
    assert made.lines() == [
        "~ table s.Users",
        "    - index s.Users__name_simple",
        "    + index s.Users__age_simple, built in the background",
        "    + index s.Users__name_compound, built in the background",
    ]


def test_an_index_that_becomes_unique_or_sparse_is_built_again() -> None:
    unique = Index(columns=("name",), type="simple", unique=True)
    sparse = Index(columns=("name",), type="simple", sparse=True)

    for index in (unique, sparse):
        made = plan(of(USERS), of(changed(indexes=(index,))))
        assert only(made) == ("change", (index,), (), (BY_NAME,))


def test_an_index_that_is_no_longer_unique_keeps_its_entries() -> None:
    unique = Index(columns=("name",), type="simple", unique=True)

    made = plan(of(changed(indexes=(unique,))), of(USERS))

    assert only(made) == ("change", (), (BY_NAME,), ())


def test_columns_may_change_freely_and_are_listed() -> None:
    longer = Column(name="name", type="Text", max_len=9, required=True, default="")
    email = Column(name="email", type="Text")

    made = plan(of(USERS), of(changed(columns=(longer, email), strict=True)))

    assert only(made) == ("change", (), (BY_NAME,), ())
    assert not made.tables[0].must_be_empty
    assert made.lines() == [
        "~ table s.Users",
        "    ~ column name: default none, now empty, required false, now true, max_len none, now 9",
        "    + column email: Text",
        "    - column age, whose values stay stored",
        "    ~ strict: false, now true",
    ]


def test_another_primary_key_needs_an_empty_table() -> None:
    compound = Primary(type="compound", columns=("name",), hashed=True)

    made = plan(of(USERS), of(changed(primary=compound)))

    assert made.tables[0].primary_changes
    assert made.tables[0].must_be_empty
    assert "    ! primary key: random, now hashed compound of name" in made.lines()


def test_a_new_order_of_indexes_rebuilds_none() -> None:
    before = changed(indexes=(BY_NAME, BY_AGE))

    made = plan(of(before), of(changed(indexes=(BY_AGE, BY_NAME))))

    assert only(made) == ("change", (), (BY_AGE, BY_NAME), ())


class CountedName(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_each_column_is_looked_up_once_however_many_there_are() -> None:
    old = tuple(Column(name=CountedName(f"c{n}"), type="Text") for n in range(200))
    new = tuple(Column(name=CountedName(f"c{n}"), type="Int") for n in range(100, 300))
    made = plan(of(changed(columns=old)), of(changed(columns=new)))
    CountedName.compared = 0

    lines = made.lines()

    assert len(lines) == 1 + 300
    assert CountedName.compared < 2_000
