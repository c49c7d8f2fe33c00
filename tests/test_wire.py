"""RESP as bytes: what a client may send, however it is cut, and nothing else."""

import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import wire
from holdfast.errors import BadFrame, RequestTooLarge
from holdfast.limits import MAX_COMMAND_ARGUMENTS, MAX_REQUEST_BYTES
from holdfast.wire import CommandReader
from tests.server.running import command

WORDS = st.lists(st.binary(max_size=30), min_size=1, max_size=5)


@given(st.lists(WORDS, max_size=8), st.data())
def test_commands_survive_every_cut(commands: list[list[bytes]], data: st.DataObject) -> None:
    sent = b"".join(command(*words) for words in commands)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    reader = CommandReader()

    read = []
    for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        read += reader.feed(sent[begin:end])

    assert read == commands
    assert reader.error is None


@given(st.binary(max_size=200))
def test_any_bytes_are_commands_or_an_error_and_never_more(sent: bytes) -> None:
    whole = CommandReader()
    commands = whole.feed(sent)
    apart = CommandReader()
    read = []
    for byte in sent:
        if apart.error is None:
            read += apart.feed(bytes([byte]))

    assert read == commands
    assert all(commands)
    assert repr(whole.error) == repr(apart.error)


@pytest.mark.parametrize("header", ["*", "%", "~", ">", "|", "$", "=", "!", "(", ":", ",", "+"])
@pytest.mark.parametrize("number", ["-1", "0", "1", "999", "1000000000", "9" * 19, "?", "", "1e9"])
@pytest.mark.parametrize("before", ["*1\r\n", "*2\r\n$1\r\naXX", "", "*1\r\n$1\r\na\r\n"])
def test_only_an_array_of_words_is_a_command_and_lengths_cost_nothing(
    before: str, header: str, number: str
) -> None:
    sent = f"{before}{header}{number}\r\n".encode()
    tracemalloc.start()
    try:
        reader = CommandReader()
        commands = reader.feed(sent) + ([] if reader.error else reader.feed(sent))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert all(type(word) is bytes for words in commands for word in words)
    assert peak < 100_000
    if header not in "*$" or (before and header == "*"):
        is_inside = before in ("*1\r\n", "*2\r\n$1\r\naXX")
        assert reader.error is not None or not (is_inside or header in "%~>|=!(:,+")


def test_a_command_of_a_stranger_has_no_more_words_than_its_bytes_allow() -> None:
    reader = CommandReader()
    reader.max_bytes = 1_000
    reader.feed(b"*200\r\n")

    assert isinstance(reader.error, RequestTooLarge)


@pytest.mark.parametrize("piece", [1, 300, 10_000])
def test_many_words_have_the_bytes_that_a_command_may_have_however_they_come(piece: int) -> None:
    by_bytes, by_name = CommandReader(), CommandReader({b"PUT": 50})
    by_bytes.max_bytes = 2_000
    sent = command(b"PUT", *[b"x" * 60] * 50, b"x")
    for at in range(0, len(sent), piece):
        for reader in (by_bytes, by_name):
            if reader.error is None:
                assert reader.feed(sent[at : at + piece]) == []

    assert isinstance(by_bytes.error, RequestTooLarge)
    assert isinstance(by_name.error, RequestTooLarge)


@given(
    st.lists(st.text("ab\r\n$*+:12", max_size=4).map(str.encode), min_size=2, max_size=2),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["", *"ab\r\n$*+:012-"])), max_size=2),
)
def test_what_is_nearly_a_pair_of_words_is_read_as_with_care(
    words: list[bytes], changes: list[tuple[int, str]]
) -> None:
    sent = command(*words)
    for place, letter in changes:
        at = place % len(sent)
        sent = sent[:at] + letter.encode() + sent[at + 1 :]
    whole, apart = CommandReader(), CommandReader()

    commands = whole.feed(sent)
    read = []
    for byte in sent:
        if apart.error is None:
            read += apart.feed(bytes([byte]))

    assert (commands, whole.held) == (read, apart.held)
    assert repr(whole.error) == repr(apart.error)


def test_a_long_command_is_not_looked_at_again_with_every_packet() -> None:
    reader = CommandReader()
    reader.feed(b"*2\r\n$4\r\nECHO\r\n$20000000\r\n")
    for _ in range(20_000):
        assert reader.feed(b"x" * 1_000) == []

    [[_, word]] = reader.feed(b"\r\n")
    assert len(word) == 20_000_000


@pytest.mark.parametrize("count", [MAX_COMMAND_ARGUMENTS + 1, 2 * MAX_COMMAND_ARGUMENTS])
def test_a_command_of_too_many_arguments_is_refused_before_the_first_of_them(count: int) -> None:
    """So many short arguments would have fewer bytes than a command may have."""
    assert count * len(b"$0\r\n\r\n") < MAX_REQUEST_BYTES
    reader, largest = CommandReader(), CommandReader()
    reader.feed(b"*%d\r\n" % count)
    largest.feed(b"*%d\r\n" % MAX_COMMAND_ARGUMENTS)

    assert isinstance(reader.error, BadFrame)
    assert largest.error is None


@pytest.mark.parametrize(
    ("number", "protocol", "written"),
    [
        (130.0, 3, b",130\r\n"),
        (1.5, 3, b",1.5\r\n"),
        (math.inf, 3, b",inf\r\n"),
        (130.0, 2, b"$3\r\n130\r\n"),
        (0.1, 2, b"$3\r\n0.1\r\n"),
    ],
)
def test_a_double_has_its_form_in_each_protocol(
    number: float, protocol: int, written: bytes
) -> None:
    assert wire.double(number, protocol) == written


def test_an_error_is_one_line() -> None:
    assert wire.error("ERR a\r\nb\n\nc") == b"-ERR a b c\r\n"


def test_words_that_are_awaited_are_counted_so_that_they_need_no_turns() -> None:
    reader = CommandReader()
    assert reader.awaited == 0

    assert reader.feed(b"*2\r\n$4\r\nECHO\r\n$100000\r\nabc") == []

    assert reader.awaited == 100_000 - 3 + 2
    assert reader.feed(b"x" * 99_997 + b"\r\n") == [[b"ECHO", b"abc" + b"x" * 99_997]]
    assert reader.awaited == 0
