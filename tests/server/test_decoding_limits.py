"""A request of too many values is refused before it is decoded, whichever way it comes."""

import http.client
import json
import socket
from datetime import UTC
from typing import Any

import hiredis
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.entities import bson_codec
from holdfast.errors import RequestTooLarge
from holdfast.limits import (
    MAX_BATCH_VALUES,
    MAX_REQUEST_DECODED_BYTES,
    MAX_REQUEST_ESCAPES,
    MAX_REQUEST_TEXT_BYTES,
    MAX_REQUEST_VALUES,
)
from holdfast.server import decoding_limits
from tests.repetitions import repeated
from tests.server.running import RawClient, Server, command
from tests.server.serving import Reply

plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(alphabet='a,[{"\\\n', max_size=80)
)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='b":\\,', max_size=9), inner),
)

bson_values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(alphabet="a\n")
    | st.binary()
    | st.integers(-(2**63), 2**64 - 1)
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="ab"), inner),
)


def separators(value: Any) -> int:
    """How many commas and opening brackets JSON has for it."""
    if not isinstance(value, list | dict):
        return 0
    members = value if isinstance(value, list) else value.values()
    return 1 + max(0, len(value) - 1) + sum(map(separators, members))


def parts(value: Any) -> int:
    """How many values it is in msgpack; a key is one too."""
    if isinstance(value, list):
        return 1 + sum(map(parts, value))
    return 1 + (sum(1 + parts(each) for each in value.values()) if isinstance(value, dict) else 0)


def elements(value: Any) -> int:
    """How many elements of documents it is in BSON."""
    if not isinstance(value, list | dict):
        return 1
    return 1 + sum(map(elements, value.values() if isinstance(value, dict) else value))


@given(values, st.integers(1, 40))
def test_what_is_in_a_text_is_no_value_wherever_a_piece_ends(value: Any, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding_limits, "_PIECE_BYTES", size)
        patch.setattr(decoding_limits, "MAX_REQUEST_VALUES", -1)  # so that texts are left out

        counted = list(decoding_limits.json_values(msgspec.json.encode(value)))

    assert counted[-1].values == separators(value)


@given(values)
def test_values_of_msgpack_are_counted(value: Any) -> None:
    counted = list(decoding_limits.msgpack_values(msgspec.msgpack.encode(value)))

    assert counted[-1].values == parts(value)


@settings(max_examples=repeated(25, full=100))
@given(st.dictionaries(st.text(alphabet="ab"), bson_values))
def test_values_of_bson_are_counted(document: dict[str, Any]) -> None:
    members = sum(map(elements, document.values()))

    counted = list(decoding_limits.bson_values(bson_codec.encode(document)))

    assert counted[-1].values == members


@given(st.binary())
def test_what_is_neither_msgpack_nor_bson_has_an_end_too(payload: bytes) -> None:
    assert len(list(decoding_limits.msgpack_values(payload))) >= 1
    assert len(list(decoding_limits.bson_values(payload))) >= 1


def code_of(reply: object) -> str:
    assert isinstance(reply, hiredis.ReplyError), reply
    return str(reply).split()[0]


def put(data: object) -> dict[str, Any]:
    return {"queue": "q", "id": "many", "data": data}


MANY = [0] * (MAX_REQUEST_VALUES + 1)
FEW_IN_A_LONG_TEXT = ",[{" * MAX_REQUEST_VALUES
ENCODERS = [msgspec.json.encode, msgspec.msgpack.encode]


@pytest.mark.parametrize("encode", ENCODERS, ids=["json", "msgpack"])
def test_redis_clients_are_told_so_and_go_on(client: RawClient, encode: Any) -> None:
    client.socket.sendall(
        command("JOBS.PUT", encode(put(MANY)))
        + command("JOBS.PUT", encode(put(FEW_IN_A_LONG_TEXT)))
        + command("JOBS.GET", '{"id":"many"}')
        + command("PING")
    )

    refused = client.receive()
    assert code_of(refused) == "REQUEST_TOO_LARGE"
    assert "holds more than 250,000 values" in str(refused)
    assert encode("many") == client.receive()
    assert json.loads(client.receive())["data"] == FEW_IN_A_LONG_TEXT
    assert client.receive() == b"PONG"


def test_a_batch_with_such_a_command_does_nothing(client: RawClient) -> None:
    client.ask("MULTI")

    refused = client.ask("JOBS.PUT", msgspec.json.encode(put(MANY)))

    assert code_of(refused) == "REQUEST_TOO_LARGE"
    assert code_of(client.ask("EXEC")) == "EXECABORT"


def test_a_large_command_is_part_of_a_batch_in_its_place(client: RawClient) -> None:
    large = FEW_IN_A_LONG_TEXT[:200_000]
    client.ask("MULTI")
    queued = [
        client.ask("JOBS.PUT", '{"queue":"q","id":"before"}'),
        client.ask("JOBS.PUT", msgspec.json.encode(put(large))),
        client.ask("JOBS.GET", '{"id":"many"}'),
    ]

    before, put_, got = client.ask("EXEC")

    assert queued == [b"QUEUED"] * 3
    assert (before, put_) == (b'"before"', b'"many"')
    assert json.loads(got)["data"] == large


def test_a_large_command_is_done_though_its_client_sends_no_more(client: RawClient) -> None:
    client.socket.sendall(command("JOBS.PUT", msgspec.json.encode(put(FEW_IN_A_LONG_TEXT))))
    client.socket.shutdown(socket.SHUT_WR)

    assert client.receive() == b'"many"'


def test_a_message_of_meduza_is_counted(client: RawClient) -> None:
    kind, body = client.ask("PUT", bson_codec.encode({"table": "T", "entities": MANY}))

    assert kind == b"RPUT"
    assert "holds more than 250,000 values" in str(bson_codec.decode(body))


def test_escapes_are_counted_in_texts_that_are_very_long(client: RawClient, server: Server) -> None:
    text = msgspec.json.encode("\n" * (MAX_REQUEST_ESCAPES + 1))
    body = b'{"queue":"q","data":' + text + b"}"

    refused = client.ask("JOBS.PUT", body)

    assert code_of(refused) == "REQUEST_TOO_LARGE"
    assert "msgpack, which needs none" in str(refused)
    assert post(server, "/default/jobs/put", body, "application/json").status == 413


TOO_LONG = "x" * (MAX_REQUEST_TEXT_BYTES + 1)


@pytest.mark.parametrize("encode", ENCODERS, ids=["json", "msgpack"])
def test_more_text_than_is_decoded_in_a_moment_is_refused(
    client: RawClient, server: Server, encode: Any
) -> None:
    body = encode(put(TOO_LONG))
    kind = "application/json" if encode is msgspec.json.encode else "application/msgpack"

    refused = client.ask("JOBS.PUT", body)

    assert code_of(refused) == "REQUEST_TOO_LARGE"
    assert f"{MAX_REQUEST_TEXT_BYTES:,} bytes of JSON or text" in str(refused)
    assert post(server, "/default/jobs/put", body, kind).status == 413


def test_a_word_or_a_message_of_meduza_with_too_long_a_text_is_refused(client: RawClient) -> None:
    refused = client.ask("JOBS.PUT", "q", "app.Send", TOO_LONG)
    _, body = client.ask("PUT", bson_codec.encode({"table": "T", "entities": [TOO_LONG]}))

    assert code_of(refused) == "REQUEST_TOO_LARGE"
    assert "bytes of JSON or text" in str(bson_codec.decode(body))


EMOJI = "\N{GRINNING FACE}"
MOST_WIDE = MAX_REQUEST_DECODED_BYTES // 4  # letters


def forms_of(text: str) -> dict[str, tuple[bytes, decoding_limits.Form]]:
    """A request with this text, in each form that it may have."""
    body = put(text)
    return {
        "json": (msgspec.json.encode(body), "json"),
        "escaped": (json.dumps(body).encode(), "json"),
        "msgpack": (msgspec.msgpack.encode(body), "msgpack"),
        "bson": (bson_codec.encode(body), "bson"),
    }


def refused_forms(text: str) -> set[str]:
    found = set()
    for name, (body, form) in forms_of(text).items():
        try:
            decoding_limits.refuse_long_decoding(body, form)
        except RequestTooLarge as error:
            found.add(name if f"have more than {MOST_WIDE:,} letters" in str(error) else str(error))
    return found


def test_a_text_that_one_letter_makes_wide_has_a_smaller_bound() -> None:
    letters = "x" * MOST_WIDE

    assert refused_forms(letters + EMOJI) == {"json", "escaped", "msgpack", "bson"}
    assert refused_forms(letters[: -len(EMOJI) - 100] + EMOJI) == set()
    assert refused_forms(letters + "\u00e9\u4e2d") == set()
    with pytest.raises(RequestTooLarge):
        decoding_limits.refuse_long_text((letters + EMOJI).encode())


def test_letters_are_counted_and_not_their_bytes() -> None:
    forms = forms_of(EMOJI * 4_000_000)

    for name in ("json", "msgpack", "bson"):
        decoding_limits.refuse_long_decoding(*forms[name])
    assert refused_forms(("\u4e2d" * 1_000 + EMOJI) * 2_900) == set()


def test_many_short_texts_with_such_letters_are_no_long_one() -> None:
    texts = ["x" * 400] * (MOST_WIDE // 400) + [f"x{EMOJI}"] * 1_000

    for body in (msgspec.json.encode(texts), json.dumps(texts).encode()):
        decoding_limits.refuse_long_decoding(body, "json")
    decoding_limits.refuse_long_decoding(msgspec.msgpack.encode(texts), "msgpack")


@pytest.mark.parametrize("shift", range(12))
def test_an_escape_is_found_wherever_a_piece_ends(shift: int) -> None:
    text = b"x" * (MOST_WIDE - 20 + shift)

    with pytest.raises(RequestTooLarge):
        decoding_limits.refuse_long_decoding(b'"%b\\ud83d\\ude00%b"' % (text, b"x" * 40), "json")
    decoding_limits.refuse_long_decoding(b'"%b\\\\\\\\ud83d%b"' % (text, b"x" * 40), "json")


def test_bytes_are_no_text() -> None:
    body = put(b"x" * (MAX_REQUEST_TEXT_BYTES + 1))

    decoding_limits.refuse_long_decoding(msgspec.msgpack.encode(body), "msgpack")
    decoding_limits.refuse_long_decoding(bson_codec.encode(body), "bson")


def test_a_word_of_a_command_is_counted_if_it_is_json(client: RawClient) -> None:
    words = ("JOBS.PUT", "q", "app.Send", json.dumps(MANY))

    assert code_of(client.ask(*words)) == "REQUEST_TOO_LARGE"
    assert isinstance(client.ask(*words[:3], FEW_IN_A_LONG_TEXT), bytes)


def post(server: Server, path: str, body: bytes, content_type: str) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    connection.request("POST", path, body, {"Content-Type": content_type})
    reply = Reply(connection.getresponse())
    connection.close()
    return reply


@pytest.mark.parametrize("kind", ["json", "msgpack"])
def test_clients_of_http_are_told_so(server: Server, space: str, kind: str) -> None:
    encode = msgspec.json.encode if kind == "json" else msgspec.msgpack.encode
    content_type = f"application/{kind}"
    steps = [{"operation": "jobs.put", "arguments": put(MANY)}]
    bodies = {"jobs/put": put(MANY), "batch": steps, "events": MANY}

    for path, body in bodies.items():
        refused = post(server, f"/{space}/{path}", encode(body), content_type)
        assert (path, refused.status) == (path, 413)

    steps = [{"operation": "jobs.put", "arguments": {"queue": "q"}}] * (MAX_BATCH_VALUES // 3)
    refused = post(server, f"/{space}/batch", encode(steps), content_type)
    assert (refused.status, b"1,000,000 values" in refused.body) == (413, True)
    text = encode(put(FEW_IN_A_LONG_TEXT))
    assert post(server, f"/{space}/jobs/put", text, content_type).status == 200


def test_lines_of_events_may_have_any_number_of_values(server: Server, space: str) -> None:
    line = b'{"name":"seen","attributes":{"v":[' + b"0," * 100_000 + b"0]}}\n"

    reply = post(server, f"/{space}/events", line * 6, "application/json")

    assert reply.status == 200
