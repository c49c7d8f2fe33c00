"""Objects of models in a store: put, found again, selected, updated, deleted, and with await."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.client.generated.async_models import AsyncModelCalls
from holdfast.entities import Model, Page, col, column, index, now, schema_yaml, select
from holdfast.errors import (
    BadChange,
    BadModel,
    BadQuery,
    BadValue,
    NoIndex,
    UnknownColumn,
    VersionMismatch,
)
from holdfast.store import Store
from holdfast.testing import Clock
from tests.entities.example_models import Plain, User


def _no_zero(text: str) -> bool:
    return "\0" not in text  # BSON ends a name at the first of them


class Manual(
    Model, schema="test", table="Manual", primary=("email",), indexes=[index("name", "email")]
):
    """The example of the manual, word for word."""

    name: str = column(required=True)
    email: str = column(default="")
    registered: datetime = column("time", default=now)
    groups: set[str] | None = column()
    score: int = column(default=0)


@pytest.fixture
def db(store: Store) -> Store:
    store.entities.deploy(schema_yaml(User, Plain, Manual))
    return store


def users(number: int = 20) -> list[User]:
    return [
        User(name=f"user {at:02}", email=f"user{at:02}@domain.com", groups={f"g{at}", "all"})
        for at in range(number)
    ]


def test_objects_are_put_and_found_again(db: Store) -> None:
    put = users()

    ids = db.entities.put(*put)
    found = db.entities.get(User, *ids)

    assert [user.id for user in put] == ids
    assert found == put
    assert found[3].groups == {"g3", "all"}
    assert db.entities.get_one(User, ids[0]) == put[0]
    assert db.entities.get_one(User, "nobody") is None
    assert db.entities.get(User, "nobody", ids[1]) == [put[1]]
    assert db.entities.get(User) == []


def test_the_example_of_the_manual_works_as_it_says(db: Store, clock: Clock) -> None:
    manual: Any = Manual  # with plain annotations, a checker sees the values only
    users = [manual(name=name, email=mail) for name in "abc" for mail in (f"{name}1", f"{name}2")]

    ids = db.entities.put(*users, ttl=timedelta(hours=1))
    assert db.entities.get(manual, *ids) == users
    assert db.entities.get_one(manual, ids[0]) == users[0]
    page = db.entities.select(
        manual,
        manual.name.in_("a", "b"),
        manual.email.in_("a1", "a2", "b1", "b2"),
        order=manual.email.desc(),
        limit=2,
        offset=1,
    )
    assert ([user.email for user in page], page.total) == (["b1", "a2"], 4)
    assert db.entities.update(manual, manual.name == "a", name="Bubba", score=manual.score + 3) == 2
    assert [user.score for user in db.entities.select(manual, manual.name == "bubba").items] == [
        3,
        3,
    ]
    assert (
        db.entities.update(
            manual, manual.id == ids[0], manual.groups.add("g1"), manual.email.unset()
        )
        == 1
    )
    assert db.entities.update(manual, manual.id.in_(*ids), expire=timedelta(seconds=5)) == 6
    assert db.entities.delete(manual, manual.id.in_(*ids[:2])) == 2
    assert db.entities.count(manual) == 4
    clock.advance(seconds=5)
    assert db.entities.count(manual) == 0


texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.fixed_dictionaries(
    {"name": texts},
    optional={
        "rank": st.integers(-(2**63), 2**63 - 1),
        "ratio": st.none() | st.floats(allow_nan=False),
        "currency": st.sampled_from(["usd", "nis", None]),
        "tags": st.sets(texts, max_size=3),
        "notes": st.lists(texts, max_size=3),
        "extra": st.none()
        | st.dictionaries(texts.filter(_no_zero), st.integers(-9, 9), max_size=3),
        "raw": st.none() | st.binary(max_size=9),
        "hits": st.integers(0, 2**64 - 1),
    },
)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(made=st.lists(values, min_size=1, max_size=4))
def test_whatever_objects_hold_comes_back_the_same(db: Store, made: list[dict[str, Any]]) -> None:
    objects = [Plain(**one) for one in made]

    ids = db.entities.put(*objects)

    assert db.entities.get(Plain, *ids) == objects


def test_a_page_of_a_selection_knows_its_total(db: Store) -> None:
    db.entities.put(*users())

    page = db.entities.select(
        User, User.name.in_("user 01", "user 02", "user 03"), order=User.name.desc(), limit=2
    )

    assert isinstance(page, Page)
    assert ([user.name for user in page], page.total, len(page)) == (["user 03", "user 02"], 3, 2)
    assert page[0].name == page.items[0].name == "user 03"


def test_a_statement_is_put_together_step_by_step(db: Store) -> None:
    db.entities.put(*[Plain(name="x", rank=at % 7) for at in range(20)])
    statement = select(Plain).where(Plain.name == "x").order_by(col(Plain.rank).desc())

    page = db.entities.select(statement.limit(4).offset(2))

    assert [plain.rank for plain in page] == [5, 5, 5, 4]
    assert page.total == 20
    assert db.entities.select(statement.limit(1).uncounted()).total == -1
    assert db.entities.select(statement.limit(-1), col(Plain.rank) >= 5).total == 5


def test_without_filters_everything_is_selected(db: Store) -> None:
    db.entities.put(*users(3))

    assert len(db.entities.select(User)) == 3
    assert len(db.entities.select(select(User))) == 3
    assert db.entities.count(User) == db.entities.count(User, User.all()) == 3
    assert db.entities.count(User, User.name == "user 01") == 1


def test_columns_that_are_not_loaded_are_not_lost(db: Store) -> None:
    [id] = db.entities.put(User(name="ann", email="a@b.c", score=5))

    [part] = db.entities.get(User, id, properties=[User.registered, "email"])
    assert not part.name
    assert part.score == 0
    part.email = "A@B.c"
    db.entities.put(part)

    [whole] = db.entities.get(User, id)
    assert (whole.name, whole.email, whole.score) == ("ann", "A@B.c", 5)
    assert [user.email for user in db.entities.select(select(User).only(User.email))] == ["A@B.c"]
    with pytest.raises(UnknownColumn, match="did you mean 'score'"):
        db.entities.get(User, id, properties=["scor"])


def test_updates_take_values_changes_and_an_expiry(db: Store, clock: Clock) -> None:
    ids = db.entities.put(*users(3))

    renamed = db.entities.update(User, User.name == "user 00", name="Bubba", score=User.score + 3)
    grouped = db.entities.update(
        User, User.id == ids[1], User.groups.add("g1", "new"), User.email.unset()
    )
    expiring = db.entities.update(User, User.id.in_(ids[2]), expire=timedelta(seconds=5))

    assert (renamed, grouped, expiring) == (1, 1, 1)
    bubba, second, third = db.entities.get(User, *ids)
    assert (bubba.name, bubba.score, third.id) == ("Bubba", 3, ids[2])
    assert (second.groups, second.email) == ({"g1", "all", "new"}, "")
    clock.advance(seconds=5)
    assert db.entities.get_one(User, ids[2]) is None


def test_a_change_under_another_column_s_keyword_is_refused(db: Store) -> None:
    with pytest.raises(BadChange, match="a change of the column score"):
        db.entities.update(User, User.name == "a", name=User.score + 1)
    with pytest.raises(UnknownColumn, match="did you mean 'score'"):
        db.entities.update(User, User.name == "a", scor=1)
    with pytest.raises(BadValue, match="does not fit a Int column"):
        db.entities.update(User, User.name == "a", score="x")


def test_objects_are_deleted_by_filters(db: Store) -> None:
    ids = db.entities.put(*users(3))

    assert db.entities.delete(User, User.id.in_(*ids[:2])) == 2
    assert db.entities.count(User) == 1
    with pytest.raises(NoIndex):
        db.entities.delete(User)


def test_objects_live_as_long_as_they_were_told(db: Store, clock: Clock) -> None:
    [hour] = db.entities.put(User(name="h", email="h"), ttl=timedelta(hours=1))
    [tenth] = db.entities.put(User(name="t", email="t"), ttl=0.1)

    clock.advance(seconds=0.15)
    assert [user.name for user in db.entities.get(User, hour, tenth)] == ["h"]
    clock.advance(seconds=3600)
    assert db.entities.get(User, hour, tenth) == []
    for senseless in ("x", float("inf"), float("nan")):
        with pytest.raises(BadValue, match="Invalid value for TTL"):
            db.entities.put(User(name="h", email="h"), ttl=senseless)  # type: ignore[arg-type]


def test_an_object_that_was_loaded_is_not_put_over_the_changes_of_others(db: Store) -> None:
    [id] = db.entities.put(Plain(name="x"))
    [mine] = db.entities.get(Plain, id)
    [theirs] = db.entities.get(Plain, id)
    mine.rank, theirs.rank = 1, 2

    db.entities.put(mine)
    mine.rank = 3
    db.entities.put(mine)

    with pytest.raises(VersionMismatch):
        db.entities.put(theirs)
    assert [plain.rank for plain in db.entities.get(Plain, id)] == [3]


def test_a_loaded_object_with_other_key_columns_becomes_another_entity(db: Store) -> None:
    [id] = db.entities.put(User(name="ann", email="a@b.c"))
    [user] = db.entities.get(User, id)

    user.email = "new@b.c"
    [other] = db.entities.put(user)

    assert (other, user.id) == ("new@b.c|", "new@b.c|")
    assert [one.email for one in db.entities.get(User, id, other)] == ["a@b.c", "new@b.c"]


def test_objects_of_several_tables_are_put_in_one_step(db: Store) -> None:
    user, plain = User(name="u", email="e"), Plain(name="p")

    ids = db.entities.put(user, plain)

    assert ids == [user.id, plain.id] == ["e|", plain.id]
    with pytest.raises(BadValue):
        db.entities.put(User(name="v", email="f"), Plain(name=5))  # type: ignore[arg-type]  # on purpose
    assert db.entities.count(User) == 1


def test_models_work_inside_a_transaction(db: Store) -> None:
    with db.transaction() as tx:
        [id] = tx.entities.put(Plain(name="x"))
        tx.entities.update(Plain, Plain.id == id, rank=col(Plain.rank) + 2)

    with db.view() as view:
        assert [plain.rank for plain in view.entities.get(Plain, id)] == [2]


def test_what_is_no_model_or_no_filter_is_refused(db: Store) -> None:
    with pytest.raises(BadModel, match="not an object of a model"):
        db.entities.put({"name": "x"})  # type: ignore[arg-type]  # on purpose
    with pytest.raises(BadQuery, match="is not a filter"):
        db.entities.select(User, "name")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(BadQuery, match="does not contain entities"):
        db.entities.put()
    with pytest.raises(BadQuery, match="Unpack a list of ids"):
        db.entities.get(User, ["a", "b"])  # type: ignore[arg-type]  # on purpose


def test_properties_without_a_column_are_left_out(db: Store) -> None:
    [id] = db.entities.put_raw("test.Plain", [{"name": "x", "table_name": 1}])

    [plain] = db.entities.get(Plain, id)

    assert plain == Plain(name="x", id=id, notes=plain.notes)
    assert plain.table_name() == "test.Plain"


def test_plain_dicts_work_without_any_model(db: Store) -> None:
    [id] = db.entities.put_raw("test.Plain", [{"name": "x"}])

    [entity] = db.entities.get_raw("test.Plain", [id])

    assert entity.properties == {"name": "x"}


def test_the_same_models_work_with_await(db: Store) -> None:
    class Later(AsyncModelCalls):
        """The store behind coroutines, as a network client has them."""

    for name in (
        "put_raw",
        "get_raw",
        "select_raw",
        "update_raw",
        "delete_raw",
        "count_raw",
        "execute",
    ):
        setattr(Later, name, _coroutine(getattr(db.entities, name)))

    async def story() -> None:
        later = Later()
        ids = await later.put(*users(3), ttl=60)
        assert [user.id for user in await later.get(User, *ids)] == ids
        assert await later.get(User) == []
        one = await later.get_one(User, ids[0])
        assert one is not None
        assert await later.get_one(User, "nobody") is None
        page = await later.select(select(User).where(User.name == "user 01"))
        assert [user.email for user in page] == ["user01@domain.com"]
        assert (await later.select(User, limit=2)).total == 3
        assert await later.update(User, User.name == "user 01", score=User.score + 1) == 1
        assert await later.count(User) == 3
        assert len(await later.put(one, Plain(name="p"))) == 2
        assert await later.delete(User, User.all()) == 3

    _run(story())


def _coroutine(method: Any) -> Any:
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call


def _run(coroutine: Any) -> None:
    with pytest.raises(StopIteration):
        coroutine.send(None)  # nothing in it waits
