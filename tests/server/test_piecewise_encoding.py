"""Large results in threads: each record is encoded by itself, and the loop gets its turn."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from holdfast.entities.messages import Entity
from holdfast.entities.messages import Page as EntityPage
from holdfast.operations import OPERATIONS
from holdfast.server import payloads
from holdfast.server.piecewise_encoding import encode_around, in_pieces
from holdfast.tables.records import Page

_ITEMS: Final = [{"id": number, "text": "é" * number} for number in range(5)]
RESULTS: Final[dict[str, Any]] = {
    "a list": _ITEMS,
    "a list with gaps": [*_ITEMS, None],
    "a page": Page(items=_ITEMS, count=5, next="more"),
    "an answer": {"items": _ITEMS, "next": {"limit": 5}},
    "a list of one page": [Page(items=_ITEMS, count=5)],
}
WHOLE: Final[dict[str, Any]] = {
    "one record": _ITEMS[:1],
    "names": ["a", "b", "c"],
    "an empty page": Page(items=[], count=0),
    "a number": 3,
}


def _calls(encode: Callable[[Any], bytes], result: Any) -> tuple[bytes, list[bytes]]:
    made: list[bytes] = []

    def counted(value: Any) -> bytes:
        made.append(encode(value))
        return made[-1]

    return in_pieces(counted, encode)(result), made


@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode])
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_in_a_thread_each_record_is_encoded_by_itself(
    encode: Callable[[Any], bytes], result: Any
) -> None:
    encoded, made = _calls(encode, result)

    assert encoded == encode(result)
    assert made[:5] == [encode(item) for item in _ITEMS]
    assert max(map(len, made)) == len(encode(_ITEMS[-1]))


@pytest.mark.parametrize("result", WHOLE.values(), ids=WHOLE)
def test_what_has_no_records_is_encoded_in_one_call(result: Any) -> None:
    encoded, made = _calls(msgspec.json.encode, result)

    assert made == [encoded]


@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode])
@pytest.mark.parametrize("results", [[], _ITEMS[:1], _ITEMS], ids=len)
def test_results_that_are_encoded_already_get_their_surroundings(
    encode: Callable[[Any], bytes], results: list[Any]
) -> None:
    pieces = [encode(result) for result in results]

    encoded = encode_around(pieces, lambda marks: {"result": marks}, encode)

    assert encoded == encode({"result": results})


def test_on_an_event_loop_a_list_is_encoded_in_one_call() -> None:
    async def encode() -> tuple[bytes, list[bytes]]:
        return _calls(msgspec.json.encode, _ITEMS)

    encoded, made = asyncio.run(encode())

    assert made == [encoded]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("tables.get", Page(items=[{"n": 2**60}, {"n": -(2**60)}, {"n": 1}], count=3)),
        (
            "entities.select",
            EntityPage(entities=[Entity("a", {"b": b"\0"}), Entity("c", {"n": 2**60})], total=2),
        ),
        (
            "entities.execute",
            [["a", "b"], EntityPage(entities=[Entity("a", {"b": b"\0"})] * 2, total=2), None, 3],
        ),
        ("entities.get", [Entity("a", {"b": b"\0"}), None, Entity("c", {"n": 2**60})]),
    ],
)
@pytest.mark.parametrize(
    "options",
    [{"is_json": True}, {"is_json": True, "integers_as_text": True}, {"is_json": False}, None],
    ids=["json", "text", "msgpack", "exact"],
)
def test_an_answer_is_the_same_from_a_thread_and_from_the_loop(
    name: str, result: Any, options: Any
) -> None:
    operation = OPERATIONS[name]
    if options is None:
        encode = payloads.exact_encoder(operation)
    else:
        encode = payloads.encoder(operation, **options)

    async def on_loop() -> bytes:
        return encode(result)

    assert encode(result) == asyncio.run(on_loop())
