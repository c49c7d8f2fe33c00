"""The public client's own stories, told with `holdfast.meduza`: over a socket and in process."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import meduza
from holdfast.meduza.columns import Column, Int, Map, Set, Text, Timestamp
from holdfast.meduza.queries import Change, Filter, Ordering, Paging, PingQuery
from holdfast.store import Store
from holdfast.testing import Clock
from tests.compat.meduza.resp_server import resp_server

SCHEMA = """
schema: pytest
tables:
    Users:
        engines:
            - redis
        primary:
            type: compound
            columns: [email]
        columns:
            name: {type: Text}
            email: {type: Text}
            time: {type: Timestamp}
            groups: {type: Set}
            wat: {type: Text, clientName: fancySuperLongNameWatWat}
            score: {type: Int}
            mapr: {type: Map, options: {subtype: Text}}
        indexes:
            -   type: compound
                columns: [name,email]
"""


class User(meduza.Model):
    _table = "Users"
    _schema = "pytest"

    name = Text("name", required=True)
    email = Text("email", default="")
    registrationTime = Timestamp("registrationTime", default=Timestamp.now)
    groups = Set("groups", type=Text())
    fancySuperLongNameWatWat = Text("wat")
    mapr = Map("mapr", type=Text())
    score = Int("score", default=0)


class Other(meduza.Model):
    _table, _schema = "Other", "pytest"


@pytest.fixture(params=["socket", "store"])
def client(request: pytest.FixtureRequest, store: Store) -> Iterator[Any]:
    store.entities.deploy(SCHEMA)
    if request.param == "store":
        connector = meduza.storeConnector(store)
        meduza.setup(connector, connector)
        yield connector
    else:
        with resp_server(store) as port:
            connector = meduza.customConnector("127.0.0.1", port, timeout=5)
            meduza.setup(connector, connector)
            yield connector
    meduza.setup()


@pytest.fixture
def users(client: Any) -> list[User]:
    made = [
        User(
            name=f"user {at:02}",
            email=f"user{at:02}@domain.com",
            groups={f"g{x}" for x in range(at, at + 3)},
            fancySuperLongNameWatWat="watwat",
            mapr={"foo": "bar"},
        )
        for at in range(20)
    ]
    assert len(meduza.put(*made)) == 20
    return made


def test_putting_sets_the_ids(users: list[User]) -> None:
    assert [user.id for user in users[:2]] == ["user00@domain.com|", "user01@domain.com|"]


def test_objects_are_found_by_their_ids(users: list[User]) -> None:
    found = meduza.get(User, *[user.id for user in users])

    assert [one.__dict__ for one in found] == [user.__dict__ for user in users]
    assert meduza.get(User) == []
    assert meduza.get(User, "nobody", withTotal=True) == ([], 0)


def test_objects_expire(users: list[User], clock: Clock) -> None:
    [id] = meduza.putExpiring(0.1, User(name="expi mcxpire", email="Expiry@domain.com"))
    assert [user.id for user in meduza.get(User, id)] == ["expiry@domain.com|"]

    clock.advance(seconds=0.15)
    assert meduza.get(User, id) == []

    meduza.update(User, [User.id.any(*[user.id for user in users])], _=Change.expire(0.1))
    clock.advance(seconds=0.15)
    assert meduza.select(User, User.all(), limit=len(users)) == []


def test_properties_that_are_not_loaded_read_as_zeros(users: list[User]) -> None:
    wanted = meduza.get(User, users[0].id, properties=("name",))
    chosen = meduza.select(
        User,
        User.name.equals(users[0].name) & User.email.equals(users[0].email),
        properties=("name",),
    )

    for [user] in (wanted, chosen):
        assert (user.id, user.name) == (users[0].id, users[0].name)
        assert (user.email, user.groups, user.fancySuperLongNameWatWat) == ("", None, "")
    [named] = meduza.get(User, users[0].id, properties=["fancySuperLongNameWatWat"])
    assert named.fancySuperLongNameWatWat == "watwat"


def test_objects_are_selected_in_every_spelling(users: list[User]) -> None:
    first = users[0]
    name, email = User.name == first.name, User.email == first.email
    for filters in ([name & email], [(name, email)], [[name, email]], [name, email], [name]):
        [found] = meduza.select(User, *filters)
        assert found.groups == first.groups
    assert meduza.select(User, name & (User.email == "not user 1's email")) == []

    for spelled in (User.name.any("user 01", "user 02"), User.name.IN("user 01", "user 02")):
        assert len(meduza.select(User, spelled)) == 2
    assert len(meduza.select(User, User.name.between("user 03", "user 05"))) == 3
    assert len(meduza.select(User, User.name > "user 17")) == 2
    assert len(meduza.select(User, User.name >= "user 17")) == 3
    assert len(meduza.select(User, User.name < "user 02")) == 2
    assert len(meduza.select(User, User.name <= "user 02")) == 3


def test_filters_have_the_keyword_of_the_public_client(users: list[User]) -> None:
    name, email = User.name == users[0].name, User.email == users[0].email

    for keyword in (name, [name, email], name & email):
        assert len(meduza.select(User, filters=keyword)) == meduza.count(User, filters=keyword) == 1
    assert meduza.count(User, None) == meduza.count(User, filters=None) == 20
    assert meduza.update(User, filters=name & email, score=7) == 1
    assert meduza.delete(User, filters=[name]) == 1


def test_selections_are_ordered_and_paged(users: list[User]) -> None:
    every = meduza.select(User, User.all(), order=Ordering.asc("id"), limit=21)
    assert [user.email for user in every] == [user.email for user in users]

    backwards, total = meduza.select(
        User, User.all(), order=Ordering.desc(User.id), paging=Paging(1, 2), limit=9, withTotal=True
    )
    assert ([user.name for user in backwards], total) == (["user 18", "user 17"], 20)


def test_objects_are_counted(users: list[User]) -> None:
    assert meduza.count(User) == meduza.count(User, User.all()) == 20
    assert meduza.count(User, User.name == "user 03", User.email == "user03@domain.com") == 1
    assert meduza.count(User, [User.name == "nobody"]) == 0


def test_objects_are_deleted(users: list[User]) -> None:
    assert meduza.delete(User, User.all()) == 20
    assert meduza.get(User, *[user.id for user in users]) == []


def test_updates_set_increment_and_delete_properties(users: list[User]) -> None:
    user = users[0]
    changed = meduza.update(
        User,
        User.name.equals(user.name) & User.email.equals(user.email),
        Change.delProperty("email"),
        name="baba",
        score=User.score + 3,
    )

    assert changed == 1
    assert meduza.select(User, (User.name == "baba") & (User.email == user.email)) == []
    [found] = meduza.select(User, (User.name == "baba") & (User.email == ""))
    assert (found.id, found.score) == (user.id, user.score + 3)
    assert meduza.select(User, (User.name == user.name) & (User.email == user.email)) == []


def test_updates_change_sets_and_maps(users: list[User]) -> None:
    own = User.id == users[0].id
    meduza.update(
        User,
        own,
        Change.addToSet("groups", "new"),
        Change.removeFromSet("groups", "g0"),
        Change.putInMap("mapr", a="b"),
        Change.removeFromMap("mapr", "foo"),
        score=User.score - 2,
    )
    [found] = meduza.get(User, users[0].id)
    assert (found.groups, found.mapr, found.score) == ({"g1", "g2", "new"}, {"a": "b"}, -2)

    meduza.update(
        User,
        own,
        Change.addToSet("groups", {"x", "y"}),
        Change.removeFromSet("groups", ["g1", "g2"]),
        Change.putInMap("mapr", {"a key": "c"}, d="e"),
        Change.removeFromMap("mapr", ["a"]),
    )
    [found] = meduza.get(User, users[0].id)
    assert (found.groups, found.mapr) == ({"new", "x", "y"}, {"a key": "c", "d": "e"})

    meduza.update(User, own, groups={"only"})
    assert meduza.get(User, users[0].id)[0].groups == {"only"}
    assert meduza.update(User, own, _=Change.delete()) == 1
    assert meduza.get(User, users[0].id) == []


def test_a_change_must_be_for_the_column_of_its_keyword(users: list[User]) -> None:
    chosen = User.name == "user 00"
    with pytest.raises(AssertionError):
        meduza.update(User, chosen, name=User.score + 3)
    with pytest.raises(AttributeError):
        meduza.update(User, chosen, nmae="x")
    with pytest.raises(meduza.MeduzaError):
        meduza.update(User, chosen, _="x")

    # Incrementing a text is no error: the entity counts, its text stays.
    wat = User.fancySuperLongNameWatWat
    assert meduza.update(User, chosen, fancySuperLongNameWatWat=wat + 3) == 1


def test_a_server_s_error_is_raised(users: list[User]) -> None:
    with pytest.raises(meduza.RequestError, match="No index matches the filter") as caught:
        meduza.select(User, User.score == 3)

    assert caught.value.reason == "no_index"
    assert isinstance(caught.value, meduza.MeduzaError)


def test_a_second_filter_for_a_property_is_not_lost(users: list[User]) -> None:
    with pytest.raises(meduza.MeduzaError, match="more than one filter for name"):
        meduza.select(User, User.name > "user 01", User.name < "user 05")


def test_only_objects_of_one_model_are_put_together(client: Any) -> None:
    with pytest.raises(meduza.MeduzaError, match="same class"):
        meduza.put(User(name="x"), Other())
    with pytest.raises(meduza.ModelError):
        meduza.put({"name": "x"})  # type: ignore[arg-type]  # on purpose
    with pytest.raises(meduza.MeduzaError, match="does not contain entities"):
        meduza.put()
    with pytest.raises(meduza.MeduzaError, match="Invalid id type"):
        meduza.get(User, 5)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(meduza.MeduzaError, match="is not a filter"):
        meduza.select(User, "name")
    with pytest.raises(meduza.MeduzaError, match="'name' is not of type Ordering"):
        meduza.select(User, User.all(), order="name")
    with pytest.raises(meduza.MeduzaError, match="a number of seconds"):
        meduza.putExpiring("1", User(name="x"))  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, object(), {1: "x"}, {"a\0": 1}, "\ud800"])
def test_what_no_message_can_hold_is_refused_and_nothing_is_put(client: Any, value: Any) -> None:
    class Anything(meduza.Model):
        _table, _schema = "Users", "pytest"
        email = Text("email")
        any = Column("any")

    with pytest.raises(meduza.ColumnValueError, match="no message can hold"):
        meduza.put(Anything(email="a", any=value))
    with pytest.raises(meduza.ColumnValueError, match="no message can hold"):
        meduza.update(Anything, Anything.all(), any=value)
    assert meduza.count(User) == 0


def test_a_client_pings_and_pipelines(client: Any, users: list[User]) -> None:
    with client() as connection:
        assert connection.do(PingQuery()).error is None
        assert meduza.ping(connection)
        connection.send(PingQuery())
        connection.send(meduza.GetQuery("pytest.Users").filter("name", "=", "user 01").page(0, 5))
        assert connection.receive().error is None
        reply = connection.receive()

    assert (reply.total, reply.loadOne(User).name) == (1, "user 01")


def test_queries_are_built_step_by_step(client: Any, users: list[User]) -> None:
    with client() as connection:
        entity = meduza.Entity(None, email="q@q", name="q").expire(60)
        put = connection.do(meduza.PutQuery("pytest.Users").add(entity))
        update = meduza.UpdateQuery("pytest.Users").filter("id", "IN", *put.ids)
        updated = connection.do(update.set("name", "r").expire(9).delProperties("score"))
        found = connection.do(meduza.GetQuery("pytest.Users", filters=[Filter("name", "=", "r")]))
        everything = connection.do(meduza.GetQuery("pytest.Users").all().limit(1))
        deleted = connection.do(meduza.DelQuery("pytest.Users").filter("id", "=", "q@q|"))
        nobody = connection.do(meduza.GetQuery("pytest.Users").filter("id", "=", "nobody"))

    assert (put.ids, updated.num, found.total, deleted.num) == (["q@q|"], 1, 1, 1)
    assert (everything.total, nobody.loadOne(User)) == (21, None)
    assert isinstance(found.time, int)
    with pytest.raises(ValueError, match="Invalid offset/limit"):
        meduza.GetQuery("pytest.Users").page(-1, 5)


def test_properties_without_a_column_are_left_out_with_a_warning(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    entity = meduza.Entity("1", name="x", odd=5)

    with caplog.at_level(logging.WARNING):
        assert User.decode(entity).__dict__ == {"id": "1", "name": "x"}
        assert len(caplog.records) == 1
        User.decode(entity, strict=False)
        assert len(caplog.records) == 1


def test_timestamps_come_back_as_they_were_put(client: Any) -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)

    [id] = meduza.put(User(name="x", email="x", registrationTime=moment))

    assert meduza.get(User, id)[0].registrationTime == moment


def test_a_moment_without_a_time_zone_is_one_in_utc(client: Any) -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 678000)

    [id] = meduza.put(User(name="x", email="x", registrationTime=moment, score=2**63))
    meduza.update(User, User.id == id, registrationTime=moment)

    assert meduza.get(User, id)[0].registrationTime == moment.replace(tzinfo=UTC)
