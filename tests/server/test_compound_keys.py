"""Nobody can stall the server with keys and elements whose hashes are all the same."""

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import exact_msgpack
from holdfast.limits import MAX_COMPOUND_KEYS, MAX_EQUAL_HASHES
from holdfast.server.compound_keys import compound_keys
from tests.server.running import RawClient, Server
from tests.server.test_decoding_limits import code_of, post, put

SAME_HASH = 2**61 - 1  # integers have equal hashes if they differ by this number

plain = st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
keys = plain | st.binary(max_size=9) | st.tuples(plain) | st.tuples(plain, st.tuples(plain))
values = st.recursive(
    plain | st.binary() | st.uuids() | st.decimals(allow_nan=False) | st.sets(st.uuids()),
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner),
)


def lists_as_keys(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(lists_as_keys, value))
    if not isinstance(value, dict):
        return 0
    return sum(isinstance(key, tuple) + lists_as_keys(value[key]) for key in value)


@given(values)
def test_keys_that_are_lists_are_counted_at_any_depth(value: Any) -> None:
    payload = exact_msgpack.encode(exact_msgpack.replaced(value))

    assert compound_keys(payload) == lists_as_keys(value)


@given(st.binary())
def test_what_is_no_msgpack_has_an_end_too(payload: bytes) -> None:
    assert compound_keys(payload) <= len(payload)


def test_keys_in_a_set_and_keys_that_are_extensions_are_counted() -> None:
    uuid = msgspec.msgpack.encode(msgspec.msgpack.Ext(3, bytes(16)))
    pair = b"\x81" + uuid + b"\x01"

    assert compound_keys(pair) == 1
    assert compound_keys(msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"\x91" + pair))) == 1


def many_keys(kind: type) -> bytes:
    numbers = range(MAX_COMPOUND_KEYS + 1)
    made = {kind([number, 10**17 + number]): 0 for number in numbers} if kind is tuple else {}
    return msgspec.msgpack.encode(put(made or {f"{number:020}": 0 for number in numbers}))


def test_many_lists_as_keys_are_refused_and_texts_are_not(
    client: RawClient, server: Server, space: str
) -> None:
    path, content_type = f"/{space}/jobs/put", "application/msgpack"
    assert code_of(client.ask("JOBS.PUT", many_keys(tuple))) == "REQUEST_TOO_LARGE"
    assert post(server, path, many_keys(tuple), content_type).status == 413
    step = {"operation": "jobs.put", "arguments": msgspec.msgpack.decode(many_keys(tuple))}
    batch = msgspec.msgpack.encode([step])
    assert post(server, f"/{space}/batch", batch, content_type).status == 413

    assert isinstance(client.ask("JOBS.PUT", many_keys(str)), bytes)
    assert post(server, path, many_keys(str), content_type).status == 200


@pytest.mark.parametrize("kind", [int, UUID])
def test_a_set_of_many_elements_with_the_same_hash_is_refused(
    client: RawClient, kind: type
) -> None:
    made = [10**20 + SAME_HASH * number for number in range(MAX_EQUAL_HASHES + 2)]
    elements = {UUID(int=each) if kind is UUID else each for each in made}
    assert client.ask("EXACT") == b"OK"

    def asked(data: object) -> object:
        return client.ask("JOBS.PUT", exact_msgpack.encode(exact_msgpack.replaced(put(data))))

    refused = asked(elements)
    assert code_of(refused) == "BAD_INPUT"
    assert "have the same hash" in str(refused)
    others = asked({UUID(int=number) for number in range(1_000)})
    assert code_of(others) == "BAD_ARGUMENT"  # it was decoded: only the data of a job is no set
