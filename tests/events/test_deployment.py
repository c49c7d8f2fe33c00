"""Schemas in force."""

import pytest

from holdfast.errors import InvalidEventSchema, UnknownSchema
from holdfast.events import deployment
from holdfast.events.handlers import DeployedSchema
from holdfast.events.schema import read_schema
from holdfast.store import Store
from tests.events.conftest import Send, values

ONE = {"e": [{"targets": ["['one']"], "add": "v"}]}
TWO = {"e": [{"targets": ["['two']"], "add": "v"}]}


def test_deploying_under_a_name_replaces_that_schema_and_touches_no_data(
    store: Store, send: Send
) -> None:
    store.events.deploy(ONE)
    send("e", v=1)

    store.events.deploy(TWO)
    send("e", v=2)

    assert (values(store, "one"), values(store, "two")) == (["1"], ["2"])
    assert store.events.schemas() == {"default": TWO}


def test_nothing_changes_when_a_schema_is_refused(store: Store, send: Send) -> None:
    store.events.deploy(ONE)

    with pytest.raises(InvalidEventSchema):
        store.events.deploy({"e": [{"targets": [], "add": "v"}]})
    send("e", v=1)

    assert values(store, "one") == ["1"]
    assert store.events.schemas() == {"default": ONE}


def test_a_withdrawn_schema_runs_no_more(store: Store, send: Send) -> None:
    store.events.deploy(ONE)
    store.events.deploy(TWO, name="second")

    store.events.withdraw("default")
    send("e", v=1)

    assert (values(store, "one"), values(store, "two")) == ([], ["1"])
    for unknown in ("default", 5):
        with pytest.raises(UnknownSchema):
            store.events.withdraw(unknown)  # type: ignore[arg-type]  # 5 on purpose


def test_spaces_have_schemas_of_their_own(store: Store) -> None:
    other = store.space("other")
    store.events.deploy(ONE)
    other.events.deploy(TWO)

    other.events.send({"name": "e", "attributes": {"v": 1}})

    assert [info.key for info in other.events.keys().keys] == ["two"]
    assert store.events.keys().keys == []


def test_an_event_in_the_transaction_of_a_deployment_sees_it(store: Store) -> None:
    with store.transaction() as tx:
        tx.events.deploy(ONE)
        tx.events.send({"name": "e", "attributes": {"v": 1}})

    assert values(store, "one") == ["1"]


@pytest.mark.parametrize("name", ["", "n" * 129])
def test_a_schema_has_a_name(store: Store, name: str) -> None:
    with pytest.raises(InvalidEventSchema):
        store.events.deploy(ONE, name=name)


def test_ingesting_parses_nothing_once_the_schema_is_compiled(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.events.deploy(ONE | {"only:here": [{"targets": ["['x']"], "add": "v"}]})
    send("e", v=1)

    def parse(*_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr("holdfast.events.deployment.read_schema", parse)
    send("e", v=2)
    send("e:more", v=3)

    assert values(store, "one") == ["3", "2", "1"]
    assert read_schema(ONE)


def test_any_number_of_prefixes_costs_an_event_the_same_look_ups(store: Store, send: Send) -> None:
    many = {f"p{number}": [{"targets": ["['x']"], "add": "v"}] for number in range(3_000)}
    store.events.deploy(many | ONE)

    reply = send("e:a:b", v=1)

    assert (reply.handlers, values(store, "one")) == (1, ["1"])


@pytest.mark.parametrize("dialect", ["mql", "flux"])
def test_another_schema_does_not_make_those_that_stay_be_parsed_again(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    store.events.deploy(ONE, "one", dialect)  # type: ignore[arg-type]  # one of two
    send("e", v=1)
    parsed: list[str] = []
    parse = deployment._parsed

    def noted(name: str, stored: bytes) -> DeployedSchema:
        parsed.append(name)
        return parse(name, stored)

    monkeypatch.setattr(deployment, "_parsed", noted)
    store.events.deploy(TWO, "two")
    send("e", v=2)

    assert "one" not in parsed
    assert values(store, "two") == ["2"]


def test_a_space_has_a_bounded_number_of_schemas(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "MAX_EVENT_SCHEMAS", 2)
    store.events.deploy(ONE, "one")
    store.events.deploy(TWO, "two")

    with pytest.raises(InvalidEventSchema, match="there would be 3 schemas, at most 2 fit"):
        store.events.deploy(ONE, "three")
    store.events.deploy(ONE, "two")

    assert list(store.events.schemas()) == ["one", "two"]
