"""The same call embedded, over RESP, over HTTP and through the clients gives the same answer and
the same error; the clients give them as the very same objects."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import hiredis
import msgspec
import pytest

import holdfast
from holdfast.errors import BadInput, HoldfastError
from holdfast.operations import OPERATIONS
from holdfast.server import payloads
from holdfast.store import Space
from tests.client.both_clients import connected
from tests.server.example_calls import Call
from tests.server.examples import EXAMPLES
from tests.server.running import DEADLINE, RawClient, Server
from tests.stores import Stores

pytestmark = pytest.mark.every_engine


class Refused(msgspec.Struct, frozen=True):
    """An error: its code, and all that is said about it."""

    code: str
    text: str


def embedded(space: Space, call: Call, *, is_json: bool) -> Any:
    """The call in this process; its result as the encoding would carry it."""
    operation = OPERATIONS[call.operation]
    try:
        arguments = payloads.convert_arguments(operation, call.arguments, is_json=is_json)
        result = operation.call(getattr(space, operation.layer), arguments)
    except HoldfastError as error:
        return Refused(error.code, str(error))
    except msgspec.ValidationError as error:
        return Refused(BadInput.code, str(error))
    return _decode(payloads.encoder(operation, is_json=is_json)(result), is_json)


def over_resp(client: RawClient, call: Call, *, is_json: bool) -> Any:
    encode = msgspec.json.encode if is_json else msgspec.msgpack.encode
    reply = client.ask(call.operation.upper(), encode(call.arguments))
    if isinstance(reply, hiredis.ReplyError):
        code, _, text = str(reply).partition(" ")
        return Refused(code.lower(), text)
    return _decode(reply, is_json)


def over_http(connection: http.client.HTTPConnection, space: str, call: Call) -> Any:
    path = f"/{space}/{call.operation.replace('.', '/')}"
    connection.request("POST", path, json.dumps(call.arguments))
    answer = json.loads(connection.getresponse().read())
    if "error" in answer:
        error = answer["error"]
        return Refused(error["code"], str(HoldfastError(error["message"], hint=error["hint"])))
    return answer["result"]


def _decode(data: bytes, is_json: bool) -> Any:
    return msgspec.json.decode(data) if is_json else msgspec.msgpack.decode(data)


def _without(value: Any, names: frozenset[str]) -> Any:
    """Returns an error with line breaks as RESP writes them, and without what depends on luck."""
    if isinstance(value, Refused):
        return Refused(value.code, " ".join(value.text.split("\n")))
    if isinstance(value, dict):
        return {name: _without(item, names) for name, item in value.items() if name not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


def test_every_operation_has_an_example() -> None:
    shown = {call.operation for calls in EXAMPLES.values() for call in calls}

    assert shown == set(OPERATIONS)


@pytest.fixture
def store(stores: Stores) -> Iterator[holdfast.Store]:
    with holdfast.open(stores.url(), durability="interval") as store:
        yield store


@pytest.mark.parametrize("layer", EXAMPLES)
def test_every_protocol_gives_the_same_answers(
    server: Server, store: holdfast.Store, space: str, layer: str
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=DEADLINE)
    with closing(connection), server.connect() as in_json, server.connect() as in_msgpack:
        in_json.ask("SPACE", f"{space}-json")
        in_msgpack.ask("SPACE", f"{space}-msgpack")
        for number, call in enumerate(EXAMPLES[layer]):
            answers = {
                "embedded": embedded(store.space("json"), call, is_json=True),
                "resp": over_resp(in_json, call, is_json=True),
                "http": over_http(connection, f"{space}-http", call),
            }
            packed = {
                "embedded": embedded(store.space("msgpack"), call, is_json=False),
                "resp": over_resp(in_msgpack, call, is_json=False),
            }

            for protocol, answer in answers.items():
                expected = _without(answers["embedded"], call.apart_from)
                assert _without(answer, call.apart_from) == expected, (number, call, protocol)
            for protocol, answer in packed.items():
                expected = _without(packed["embedded"], call.apart_from)
                assert _without(answer, call.apart_from) == expected, (number, call, protocol)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("define", {"specs": []}),
        ("incr", {"metric": 5}),
        ("incr", {"metric": "m", "value": "1"}),
        ("incr", {"metric": "m", "value": None}),
        ("incr", {"metric": "m", "value": 2**63}),
        ("incr", {"metric": "m", "entity": "ann"}),
        ("incr", {"metric": "m", "prefix": 7}),
        ("incr", {"metric": "m", "namespace": 7}),
        ("incr", {"metric": "m", "at": "now"}),
        ("rate", {"metric": "m", "latest": "60"}),
        ("rate", {"metric": "m", "latest": 60, "future": "guess"}),
        ("series", {"metric": "m", "start": 0, "end": 9, "value": 5}),
        ("top", {"metric": "m", "latest": 60, "n": 1.5}),
        ("peek", {"operations": [5], "conditions": {}}),
        ("peek", {"operations": "all", "conditions": {}}),
        ("peek", {"operations": [], "conditions": []}),
        ("peek", {"operations": [], "conditions": {}, "bucket_count": "30"}),
        ("throttle", {"key": "k", "max_burst": 1, "count": "1", "period": 1}),
        ("write", {"writes": [{"metric": "m", "op": ["incr"]}]}),
    ],
)
def test_a_metrics_argument_of_another_type_has_the_same_code_in_every_protocol(
    server: Server, store: holdfast.Store, space: str, call: str, arguments: dict[str, Any]
) -> None:
    store.metrics.define({"m": {}})
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=DEADLINE)
    with closing(connection), server.connect() as client:
        client.ask("SPACE", space)
        over_resp(client, Call("metrics.define", {"specs": {"m": {}}}), is_json=True)
        asked = Call(f"metrics.{call}", arguments)

        with pytest.raises(HoldfastError) as caught:
            getattr(store.metrics, call)(**arguments)

        assert over_resp(client, asked, is_json=True).code == caught.value.code
        assert over_resp(client, asked, is_json=False).code == caught.value.code
        assert over_http(connection, space, asked).code == caught.value.code


# --- the clients -------------------------------------------------------------------------------


def in_python(called_on: Any, call: Call) -> Any:
    """The call on a store or on a client: the object that it returns, or the error it raises."""
    operation = OPERATIONS[call.operation]
    try:
        arguments = payloads.convert_arguments(operation, call.arguments, is_json=True)
        return operation.call(getattr(called_on, operation.layer), arguments)
    except (HoldfastError, msgspec.ValidationError) as error:
        return error


def told(answer: Any, apart_from: frozenset[str]) -> Any:
    """All that there is to compare: types too, and without what depends on luck."""
    if isinstance(answer, HoldfastError):
        return type(answer), answer.code, answer.message, answer.hint, vars(answer)
    if isinstance(answer, Exception):
        return type(answer), str(answer)
    if isinstance(answer, msgspec.Struct):
        fields = {n: getattr(answer, n) for n in answer.__struct_fields__ if n not in apart_from}
        return type(answer), told(fields, apart_from)
    if isinstance(answer, dict):
        return dict, {n: told(v, apart_from) for n, v in answer.items() if n not in apart_from}
    if isinstance(answer, list | tuple):
        return type(answer), [told(item, apart_from) for item in answer]
    return type(answer), answer


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("layer", EXAMPLES)
def test_a_client_gives_the_very_objects_that_the_store_gives(
    server: Server, store: holdfast.Store, space: str, layer: str, kind: str
) -> None:
    with connected(kind, f"holdfast://127.0.0.1:{server.resp_port}/{space}") as client:
        for number, call in enumerate(EXAMPLES[layer]):
            expected = told(in_python(store, call), call.apart_from)

            answer = told(in_python(client, call), call.apart_from)

            assert answer == expected, (number, call)
