"""Replies as a client reads them: however they are cut, and whatever a server announces."""

import tracemalloc
from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.client.replies import ProtocolError, ReplyReader
from holdfast.errors import HoldfastError
from tests.client.scripted import ScriptedServer, at

WORD = st.binary(max_size=40).map(lambda word: b"$%d\r\n%b\r\n" % (len(word), word))
PLAIN = st.sampled_from([b"+OK\r\n", b":-12\r\n", b"$-1\r\n", b"*0\r\n", b"*-1\r\n"])
REPLY = st.recursive(
    WORD | PLAIN,
    lambda inner: st.lists(inner, max_size=5).map(
        lambda items: b"*%d\r\n%b" % (len(items), b"".join(items))
    ),
    max_leaves=12,
)


@given(st.lists(REPLY, max_size=5), st.data())
def test_replies_survive_every_cut_and_are_what_hiredis_reads(
    replies: list[bytes], data: st.DataObject
) -> None:
    sent = b"".join(replies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    reader, known = ReplyReader(), hiredis.Reader()
    known.feed(sent)

    read: list[Any] = []
    for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        if (reply := reader.take(sent[begin:end])) is not False:
            read += [reply, *iter(reader.gets, False)]

    assert read == list(iter(known.gets, False))


@pytest.mark.parametrize(
    "sent",
    [
        b"*1000000000\r\n",
        b">99999999999\r\n",
        b"%600000\r\n",
        b"$9999999999\r\n",
        b"*?\r\n",
        b"*1\r\n" * 20,
        b"#t\r\n",
        b"|1\r\n",
        b"x" * 2_000_000,
        b"$3\r\nabcde",
        b":1e9\r\n",
    ],
)
def test_what_a_server_announces_is_refused_before_memory_is_set_aside(sent: bytes) -> None:
    tracemalloc.start()
    reader = ReplyReader()
    try:
        reader.feed(sent)
        with pytest.raises(ProtocolError):
            reader.gets()
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_a_broken_server_is_an_error_of_its_client_and_not_its_end() -> None:
    server = ScriptedServer(at("JOBS.LENGTH", b"*1000000000\r\n"))
    try:
        with holdfast.connect(server.url, timeout=5) as client, pytest.raises(HoldfastError):
            client.jobs.length("q")
    finally:
        server.close()
