"""Subscriptions: notices of commits as messages, byte for byte."""

import json

from holdfast.limits import MAX_PATTERNS
from tests.server.running import RawClient, Server, command
from tests.servers import await_true


def _listener(server: Server, space: str, *greeting: str) -> RawClient:
    listener = server.connect()
    if greeting:
        listener.ask(*greeting)
    listener.ask("SPACE", space)
    return listener


def test_confirmations_count_channels_and_patterns_together(client: RawClient) -> None:
    client.says(
        command("SUBSCRIBE", "ql:log", "ql:put") + command("PSUBSCRIBE", "ql:w:*"),
        b"*3\r\n$9\r\nsubscribe\r\n$6\r\nql:log\r\n:1\r\n"
        b"*3\r\n$9\r\nsubscribe\r\n$6\r\nql:put\r\n:2\r\n"
        b"*3\r\n$10\r\npsubscribe\r\n$6\r\nql:w:*\r\n:3\r\n",
    )
    client.says(
        command("UNSUBSCRIBE", "ql:put") + command("UNSUBSCRIBE") + command("UNSUBSCRIBE"),
        b"*3\r\n$11\r\nunsubscribe\r\n$6\r\nql:put\r\n:2\r\n"
        b"*3\r\n$11\r\nunsubscribe\r\n$6\r\nql:log\r\n:1\r\n"
        b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:1\r\n",
    )
    client.says(
        command("PUNSUBSCRIBE") + command("UNSUBSCRIBE"),
        b"*3\r\n$12\r\npunsubscribe\r\n$6\r\nql:w:*\r\n:0\r\n"
        b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
    )
    assert client.ask("PING") == b"PONG"


def test_protocol_3_sends_push_frames(client: RawClient) -> None:
    client.ask("HELLO", "3")
    client.says(command("SUBSCRIBE", "x"), b">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n")
    client.says(
        command("PUBLISH", "x", "hi"), b">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$2\r\nhi\r\n:1\r\n"
    )
    client.says(command("UNSUBSCRIBE", "y"), b">3\r\n$11\r\nunsubscribe\r\n$1\r\ny\r\n:1\r\n")
    client.says(command("UNSUBSCRIBE"), b">3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n")
    client.says(command("UNSUBSCRIBE"), b">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n")


def test_while_subscribed_protocol_2_only_listens(client: RawClient) -> None:
    client.ask("SUBSCRIBE", "x")

    client.says(command("PING"), b"*2\r\n$4\r\npong\r\n$0\r\n\r\n")
    client.says(command("PING", "hi"), b"*2\r\n$4\r\npong\r\n$2\r\nhi\r\n")
    assert str(client.ask("JOBS.QUEUES")).startswith("ERR Can't execute 'jobs.queues'")
    client.socket.sendall(command("QUIT"))
    assert client.rest() == b"+OK\r\n"


def test_a_channel_and_a_pattern_each_bring_the_message(
    server: Server, client: RawClient, space: str
) -> None:
    with _listener(server, space) as listener:
        listener.send("SUBSCRIBE", "news:art")
        listener.send("PSUBSCRIBE", "news:*")
        listener.receive(), listener.receive()

        assert client.ask("PUBLISH", "news:art", "hello") == 2
        assert client.ask("PUBLISH", "sports", "hello") == 0
        assert listener.receive() == [b"message", b"news:art", b"hello"]
        assert listener.receive() == [b"pmessage", b"news:*", b"news:art", b"hello"]
        assert listener.ask("PING") == [b"pong", b""]


def test_events_are_with_the_subscriber_before_the_caller_has_its_reply(
    server: Server, client: RawClient, space: str
) -> None:
    with _listener(server, space) as listener:
        for number in range(20):
            listener.ask("PSUBSCRIBE", "*")
            client.ask("QLESS", "put", "*", "w", "q", f"job-{number}", "k", "{}", "0")
            # After this reply nothing more is heard: all messages come before it.
            listener.send("PUNSUBSCRIBE", "*")
            text = b'{"jid":"job-%d","event":"put","queue":"q"}' % number
            assert listener.receive() == [b"pmessage", b"*", b"ql:log", text]
            assert listener.receive() == [b"punsubscribe", b"*", 0]


def test_events_of_long_operations_come_before_their_reply(
    server: Server, client: RawClient, space: str
) -> None:
    client.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
    with _listener(server, space) as listener:
        listener.ask("SUBSCRIBE", "ql:log")
        client.ask("JOBS.CANCEL", '{"ids":["a"]}')
        listener.send("UNSUBSCRIBE")

        [_, _, event] = listener.receive()
        assert json.loads(event)["event"] == "canceled"


def test_a_refused_command_publishes_nothing(server: Server, client: RawClient, space: str) -> None:
    with _listener(server, space) as listener:
        listener.ask("PSUBSCRIBE", "*")
        client.ask("JOBS.COMPLETE", '{"id":"nobody","worker":"w"}')
        client.ask("MULTI")
        client.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
        client.ask("JOBS.COMPLETE", '{"id":"nobody","worker":"w"}')
        client.ask("EXEC")
        listener.send("PUNSUBSCRIBE")

        assert listener.receive() == [b"punsubscribe", b"*", 0]


def test_a_connection_has_so_many_patterns_and_no_more(client: RawClient) -> None:
    client.send("PSUBSCRIBE", *(f"x{number}*" for number in range(MAX_PATTERNS)))
    assert [client.receive()[2] for _ in range(MAX_PATTERNS)][-1] == MAX_PATTERNS

    assert str(client.ask("PSUBSCRIBE", "one", "more")).startswith("REQUEST_TOO_LARGE ")
    assert client.ask("PSUBSCRIBE", "x1*") == [b"psubscribe", b"x1*", MAX_PATTERNS]
    assert client.ask("SUBSCRIBE", "channel") == [b"subscribe", b"channel", MAX_PATTERNS + 1]


def test_subscribers_hear_their_own_space(server: Server, client: RawClient, space: str) -> None:
    with _listener(server, f"{space}-next") as listener:
        listener.ask("PSUBSCRIBE", "*")
        client.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
        listener.send("PUNSUBSCRIBE")

        assert listener.receive() == [b"punsubscribe", b"*", 0]


def test_a_subscription_behind_a_write_does_not_hear_it(client: RawClient) -> None:
    client.socket.sendall(
        command("JOBS.PUT", '{"queue":"q","id":"a"}')
        + command("PSUBSCRIBE", "*")
        + command("PUNSUBSCRIBE")
    )

    assert client.receive() == b'"a"'
    assert client.receive() == [b"psubscribe", b"*", 1]
    assert client.receive() == [b"punsubscribe", b"*", 0]


def test_notices_are_heard_as_they_are(server: Server, client: RawClient, space: str) -> None:
    with _listener(server, space) as listener:
        listener.says(
            command("NOTICES", "jobs.ready"), b"*3\r\n$7\r\nnotices\r\n$10\r\njobs.ready\r\n:1\r\n"
        )
        client.ask("JOBS.PUT", '{"queue": "q"}')

        assert listener.receive() == [b"notice", b"jobs.ready", b"q"]
        assert str(listener.ask("JOBS.QUEUES")).startswith("ERR Can't execute")
        assert listener.ask("RESET") == b"RESET"
        assert str(listener.ask("NOTICES", "a", "b")).startswith("ERR wrong number")


def test_notices_of_protocol_3_are_pushed(client: RawClient) -> None:
    client.ask("HELLO", "3")
    client.says(command("NOTICES"), b">3\r\n$7\r\nnotices\r\n$0\r\n\r\n:1\r\n")


def test_many_channels_are_joined_and_left_in_turns_and_others_are_answered(
    server: Server, space: str
) -> None:
    channels = [f"channel {number}" for number in range(5_000)]
    with server.connect() as client, server.connect() as other:
        client.ask("SPACE", space)
        other.ask("SPACE", space)
        other.ask("JOBS.PUT", '{"queue":"q"}')  # the space exists
        client.send("SUBSCRIBE", *channels)
        for number, channel in enumerate(channels, 1):
            assert client.receive() == [b"subscribe", channel.encode(), number]
        assert other.ask("PUBLISH", channels[-1], "hello") == 1
        assert client.receive() == [b"message", channels[-1].encode(), b"hello"]

        client.send("UNSUBSCRIBE", *channels[:2_500])
        client.send("UNSUBSCRIBE")
        for left in range(len(channels) - 1, -1, -1):
            assert client.receive()[::2] == [b"unsubscribe", left]
        assert client.ask("PING") == b"PONG"
        assert other.ask("PUBLISH", channels[-1], "hello") == 0


def test_who_is_gone_hears_nothing_however_many_channels_it_had(server: Server, space: str) -> None:
    channels = [f"channel {number}" for number in range(5_000)]
    with server.connect() as other:
        other.ask("SPACE", space)
        other.ask("JOBS.PUT", '{"queue":"q"}')
        with server.connect() as client:
            client.ask("SPACE", space)
            client.send("SUBSCRIBE", *channels)
            while client.receive()[2] < len(channels):
                pass
            assert other.ask("PUBLISH", channels[0], "hello") == 1

        await_true(lambda: other.ask("PUBLISH", channels[-1], "") == 0, seconds=30, what="its end")


def test_a_reset_ends_all_subscriptions_before_it_is_answered(server: Server, space: str) -> None:
    with server.connect() as client:
        client.ask("SPACE", space)
        client.ask("JOBS.PUT", '{"queue":"q"}')
        client.ask("SUBSCRIBE", "news")
        assert client.ask("RESET") == b"RESET"
        client.ask("SPACE", space)
        client.ask("SUBSCRIBE", "news")
        client.ask("RESET")
        client.ask("SPACE", space)

        assert client.ask("PUBLISH", "news", "hello") == 0
