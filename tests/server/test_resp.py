"""The RESP protocol, as any Redis client in any language meets it."""

import json
import socket
import time

import hiredis
import msgspec
import pytest

from tests.server.running import RawClient, Server, command

# --- greetings -----------------------------------------------------------------------------------


def test_hello_answers_with_a_flat_list_in_protocol_2_and_a_map_in_protocol_3(
    client: RawClient,
) -> None:
    listed = client.ask("HELLO", "2")
    mapped = client.ask("HELLO", "3")

    facts = {b"server": b"redis", b"version": b"7.2.4", b"mode": b"standalone", b"role": b"master"}
    assert dict(zip(listed[::2], listed[1::2], strict=True)).items() >= facts.items()
    assert mapped.items() >= {**facts, b"proto": 3, b"modules": []}.items()


def test_hello_refuses_a_protocol_that_no_one_speaks(client: RawClient) -> None:
    client.says(command("HELLO", "4"), b"-NOPROTO unsupported protocol version\r\n")
    client.says(command("HELLO", "3", "SPEED", "9"), b"-ERR Syntax error in HELLO\r\n")
    assert client.ask("PING") == b"PONG"


def test_hello_may_name_the_client_and_log_it_in(client: RawClient) -> None:
    client.ask("HELLO", "3", "AUTH", "default", "secret", "SETNAME", "tester")

    assert client.ask("CLIENT", "GETNAME") == b"tester"


def test_names_of_commands_may_be_written_in_any_case(client: RawClient) -> None:
    client.says(command("pInG"), b"+PONG\r\n")


def test_ping_and_echo_give_back_what_they_got(client: RawClient) -> None:
    client.says(command("PING"), b"+PONG\r\n")
    client.says(command("PING", "a\r\nb"), b"$4\r\na\r\nb\r\n")
    client.says(command("ECHO", b"\x00\xff"), b"$2\r\n\x00\xff\r\n")
    client.says(command("ECHO"), b"-ERR wrong number of arguments for 'echo' command\r\n")


def test_quit_is_answered_and_then_the_connection_ends(client: RawClient) -> None:
    client.socket.sendall(command("PING") + command("QUIT") + command("PING"))

    assert client.rest() == b"+PONG\r\n+OK\r\n"


def test_quit_waits_for_the_writes_before_it(client: RawClient) -> None:
    client.socket.sendall(command("JOBS.PUT", '{"queue":"q","id":"a"}') + command("QUIT"))

    assert client.rest() == b'$3\r\n"a"\r\n+OK\r\n'


def test_a_client_that_says_no_more_is_answered_before_the_connection_ends(
    client: RawClient,
) -> None:
    # `printf ... | nc host port` ends so.
    client.socket.sendall(command("JOBS.PUT", '{"queue":"q","id":"a"}') + command("PING"))
    client.socket.shutdown(socket.SHUT_WR)

    assert client.rest() == b'$3\r\n"a"\r\n+PONG\r\n'


def test_reset_makes_the_connection_as_new(client: RawClient, space: str) -> None:
    client.ask("HELLO", "3")
    client.ask("CLIENT", "SETNAME", "x")
    client.ask("MULTI")

    assert client.ask("RESET") == b"RESET"
    assert client.ask("SPACE") == b"default"
    client.says(command("CLIENT", "GETNAME"), b"$-1\r\n")
    assert "EXEC without MULTI" in str(client.ask("EXEC"))


def test_client_commands_that_libraries_send_are_answered(client: RawClient) -> None:
    assert client.ask("CLIENT", "SETINFO", "LIB-NAME", "redis-py") == b"OK"
    assert isinstance(client.ask("CLIENT", "ID"), int)
    assert b" db=0 " in client.ask("CLIENT", "INFO")
    assert "cannot contain spaces" in str(client.ask("CLIENT", "SETNAME", "a b"))
    assert "cannot contain spaces" in str(client.ask("HELLO", "2", "SETNAME", "a\nb"))
    assert isinstance(client.ask("CLIENT", "MAINT_NOTIFICATIONS", "ON"), hiredis.ReplyError)
    assert "unknown subcommand 'DANCE'" in str(client.ask("CLIENT", "DANCE"))
    assert client.ask("PING") == b"PONG"


def test_commands_are_described(client: RawClient) -> None:
    assert len(client.ask("COMMAND")) == client.ask("COMMAND", "COUNT") > 100
    assert b"jobs.put" in client.ask("COMMAND", "LIST")
    assert client.ask("COMMAND", "INFO", "cake") == [None]
    client.ask("HELLO", "3")
    [(name, doc)] = client.ask("COMMAND", "DOCS", "jobs.put").items()
    assert (name, doc[b"group"]) == (b"jobs.put", b"jobs")


def test_help_lists_operations_with_their_arguments(client: RawClient) -> None:
    lines = client.ask("HELP", "jobs.pop")

    assert any(line.startswith(b"JOBS.POP {queue, worker, count") for line in lines)
    assert "nothing begins with 'cake'" in str(client.ask("HELP", "cake"))


def test_info_says_master_and_can_be_asked_for_a_section(client: RawClient) -> None:
    all_commands = client.ask("INFO")
    replication = client.ask("INFO", "replication")

    assert b"redis_version:7.2.4\r\n" in all_commands
    assert b"holdfast_version:" in all_commands
    assert b"role:master\r\n" in replication
    assert b"redis_version" not in replication


def test_config_answers_what_benchmarks_ask(client: RawClient) -> None:
    assert client.ask("CONFIG", "GET", "save") == [b"save", b""]
    assert client.ask("CONFIG", "GET", "append*") == [b"appendonly", b"yes"]
    assert client.ask("CONFIG", "GET", "cake") == []
    assert isinstance(client.ask("CONFIG", "SET", "save", "1"), hiredis.ReplyError)


def test_time_is_seconds_and_microseconds(client: RawClient) -> None:
    seconds, microseconds = client.ask("TIME")

    assert abs(int(seconds) + int(microseconds) / 1e6 - time.time()) < 60


# --- spaces --------------------------------------------------------------------------------------


def test_a_space_is_apart_from_all_others(server: Server, client: RawClient, space: str) -> None:
    client.ask("JOBS.PUT", '{"queue":"q","id":"here"}')
    with server.connect() as other:
        other.ask("SPACE", f"{space}-other")

        assert other.ask("JOBS.GET", '{"id":"here"}') == b"null"
        assert other.ask("SPACE") == f"{space}-other".encode()


def test_each_database_is_a_space_of_its_own(client: RawClient) -> None:
    client.ask("JOBS.PUT", '{"queue":"q","id":"in-0"}')
    client.ask("SELECT", "1")
    client.ask("JOBS.PUT", '{"queue":"q","id":"in-1"}')

    assert client.ask("KEYS", "ql:j:*") == [b"ql:j:in-1"]
    client.ask("SELECT", "0")
    assert client.ask("KEYS", "ql:j:*") == [b"ql:j:in-0"]
    for number in ("16", "one", "0" * 9 + "16", "0" * 5_000, "9" * 5_000, "\u0661", ""):
        assert str(client.ask("SELECT", number)) == "ERR DB index is out of range"


def test_a_space_needs_a_name_of_text(client: RawClient) -> None:
    assert str(client.ask("SPACE", b"\xff")).startswith("BAD_INPUT")
    assert isinstance(client.ask("SPACE", "x" * 1000), hiredis.ReplyError)


# --- commands and payloads -----------------------------------------------------------------------


def test_the_reply_is_in_the_encoding_of_the_payload(client: RawClient) -> None:
    client.says(command("JOBS.PUT", '{"queue":"q","id":"a"}'), b'$3\r\n"a"\r\n')
    payload = msgspec.msgpack.encode({"queue": "q", "id": "b"})
    client.says(command("JOBS.PUT", payload), b"$2\r\n\xa1b\r\n")
    assert json.loads(client.ask("JOBS.LENGTH", ' {"queue": "q"}')) == 2


def test_an_operation_without_arguments_needs_no_payload(client: RawClient) -> None:
    assert client.ask("JOBS.QUEUES") == b"[]"


def test_an_unknown_command_is_an_error_and_nothing_else(client: RawClient) -> None:
    client.says(
        command("LOLWUT", "x", "y"),
        b"-ERR unknown command 'LOLWUT', with args beginning with: 'x' 'y'. "
        b"HELP lists all operations.\r\n",
    )
    assert client.ask("PING") == b"PONG"


def test_a_misspelt_operation_is_answered_with_the_nearest_one(client: RawClient) -> None:
    refused = str(client.ask("jobs.putt", '{"queue":"q"}'))

    assert refused.startswith("ERR unknown command 'jobs.putt', with args")
    assert refused.endswith(". Did you mean JOBS.PUT?")


def test_an_operation_is_found_by_the_name_of_its_method_too(client: RawClient) -> None:
    arguments = '{"table":"shop.Users","ids":["a"]}'

    assert str(client.ask("ENTITIES.GET_RAW", arguments)).startswith("INVALID_TABLE ")
    assert str(client.ask("ENTITIES.GET", arguments)).startswith("INVALID_TABLE ")


@pytest.mark.parametrize(
    "payload",
    [
        b'{"queue":',
        b'{"queue":1}',
        b'{"queue":"q","dely":1}',
        b"\x81\xa5queue",
        b'{"queue":"\xff"}',
        b'{"data":' + b"[" * 100_000,
        b"\x81\xa4data" + b"\x91" * 100_000,
    ],
)
def test_an_invalid_payload_is_bad_input(client: RawClient, payload: bytes) -> None:
    assert str(client.ask("JOBS.PUT", payload)).startswith("BAD_INPUT ")
    assert client.ask("PING") == b"PONG"


def test_an_error_has_its_code_its_message_and_its_hint_on_one_line(client: RawClient) -> None:
    said = str(client.ask("JOBS.COMPLETE", '{"id":"nobody","worker":"w"}'))

    assert said.startswith("UNKNOWN_JOB ")
    assert "nobody" in said


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["PUBLISH", "c" * 100_000, "m"], "Use a shorter name"),
        (["SUBSCRIBE", "c" * 100_000], "Use a shorter name"),
        (["PSUBSCRIBE", "c" * 100_000], "Use a shorter name"),
        (["PSUBSCRIBE", *(f"{n}*" for n in range(2_000))], "Use fewer patterns"),
        (["COMMAND", "DOCS", *["get"] * 2_000], "Name fewer of them, or none"),
        (["TRACE", "baggage", "b" * 100_000], "leave `baggage` out"),
    ],
)
def test_what_is_too_large_is_answered_with_what_to_do_about_it(
    client: RawClient, words: list[str], advice: str
) -> None:
    said = str(client.ask(*words))

    assert said.startswith("REQUEST_TOO_LARGE ")
    assert advice in said


# --- words ---------------------------------------------------------------------------------------


def test_people_may_type_words_instead_of_an_object(client: RawClient) -> None:
    jid = json.loads(client.ask("JOBS.PUT", "emails", "app.Send", '{"to":"ann"}'))
    job = json.loads(client.ask("JOBS.GET", jid))

    assert (job["queue"], job["klass"], job["data"]) == ("emails", "app.Send", {"to": "ann"})


def test_exact_numbers_of_tables_are_kept_in_objects_and_words(client: RawClient) -> None:
    index = [{"type": "hash", "attribute": "k"}]
    schema = {"table": "t", "attributes": {"k": "string", "d": "decimal"}, "index": index}
    client.ask("TABLES.CREATE", json.dumps({"schema": schema}))

    client.ask("TABLES.PUT", '{"table": "t", "attributes": {"k": "a", "d": 1.40}}')
    client.ask("TABLES.PUT", "t", '{"k": "b", "d": 0.12345678901234567890}')

    items = json.loads(client.ask("TABLES.GET", "t"))["items"]
    assert [item["d"] for item in items] == ["1.40", "0.12345678901234567890"]


def test_a_word_that_is_no_json_is_text(client: RawClient) -> None:
    jid = json.loads(client.ask("JOBS.PUT", "emails", "app.Send", "hello there"))

    assert json.loads(client.ask("JOBS.GET", jid))["data"] == "hello there"


def test_words_behind_the_last_argument_belong_to_its_list(client: RawClient) -> None:
    for jid in ("a", "b"):
        client.ask("JOBS.PUT", json.dumps({"queue": "q", "id": jid}))

    assert sorted(json.loads(client.ask("JOBS.CANCEL", "a", "b"))) == ["a", "b"]


def test_too_many_words_are_refused(client: RawClient) -> None:
    assert str(client.ask("JOBS.GET", "a", "b")).startswith("BAD_INPUT jobs.get takes at most 1")


def test_an_event_is_a_name_and_its_attributes(client: RawClient) -> None:
    schema = {"signup": [{"targets": ["['users']"], "add": "user"}]}
    deployed = client.ask("EVENTS.DEPLOY", json.dumps({"schema": schema}))
    sent = client.ask("EVENTS.SEND", "signup", '{"user":"ann"}')

    assert (deployed, json.loads(sent)["handlers"]) == (b"null", 1)


def test_attributes_that_are_no_json_are_bad_input(client: RawClient) -> None:
    for attributes in (b'"\xff"', b"{", b"[" * 100_000):
        refused = client.ask("EVENTS.SEND", "signup", attributes)

        assert str(refused).startswith("BAD_INPUT ")


def test_redis_cell_clients_get_their_five_integers(client: RawClient) -> None:
    throttle = ("CL.THROTTLE", "user123", "15", "30", "60")
    client.says(command(*throttle), b"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n")
    assert client.ask(*throttle, "15")[:3] == [0, 16, 0]
    assert client.ask(*throttle)[0] == 1
    assert "wrong number of arguments" in str(client.ask("CL.THROTTLE", "user123"))
    assert str(client.ask("CL.THROTTLE", "k", "many", "30", "60")).startswith("BAD_LIMIT")


# --- order ---------------------------------------------------------------------------------------


def test_a_read_behind_a_write_sees_it(client: RawClient) -> None:
    commands = []
    for number in range(50):
        commands.append(command("JOBS.PUT", '{"queue":"q"}'))
        commands.append(command("JOBS.LENGTH", '{"queue":"q"}'))
        commands.append(command("ECHO", str(number)))
    client.socket.sendall(b"".join(commands))

    for number in range(50):
        client.receive()
        assert (client.receive(), client.receive()) == (b"%d" % (number + 1), b"%d" % number)


def test_a_write_that_fails_fails_alone(client: RawClient) -> None:
    good = command("JOBS.PUT", '{"queue":"q","id":"good"}')
    bad = command("JOBS.COMPLETE", '{"id":"bad","worker":"w"}')
    client.socket.sendall(good + bad + good)

    first, second, third = (client.receive() for _ in range(3))
    assert (first, third) == (b'"good"', b'"good"')
    assert str(second).startswith("UNKNOWN_JOB")


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_is_one_transaction(client: RawClient) -> None:
    assert client.ask("MULTI") == b"OK"
    assert client.ask("JOBS.PUT", '{"queue":"q","id":"a"}') == b"QUEUED"
    assert client.ask("JOBS.LENGTH", '{"queue":"q"}') == b"QUEUED"
    assert client.ask("PING") == b"QUEUED"

    assert client.ask("EXEC") == [b'"a"', b"1", b"PONG"]


def test_a_batch_that_fails_leaves_nothing_and_says_what_failed(client: RawClient) -> None:
    client.ask("MULTI")
    client.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
    client.ask("JOBS.COMPLETE", '{"id":"nobody","worker":"w"}')
    said = str(client.ask("EXEC"))

    assert said.startswith("UNKNOWN_JOB ")
    assert said.endswith("(at position 1 of the batch)")
    assert client.ask("JOBS.GET", '{"id":"a"}') == b"null"


def test_a_batch_with_a_refused_command_does_nothing(client: RawClient) -> None:
    for refused in (["NONSENSE"], ["JOBS.PUT", "{"], ["ECHO"], ["SUBSCRIBE", "x"], ["SELECT", "1"]):
        client.ask("MULTI")
        client.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
        assert isinstance(client.ask(*refused), hiredis.ReplyError)
        assert str(client.ask("EXEC")).startswith("EXECABORT ")
    assert client.ask("JOBS.GET", '{"id":"a"}') == b"null"
    assert client.ask("PING") == b"PONG"


def test_a_discarded_batch_does_nothing(client: RawClient) -> None:
    client.ask("MULTI")
    client.ask("JOBS.PUT", '{"queue":"q","id":"a"}')

    assert client.ask("DISCARD") == b"OK"
    assert client.ask("JOBS.GET", '{"id":"a"}') == b"null"
    assert str(client.ask("EXEC")) == "ERR EXEC without MULTI"
    assert str(client.ask("DISCARD")) == "ERR DISCARD without MULTI"


def test_batches_do_not_nest(client: RawClient) -> None:
    client.ask("MULTI")

    assert str(client.ask("MULTI")) == "ERR MULTI calls can not be nested"
    assert client.ask("EXEC") == []


def test_what_takes_several_transactions_is_no_part_of_a_batch(client: RawClient) -> None:
    client.ask("MULTI")

    assert "can't be part of a batch" in str(client.ask("JOBS.CANCEL_QUEUE", '{"queue":"q"}'))
    assert str(client.ask("EXEC")).startswith("EXECABORT ")
