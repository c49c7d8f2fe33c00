"""A mistake of a first day is answered with what was meant."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.errors import (
    BadArgument,
    BadInput,
    HoldfastError,
    InvalidTable,
    TableNotFound,
    Unreachable,
)
from holdfast.operations import OPERATIONS
from holdfast.server.payloads import convert_arguments
from holdfast.store import Store
from tests.client.both_clients import connected
from tests.client.conftest import client, mode, server, url
from tests.server.running import Server

__all__ = ["client", "mode", "server", "url"]

TABLE = {
    "table": "pages",
    "attributes": {"title": "string"},
    "index": [{"attribute": "title", "type": "hash"}],
}
SCHEMA = """\
schema: shop
tables:
  Users:
    primary: {type: random}
    columns: {name: {type: Text}}
"""


def test_a_client_on_the_http_port_is_told_of_the_other_one(server: Server, mode: str) -> None:
    address = f"holdfast://127.0.0.1:{server.http_port}?retries=0"

    with (
        pytest.raises(Unreachable, match=r"speaks HTTP: .* the RESP side, whose port is another"),
        connected(mode, address),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://localhost:9966", "uses the RESP side"),
        ("https://localhost:9966/space", "uses the RESP side"),
        ("redis://localhost:9977/0", "Write holdfast:// for redis://"),
        ("rediss://localhost:9977", "Write holdfasts:// for rediss://"),
        ("postgresql://localhost/shop", r"`holdfast\.open\(url\)`"),
        ("valkey://localhost", r"`holdfast\.open\(url\)`"),
        ("data", r"`holdfast\.open\(path\)`"),
    ],
)
def test_the_address_of_something_else_says_what_it_is_for(address: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        holdfast.connect(address)
    with pytest.raises(BadInput, match=said):
        holdfast.aio.connect(address)


def test_a_store_is_not_opened_at_a_server() -> None:
    with pytest.raises(BadInput, match=r"`holdfast\.connect\(url\)`"):
        holdfast.open("holdfast://localhost:9977")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/health", "/livez says"),
        ("/healthz", "/readyz"),
        ("/ready", "/livez says"),
        ("/livz", "Did you mean /livez?"),
        ("/metric", "Did you mean /metrics?"),
        ("/docs", "/openapi.json"),
        ("/jobs/queues", "did you mean /default/jobs/queues?"),
    ],
)
def test_a_path_where_nothing_is_names_the_one_that_was_meant(
    server: Server, path: str, said: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.http_url}{path}")

    error = json.loads(refused.value.read())["error"]
    assert refused.value.code == 404
    assert said in error["hint"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/default/jobs/put", b"queue=emails", "jobs.put takes queue, klass, data"),
        ("/default/jobs/put", b'{"queue": ', "Send one object"),
        ("/default/batch", b'{"operations": []}', 'array of {"operation"'),
        ("/default/batch", b'[{"operation": "jobs.put", "args": {}}]', 'array of {"operation"'),
        ("/default/events/send", b'{"event": [{"name": "a"}]}', "send_many"),
        (
            "/default/metrics/require",
            b'{"operations": [{"name": 1}], "conditions": {}}',
            "`entity`",
        ),
    ],
)
def test_an_invalid_body_is_answered_with_an_example_of_a_valid_one(
    server: Server, path: str, body: bytes, said: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.http_url}{path}", body)

    assert refused.value.code == 400
    assert said in json.loads(refused.value.read())["error"]["hint"]


def test_a_call_by_get_says_how_arguments_are_sent(server: Server) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.http_url}/default/jobs/queues")

    assert refused.value.code == 405
    assert "by POST" in json.loads(refused.value.read())["error"]["hint"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("transact", "with client.batch\\(\\) as batch"),
        ("transaction", "with client.batch\\(\\) as batch"),
        ("view", "with client.batch\\(\\) as batch"),
        ("spaces", "client.admin.spaces"),
        ("job", "did you mean 'jobs'"),
        ("entites", "did you mean 'entities'"),
        ("nonsense", "no attribute 'nonsense'$"),
        ("_private", "no attribute '_private'$"),
    ],
)
def test_an_attribute_that_a_client_lacks_names_what_it_has(
    client: Any, name: str, said: str
) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(client, name)
    with pytest.raises(AttributeError, match=said):
        getattr(client.space("other"), name)
    assert not hasattr(client, name)


@pytest.mark.parametrize(
    ("name", "said"), [("tabels", "'tables'"), ("batch", "store.transact"), ("job", "'jobs'")]
)
def test_an_attribute_that_a_store_lacks_names_what_it_has(
    store: Store, name: str, said: str
) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(store, name)
    with pytest.raises(AttributeError, match=said):
        getattr(store.space("other"), name)


def test_an_attribute_that_a_transaction_lacks_names_what_it_has(store: Store) -> None:
    with store.transaction() as tx:
        with pytest.raises(AttributeError, match="did you mean 'jobs'"):
            tx.job  # type: ignore[attr-defined]  # noqa: B018  # that is the mistake
        with pytest.raises(AttributeError, match="is a transaction already"):
            tx.transact  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.every_engine
def test_a_misspelt_table_is_answered_with_the_nearest_one(store: Store) -> None:
    store.tables.create(TABLE)
    store.entities.deploy(SCHEMA)

    with pytest.raises(TableNotFound, match="did you mean 'pages'"):
        store.tables.get("pagse")
    with pytest.raises(TableNotFound) as unlike:
        store.tables.get("invoices")
    for name in ("shop.Usres", "shp.Users", "Users", "shop.users"):
        with pytest.raises(InvalidTable, match=r"did you mean 'shop\.Users'"):
            store.entities.get_raw(name, ["a"])

    assert "did you mean" not in str(unlike.value)


def test_a_misspelt_table_over_the_network_too(client: Any) -> None:
    client.tables.create(TABLE)
    client.entities.deploy(SCHEMA)

    with pytest.raises(TableNotFound, match="did you mean 'pages'"):
        client.tables.get("pagse")
    with pytest.raises(InvalidTable, match=r"did you mean 'shop\.Users'"):
        client.entities.get_raw("shop.Usres", ["a"])


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("hearbeat", "heartbeat"),
        ("emails-hearbeat", "emails-heartbeat"),
        ("my-queue-max-concurency", "my-queue-max-concurrency"),
        ("grace_period", "grace-period"),
        ("job-history", "jobs-history"),
    ],
)
def test_a_misspelt_option_of_a_queue_is_answered_with_the_nearest_one(
    store: Store, option: str, meant: str
) -> None:
    with pytest.raises(BadArgument, match=f"did you mean '{meant}'"):
        store.jobs.config_set(option, 5)


@pytest.mark.parametrize("option", ["application", "emails-heartbeat", "emails-rate-per-key"])
def test_options_that_mean_something_are_set(store: Store, option: str) -> None:
    store.jobs.config_set(option, "5/60" if "rate" in option else 5)

    assert store.jobs.config_get(option) in (5, "5", "5/60")


@pytest.mark.parametrize("option", ["foo", "my-own", "colour"])
def test_an_option_without_a_meaning_is_refused(store: Store, option: str) -> None:
    with pytest.raises(BadArgument, match=option):
        store.jobs.config_set(option, 5)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"queu": "emails"}, "jobs.put has no argument `queu`", "Did you mean `queue`?"),
        ({}, "jobs.put needs the argument `queue`", "jobs.put takes queue, klass"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name_and_that_of_the_operation(
    arguments: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(BadInput) as caught:
        convert_arguments(OPERATIONS["jobs.put"], arguments, is_json=True)

    assert (caught.value.message, hint in caught.value.hint) == (message, True)


def test_a_misspelt_option_of_a_job_is_refused_in_a_list_too(client: Any) -> None:
    with pytest.raises(BadInput) as caught:
        client.jobs.put_many([{"queue": "q", "dely": 5}])

    assert caught.value.message == "`jobs[0]` has no field `dely`"
    assert caught.value.hint == "Did you mean `delay`?"
    assert client.jobs.length("q") == 0


@pytest.mark.parametrize(
    ("operation", "arguments", "message"),
    [
        ("jobs.put_many", {"jobs": [{"queue": 3}]}, "`jobs[0].queue` must be text"),
        ("jobs.pause", {"queues": "q"}, "`queues` must be a list, not text"),
        ("jobs.put", {"queue": "q", "delay": "x"}, "`delay` must be a number, not text"),
        ("jobs.put", {"queue": "q", "id": 1}, "`id` must be text or null, not a whole number"),
        ("jobs.put_many", {"jobs": [{}]}, "`jobs[0]` needs the field `queue`"),
        ("jobs.get", ["a"], "jobs.get must be an object, not a list"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused_in_plain_words(
    operation: str, arguments: Any, message: str
) -> None:
    with pytest.raises(HoldfastError) as caught:
        convert_arguments(OPERATIONS[operation], arguments, is_json=True)

    assert caught.value.message.startswith(message)


def test_a_misspelt_operation_of_a_client_is_an_attribute_error(client: Any) -> None:
    call: Callable[[], Any] = lambda: client.jobs.putt  # noqa: E731

    with pytest.raises(AttributeError):
        call()


def test_the_async_client_names_its_own_way(url: str) -> None:
    async def program() -> None:
        async with holdfast.aio.connect(url) as client:
            client.transact  # type: ignore[attr-defined]  # noqa: B018

    with pytest.raises(AttributeError, match=r"async with client\.batch"):
        asyncio.run(program())
