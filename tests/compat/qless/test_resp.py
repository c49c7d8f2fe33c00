"""Qless clients work unchanged: the package from PyPI, and the bytes that others send."""

import json
from hashlib import sha1
from pathlib import Path
from typing import Any

import hiredis
import pytest
import redis

from holdfast.engine.contract import Engine
from holdfast.limits import MAX_SCRIPTS
from holdfast.server.commands import plan_of
from holdfast.server.resp_session import Later, Read, RespSession
from holdfast.users import Grant, add_user
from tests.server.running import DEADLINE, RawClient, Server, command, serving
from tests.server.small_server import SmallServer, small_server

# qless-py is older than the warning, and its loggers are not ours.
pytestmark = pytest.mark.filterwarnings("ignore:The 'warn' method:DeprecationWarning")

G3 = b"-- a build\nfunction QlessAPI.put(now, me, queue, jid, klass, data, delay, ...) end"
G2 = b"-- a build\nQlessAPI.put = function(now, queue, jid, klass, data, delay, ...) end"
SHA_3 = sha1(G3).hexdigest()
SHA_2 = sha1(G2).hexdigest()


# --- the seed's calls -----------------------------------------------------------------------------


def test_the_seed_s_calls_have_their_replies_in_both_protocols(client: RawClient) -> None:
    def says(text: str, reply: bytes) -> None:
        client.says(command("QLESS1", *text.split()), reply)

    for nothing in (b"$-1\r\n", b"_\r\n"):
        says('Put 1 example deadbeef {"a":1} 1352075209 -5 ["x"] 0', b"$8\r\ndeadbeef\r\n")
        says("PEEK 1 other 5 1352075210", b"*0\r\n")
        [text] = client.ask("QLESS1", "pop", "1", "example", "w", "5", "1352075210", "1352075270")
        assert json.loads(text) == {
            "id": "deadbeef",
            "priority": -5,
            "data": '{"a":1}',
            "tags": '["x"]',
            "worker": "w",
            "expires": 1352075270,
            "state": "pending",
            "queue": "example",
            "history": [["example", 1352075209, 1352075210, None, "w"]],
        }
        says("heartbeat 0 deadbeef w 1352075300.7", b":1352075300\r\n")
        says("heartbeat 0 deadbeef other 1352075300", nothing)
        says('Complete 0 deadbeef {"c":3} next 10', b"$9\r\nscheduled\r\n")
        says("Complete 0 deadbeef", nothing)
        says("Fail 0 deadbeef type message 1352075310", b"$8\r\ndeadbeef\r\n")
        says("Get 0 nobody", nothing)
        says("SetConfig 0 jobs-history 2", nothing)
        says("GetConfig 0 jobs-history", b"$1\r\n2\r\n")
        assert client.ask("QLESS", "config.get", "0", "jobs-history") == b"172800"
        client.ask("QLESS", "cancel", "0", "deadbeef")
        client.ask("HELLO", "3")
    says("Put 0 example x {} 1", b"-ERR Put(): expected 1 keys, got 0\r\n")
    says("Dance 0", b"-ERR Unknown command Dance\r\n")


# --- malformed calls ------------------------------------------------------------------------------

# What each command needs at least: less of it is an error, and so is what has a wrong word.
WHOLE = (
    *("put 0 w q j k {} 0", "requeue 0 w q j k {} 0", "pop 0 q w 1", "peek 0 q 1", "length 0 q"),
    *("complete 0 j w q {}", "fail 0 j w g m {}", "heartbeat 0 j w {}", "retry 0 j q w 0"),
    *("get 0 j", "priority 0 j 1", "log 0 j m {}", "depends 0 j on a", "unfail 0 q g"),
    *("stats 0 q 0", "jobs 0 running q", "jobs 0 complete", "tag 0 add j", "tag 0 get t"),
    *("track 0 track j", "track 0 untrack j", "config.set 0 o v", "config.unset 0 o"),
    *("recur 0 q j k {} interval 60 0", "recur.get 0 j", "recur.tag 0 j t", "recur.untag 0 j t"),
    *("recur.update 0 j priority 1", "unrecur 0 j", "pause 0 q", "unpause 0 q"),
)
FINE_WHEN_SHORT = {"track 0"}
WRONG = (
    *("foo 0", "put 0 w q j k {] 0", "put 0 w q j k {} x", "pop 0 q w x", "pop 0 q w 1.5"),
    *("peek 0 q x", "priority 0 j x", "stats 0 q x", "jobs 0 complete x", "jobs 0 complete 0 x"),
    *("jobs 0 stalled q x", "jobs 0 depends q 0 x", "jobs 0 foo q 0 25", "failed 0 g x"),
    *("failed 0 g 0 x", "tag 0 foo", "tag 0 get t x", "tag 0 get t 0 x", "tag 0 top x"),
    *("tag 0 top 0 x", "track 0 foo j", "heartbeat 0 j w [}", "fail 0 j w g m [}"),
    *("retry 0 j q w x", "log 0 j m []", "unfail 0 q g x", "recur 0 q j k [} interval 60 0"),
    *("recur 0 q j k {} foo", "recur 0 q j k {} interval x 0", "recur 0 q j k {} interval 60 x"),
    *(f"put 0 w q j k {{}} 0 {name}" for name in ("retries", "tags", "priority", "depends")),
    *(f"put 0 w q j k {{}} 0 {name} [}}" for name in ("retries", "tags", "priority", "depends")),
    *(f"complete 0 j w q {{}} {name}" for name in ("next", "delay", "depends", "delay x")),
    *(f"complete 0 j w q {{}} {name}" for name in ("depends [}", 'depends ["a"]', "delay 5")),
    *(f"recur 0 q j k {{}} interval 60 0 {name}" for name in ("tags", "tags [}", "backlog x")),
    *(f"recur 0 q j k {{}} interval 60 0 {name}" for name in ("priority x", "retries x")),
)


def test_malformed_calls_are_errors_on_an_empty_database_and_the_connection_stays(
    client: RawClient,
) -> None:
    client.ask("SCRIPT", "LOAD", G3)
    whole = [text.split() for text in WHOLE]
    short = [words[:size] for words in whole for size in range(len(words))]

    for words in [*short, *(text.split() for text in WRONG)]:
        if " ".join(words) not in FINE_WHEN_SHORT:
            for call in (["QLESS", *words], ["EVALSHA", SHA_3, "0", *words]):
                assert isinstance(client.ask(*call), hiredis.ReplyError), call

    client.says(command("KEYS", "*"), b"*0\r\n")


# --- waiting for a job ----------------------------------------------------------------------------


def test_bpop_gives_the_first_job_of_the_first_queue_that_has_one(client: RawClient) -> None:
    client.ask("QLESS", "put", "100", "w", "second", "a", "k", "{}", "0")
    client.ask("QLESS", "put", "100", "w", "third", "b", "k", "{}", "0")

    [job] = json.loads(
        client.ask("QLESS", "bpop", "101", "first", "second", "third", "w1", "5", "0")
    )

    assert (job["jid"], job["worker"], job["expires"]) == ("a", "w1", 161)
    assert client.ask("QLESS", "bpop", "*", "first", "w1", "1", "0") == b"{}"


def test_bpop_waits_for_a_put_and_works_by_a_script_too(
    server: Server, client: RawClient, space: str
) -> None:
    client.ask("SCRIPT", "LOAD", G3)
    client.send("EVALSHA", SHA_3, "0", "bpop", "*", "first", "second", "w1", "1", "30")

    with server.connect() as other:
        other.ask("SPACE", space)
        other.ask("QLESS", "put", "*", "w", "second", "a", "k", "{}", "0")

    assert [job["jid"] for job in json.loads(client.receive())] == ["a"]


def test_bpop_wakes_when_the_caller_s_time_has_come_to_a_scheduled_job(client: RawClient) -> None:
    client.ask("QLESS", "put", "100", "w", "q", "a", "k", "{}", "0.2")

    [job] = json.loads(client.ask("QLESS", "bpop", "100", "q", "w1", "1", "30"))

    assert job["jid"] == "a"
    assert 160 <= job["expires"] < 160 + DEADLINE


def test_a_result_can_be_waited_for(server: Server, client: RawClient, space: str) -> None:
    client.ask("QLESS", "put", "1", "w", "q", "a", "k", "{}", "0")
    client.ask("QLESS", "pop", "2", "q", "w", "1")
    client.says(command("QLESS", "result", "3", "a", "0"), b"$-1\r\n")
    client.send("QLESS", "result", "3", "a", "30")

    with server.connect() as other:
        other.ask("SPACE", space)
        other.ask("QLESS", "complete", "4", "a", "w", "q", "{}", "result", "[7]")

    assert client.receive() == b"[7]"
    assert str(client.ask("QLESS", "result", "5", "nobody", "1")).endswith("does not exist")
    assert str(client.ask("QLESS", "result", "5", "a", "x")).endswith("not a number: x")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("", 'Arg "now" missing or not a number: nil'),
        ("x q w 1 0", 'Arg "now" missing or not a number: x'),
        ("1", "Queue(): no queue name provided"),
        ("1 q", 'Bpop(): Arg "worker" missing'),
        ("1 q w", 'Bpop(): Arg "count" missing or not a number: nil'),
        ("1 q w 1", 'Bpop(): Arg "timeout" missing or not a number: nil'),
        ("1 q w 1 x", 'Bpop(): Arg "timeout" missing or not a number: x'),
        ("1 q r w x 1", 'Bpop(): Arg "count" missing or not a number: x'),
    ],
)
def test_malformed_bpops_are_refused(client: RawClient, words: str, text: str) -> None:
    client.says(command("QLESS", "bpop", *words.split()), f"-ERR {text}\r\n".encode())


# --- scripts -------------------------------------------------------------------------------------


def test_scripts_are_recognised_by_what_they_say(client: RawClient) -> None:
    client.ask("SCRIPT", "FLUSH")
    client.says(
        command("EVALSHA", SHA_3, "0", "queues", "1"),
        b"-NOSCRIPT No matching script. Please use EVAL.\r\n",
    )
    client.says(command("SCRIPT", "LOAD", G3), b"$40\r\n%b\r\n" % SHA_3.encode())
    assert client.ask("script", "exists", SHA_3.upper(), SHA_2) == [1, 0]
    put = ("0", "put", "1", "me", "q", "a", "k", "{}", "0")
    assert client.ask("EVALSHA", SHA_3.upper(), *put) == b"a"


def test_the_older_script_puts_without_a_caller(client: RawClient) -> None:
    client.ask("SCRIPT", "LOAD", G2)

    assert client.ask("EVALSHA", SHA_2, "0", "put", "1", "q", "b", "k", "{}", "0") == b"b"


def test_eval_runs_a_script_and_remembers_it(client: RawClient) -> None:
    client.ask("SCRIPT", "FLUSH")

    assert client.ask("EVAL", G3, "0", "length", "1", "q") == 0
    assert client.ask("EVALSHA", SHA_3, "0", "length", "1", "q") == 0


def test_other_scripts_are_refused(client: RawClient) -> None:
    refusal = b"-ERR this server runs the queue script only; other Lua is not supported\r\n"
    client.says(command("SCRIPT", "LOAD", "return 1"), refusal)
    client.says(command("EVAL", "return 1", "0"), refusal)
    client.says(command("SCRIPT", "LOAD", "local QlessAPI = {} -- the library alone"), refusal)
    assert "reqless" in str(client.ask("EVAL", "function ReqlessAPI.put(now, me, q) end", "0"))


def test_an_error_has_the_form_that_clients_take_apart(client: RawClient) -> None:
    client.ask("SCRIPT", "LOAD", G3)
    start = f"-ERR Error running script (call to f_{SHA_3}): @user_script:1: user_script:1: "
    client.says(
        command("EVALSHA", SHA_3, "1", "key", "queues", "1"),
        start.encode() + b"No Keys should be provided\r\n",
    )
    client.says(
        command("EVALSHA", SHA_3, "0", "dance", "1"), start.encode() + b"Unknown command dance\r\n"
    )
    client.says(command("QLESS", "dance", "*"), b"-ERR Unknown command dance\r\n")


def test_replies_have_their_form_in_both_protocols(client: RawClient) -> None:
    client.says(command("QLESS", "get", "*", "nobody"), b"$-1\r\n")
    client.says(command("QLESS", "jobs", "*", "complete"), b"*0\r\n")
    client.says(command("QLESS", "put", "*", "w", "q", "a", "k", "{}", "0"), b"$1\r\na\r\n")
    client.says(command("QLESS", "length", "*", "q"), b":1\r\n")
    client.says(command("QLESS", "cancel", "*", "a"), b"*1\r\n$1\r\na\r\n")
    client.ask("HELLO", "3")
    client.says(command("QLESS", "get", "*", "nobody"), b"_\r\n")


def test_bytes_that_are_no_text_survive(client: RawClient) -> None:
    client.ask("QLESS", "put", "*", "w", "q", "a", "k", '{"x":"é"}', "0", "tags", '["t"]')

    assert '{"x":"é"}' in json.loads(client.ask("QLESS", "get", "*", "a"))["data"]


def test_scripts_are_remembered_over_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as first, first.connect() as client:
        client.ask("SCRIPT", "LOAD", G3)
        assert client.ask("EVAL", G2, "0", "length", "1", "q") == 0
    with serving(tmp_path / "data") as second, second.connect() as client:
        assert client.ask("EVALSHA", SHA_3, "0", "length", "1", "q") == 0
        assert client.ask("SCRIPT", "EXISTS", SHA_3, SHA_2) == [1, 1]


# --- the keys ------------------------------------------------------------------------------------


def test_the_keys_of_the_script_can_be_looked_into(client: RawClient) -> None:
    def ask(text: str) -> Any:
        return client.ask("QLESS", *text.split())

    ask('put 100 w q a k {"x":1} 0 priority 3 tags ["blue"]')
    ask("put 101 w q b k {} 1000")
    ask('put 102 w q c k {} 0 depends ["b"]')
    ask("put 103 w q d k {} 0")
    ask("recur 104 q r k {} interval 30 0")
    ask("pop 105 q w1 1")

    assert client.ask("ZCARD", "ql:q:q-locks") == 1
    assert client.ask("ZCARD", "ql:q:q-work") == 2  # d, and the first of the recurring one
    assert client.ask("ZCARD", "ql:q:q-scheduled") == 1
    assert client.ask("ZCARD", "ql:q:q-depends") == 1
    assert client.ask("ZCARD", "ql:q:nothing-work") == 0
    assert client.ask("ZSCORE", "ql:q:q-scheduled", "b") == b"1101"
    assert client.ask("ZSCORE", "ql:q:q-recur", "r") == b"134"
    assert client.ask("ZSCORE", "ql:q:q-recur", "x") is None
    assert client.ask("ZRANGE", "ql:t:blue", "0", "-1") == [b"a"]
    assert client.ask("ZRANGE", "ql:w:w1:jobs", "0", "-1", "WITHSCORES")[0] == b"a"
    assert sorted(client.ask("KEYS", "ql:j:?")) == [b"ql:j:a", b"ql:j:b", b"ql:j:c", b"ql:j:d"]
    assert client.ask("EXISTS", "ql:j:a", "ql:j:z", "ql:r:r") == 2
    kinds = {"ql:j:a": b"hash", "ql:queues": b"zset", "ql:nothing": b"none"}
    assert {key: client.ask("TYPE", key) for key in kinds} == kinds
    fields = client.ask("HGETALL", "ql:j:a")
    assert fields[fields.index(b"klass") + 1] == b"k"
    assert client.ask("DBSIZE") == len(client.ask("KEYS", "*"))


def test_a_score_is_a_double_in_protocol_3(client: RawClient) -> None:
    client.ask("QLESS", "recur", "100", "q", "r", "k", "{}", "interval", "30", "0")
    client.ask("HELLO", "3")

    client.says(command("ZSCORE", "ql:q:q-recur", "r"), b",100\r\n")
    client.says(command("ZSCORE", "ql:q:q-recur", "x"), b"_\r\n")


def test_failures_and_paused_queues_are_keys_too(client: RawClient) -> None:
    client.ask("QLESS", "put", "1", "w", "q", "a", "k", "{}", "0")
    client.ask("QLESS", "pop", "2", "q", "w", "1")
    client.ask("QLESS", "fail", "3", "a", "w", "broken", "it broke", "{}")
    client.ask("QLESS", "pause", "4", "q")

    assert client.ask("SMEMBERS", "ql:failures") == [b"broken"]
    assert client.ask("LRANGE", "ql:f:broken", "0", "-1") == [b"a"]
    assert client.ask("SMEMBERS", "ql:paused_queues") == [b"q"]
    client.ask("HELLO", "3")
    client.says(command("SMEMBERS", "ql:paused_queues"), b"~1\r\n$1\r\nq\r\n")
    assert {b"ql:failures", b"ql:f:broken", b"ql:paused_queues"} <= set(client.ask("KEYS", "*"))


def test_the_length_of_a_queue_as_the_ruby_client_reads_it(client: RawClient) -> None:
    client.ask("QLESS", "put", "*", "w", "q", "a", "k", "{}", "0")
    client.ask("MULTI")
    for part in ("locks", "work", "scheduled", "depends"):
        client.ask("ZCARD", f"ql:q:q-{part}")

    assert client.ask("EXEC") == [0, 1, 0, 0]


def test_a_range_that_is_no_number_is_refused(client: RawClient) -> None:
    assert str(client.ask("LRANGE", "ql:f:x", "a", "b")).startswith("ERR value is not an integer")
    assert str(client.ask("ZRANGE", "ql:queues", "0", "x")).startswith(
        "ERR value is not an integer"
    )


# --- erasing -------------------------------------------------------------------------------------


def test_a_virtual_key_has_one_kind(client: RawClient) -> None:
    client.ask("QLESS", "put", "1", "w", "q", "a", "k", "{}", "0")
    client.ask("QLESS", "pop", "1", "q", "w", "1")
    client.ask("QLESS", "fail", "1", "a", "w", "broken", "it broke")
    others = {
        "ql:j:a": "ZCARD",
        "ql:queues": "HGETALL",
        "ql:failures": "ZCARD",
        "ql:f:broken": "SMEMBERS",
    }

    for key, name in others.items():
        assert str(client.ask(name, key)).startswith("WRONGTYPE ")
    assert client.ask("ZCARD", "ql:j:nobody") == 0
    assert client.ask("HGETALL", "ql:q:nowhere-work") == []


def test_flushdb_erases_the_jobs_of_its_database_and_nothing_else(client: RawClient) -> None:
    client.ask("METRICS.DEFINE", '{"specs":{"m":{"sequences":[{"timeStep":1,"expiry":60}]}}}')
    client.ask("METRICS.INCR", '{"metric":"m"}')
    client.ask("JOBS.PUT", '{"queue":"q"}')
    client.ask("SELECT", "1")
    client.ask("JOBS.PUT", '{"queue":"q"}')
    client.ask("SELECT", "0")

    assert str(client.ask("FLUSHDB", "ASINC")) == "ERR syntax error"
    assert client.ask("DBSIZE") != 0
    assert client.ask("FLUSHDB", "ASYNC") == b"OK"
    client.says(command("KEYS", "*"), b"*0\r\n")
    assert json.loads(client.ask("METRICS.BUCKETS", "{}"))["buckets"]
    client.ask("SELECT", "1")
    assert client.ask("DBSIZE") > 0


def test_flushdb_is_refused_unless_allowed(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, server.connect() as client:
        client.ask("JOBS.PUT", '{"queue":"q"}')

        for name in ("FLUSHDB", "FLUSHALL"):
            refused = client.ask(name)
            assert isinstance(refused, hiredis.ReplyError)
            assert "--allow-flush" in str(refused)
        assert client.ask("DBSIZE") > 0


# --- events in order -----------------------------------------------------------------------------


def test_published_events_have_their_order_and_their_bytes(
    server: Server, client: RawClient, space: str
) -> None:
    with server.connect() as listener:
        listener.ask("SPACE", space)
        listener.ask("PSUBSCRIBE", "*")
        for text in (
            "put 0 w q a k {} 0",
            "track 1 track a",
            "pop 2 q w1 1",
            "put 3 w2 q a k {} 0",
            "pop 4 q w1 1",
            "complete 5 a w1 q {} next q2",
            "cancel 6 a",
            "config.set 7 heartbeat 30",
        ):
            client.ask("QLESS", *text.split())
        listener.send("PUNSUBSCRIBE")

        heard = []
        while (message := listener.receive())[0] == b"pmessage":
            heard.append((message[2].decode(), message[3].decode()))
    assert heard == [
        ("ql:log", '{"jid":"a","event":"put","queue":"q"}'),
        ("ql:track", "a"),
        ("ql:popped", "a"),
        ("ql:log", '{"jid":"a","event":"put","queue":"q"}'),
        ("ql:w:w1", '{"jid":"a","event":"lock_lost","worker":"w1"}'),
        ("ql:log", '{"jid":"a","event":"lock_lost","worker":"w1"}'),
        ("ql:put", "a"),
        ("ql:popped", "a"),
        ("ql:completed", "a"),
        ("ql:log", '{"jid":"a","to":"q2","event":"advanced","queue":"q"}'),
        ("ql:log", '{"jid":"a","queue":"q2","event":"canceled","worker":""}'),
        ("ql:canceled", "a"),
        ("ql:log", '{"option":"heartbeat","event":"config_set","value":"30"}'),
    ]


def test_redis_py_sees_a_pipeline_as_one_transaction(server: Server) -> None:
    with redis.Redis(port=server.resp_port, db=9) as client, client.pipeline() as pipeline:
        pipeline.execute_command("JOBS.PUT", '{"queue":"q","id":"a"}')
        pipeline.zcard("ql:q:q-work")
        pipeline.zscore("ql:q:q-work", "x")

        assert pipeline.execute()[:2] == [b'"a"', 1]


# --- what must not hold up others -----------------------------------------------------------------


def test_long_patterns_and_many_keys_are_refused_or_leave_the_loop(client: RawClient) -> None:
    long = "?" * 600_000

    for words in (["KEYS", "*" + long], ["CONFIG", "GET", long], ["PSUBSCRIBE", long]):
        assert isinstance(client.ask(*words), hiredis.ReplyError), words[0]
    assert isinstance(client.ask("CONFIG", "GET", *["save"] * 1_000), hiredis.ReplyError)
    assert isinstance(client.ask("PUBLISH", "c" * 10_000, "x"), hiredis.ReplyError)
    assert isinstance(client.ask("SUBSCRIBE", "ok", "c" * 10_000), hiredis.ReplyError)
    assert client.ask("PING") == b"PONG"  # nothing was subscribed
    assert client.ask("EXISTS", *["ql:queues", "none"] * 2_000) in (0, 2_000)
    assert client.ask("CONFIG", "GET", "sav?", "*only") == [b"save", b"", b"appendonly", b"yes"]


@pytest.mark.parametrize(
    ("ranks", "is_short"), [("0 0", True), ("-3 -1", True), ("0 -1", False), ("0 1000000", False)]
)
def test_a_range_that_may_be_long_leaves_the_loop(
    tmp_path: Path, ranks: str, is_short: bool
) -> None:
    with small_server(tmp_path) as server:
        session = RespSession(server.dispatcher, lambda reply: None)
        plan = plan_of(session, [b"ZRANGE", b"ql:q:q-work", *ranks.encode().split()])

    assert isinstance(plan, Read if is_short else Later)


def test_flushing_scripts_takes_them_from_no_one_else(tmp_path: Path) -> None:
    def add_users(engine: Engine) -> None:
        add_user(engine, "ann", "a", (Grant(role="write", space="ann"),))
        add_user(engine, "bob", "b", (Grant(role="admin", space="bob"),))
        add_user(engine, "root", "r", (Grant(role="admin"),))

    def enter(server: SmallServer, name: str) -> RawClient:
        client = server.connect()
        assert client.ask("AUTH", name, name[0]) == b"OK"
        assert client.ask("SPACE", name) == b"OK"
        return client

    with (
        small_server(tmp_path, add_users) as server,
        enter(server, "ann") as ann,
        enter(server, "bob") as bob,
        enter(server, "root") as root,
    ):
        assert ann.ask("SCRIPT", "LOAD", G3) == SHA_3.encode()
        assert bob.ask("SCRIPT", "EXISTS", SHA_3) == [1]
        assert bob.ask("SCRIPT", "FLUSH") == b"OK"

        assert bob.ask("SCRIPT", "EXISTS", SHA_3) == [0]
        assert str(bob.ask("EVALSHA", SHA_3, "0", "queues", "0")).startswith("NOSCRIPT")
        assert ann.ask("SCRIPT", "EXISTS", SHA_3) == [1]
        assert ann.ask("EVALSHA", SHA_3, "0", "queues", "0") == b"{}"
        assert bob.ask("SCRIPT", "LOAD", G3) == SHA_3.encode()
        assert bob.ask("SCRIPT", "EXISTS", SHA_3) == [1]

        assert root.ask("SCRIPT", "FLUSH") == b"OK"
        assert str(root.ask("EVALSHA", SHA_3, "0", "queues", "0")).startswith("NOSCRIPT")


def test_one_user_can_not_use_up_the_scripts_of_all(tmp_path: Path) -> None:
    def add_users(engine: Engine) -> None:
        add_user(engine, "ann", "a", (Grant(role="write"),))

    with small_server(tmp_path, add_users) as server:
        server.dispatcher.scripts.update({b"%d" % number: "G3" for number in range(MAX_SCRIPTS)})
        with server.connect() as client:
            assert client.ask("AUTH", "ann", "a") == b"OK"
            assert client.ask("SCRIPT", "LOAD", G3) == SHA_3.encode()
            assert client.ask("EVALSHA", SHA_3, "0", "queues", "0") == b"{}"
        assert len(server.dispatcher.scripts) == MAX_SCRIPTS
