"""Attacks with heads, cookies, forms and tiny packets, and with commands that never end.

Like those of `attacks.py`, of which this is a part: importing it adds them to the list.
"""

import json
import socket

from tests.campaign.attacks import MEGABYTE, Attacker, attack
from tests.server.running import command

_HOST = b"Host: localhost\r\n"
_FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


def _get(path: bytes, headers: bytes = b"") -> bytes:
    return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (path, _HOST, headers)


def _post(path: bytes, body: bytes, headers: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST %b HTTP/1.1\r\n%b%b%b\r\n%b" % (path, _HOST, headers, length, body)


@attack
def hostile_cookies(by: Attacker) -> None:
    """Each is as long as a head may be, and made of what a reader of cookies may read twice."""
    for text in (
        b'a="' + b"\\" * 60_000,
        b'a="' + b'\\"' * 30_000,
        b";" * 60_000,
        b"a=b;" * 15_000,
    ):
        for _ in range(by.times(20)):
            by.push(by.http(), _get(b"/ui/default/", b"Cookie: %b\r\n" % text))


@attack
def long_forms(by: Attacker) -> None:
    cookie = b"Cookie: holdfast_form=%b\r\n" % (b"a" * 40)
    for body in (b"x=" + b"%41" * 600_000, b"a=b&" * 400_000, b"x=" + b"\xff" * 2 * MEGABYTE):
        for _ in range(by.times(10)):
            by.push(by.http(), _post(b"/ui/-/theme", body, _FORM + cookie), wait=5)


@attack
def hostile_paths(by: Attacker) -> None:
    """Paths and parameters as long as they may be, below every kind of path."""
    for base in (b"/default/sys/table/t/", b"/default/flux/event/", b"/ui/default/", b"/"):
        for end in (b"a/" * 15_000, b"%2F" * 10_000, b"%ff" * 10_000, b"../" * 10_000):
            by.push(by.http(), _get(base + end) * by.times(20))
        by.push(by.http(), _get(base + b"x?" + b"next=%ff&" * 900) * by.times(20))
        by.push(by.http(), _get(base + b"x?cursor=" + b"%41" * 9_000) * by.times(20))


@attack
def packets_of_one_byte(by: Attacker) -> None:
    """Every byte is a packet, and the server is woken for each."""
    for _ in range(by.times(4)):
        for opened, data in (
            (by.resp(), command("ECHO", b"x" * 2_000) * 2),
            (by.resp(), b"PING " + b"x" * 4_000),
            (by.http(), _post(b"/default/jobs/length", json.dumps({"queue": "q"}).encode())),
            (by.http(), _get(b"/livez", b"X: %b\r\n" % (b"a" * 4_000))),
        ):
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(len(data)):
                by.push(opened, data[at : at + 1])


@attack
def requests_without_end(by: Attacker) -> None:
    """Commands and bodies of which a few bytes come, and then no more for now."""
    for _ in range(by.times(500)):
        by.push(by.resp(), b"*1000000\r\n$1\r\na\r\n")
        by.push(by.resp(), b"*2\r\n$4\r\nECHO\r\n$1000\r\nx")
        by.push(by.http(), b"POST /default/jobs/put HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        by.push(by.http(), b"GET /default/notices HTTP/1.1\r\n\r\n")


@attack
def schemas_again_and_again(by: Attacker) -> None:
    """Each schema replaces the one before it, and an event has it read."""
    for number in range(by.times(8)):
        handler = {"targets": ["[mark]"], "add": "value"}
        schema = {f"seen {number}.{each}": [handler] for each in range(by.times(5_000))}
        by.server.call("events.deploy", schema=schema)
        by.server.call("events.send", event={"name": "seen 0.1", "attributes": {"mark": "a"}})
    by.server.call("events.withdraw", name="default")


@attack
def large_words_of_strangers(by: Attacker) -> None:
    """Greetings and logins whose arguments are as large as a command may be."""
    large = b"x" * MEGABYTE
    for words in (("HELLO", "3", "SETNAME"), ("AUTH", "ann"), ("CLIENT", "SETINFO", "lib-name")):
        for _ in range(by.times(20)):
            by.push(by.resp(), command(*words, large), wait=2)


@attack
def metrics_of_many_parts(by: Attacker) -> None:
    """Records into many large sketches, hits of many buckets, and more quantiles than bins."""
    sequences = [{"timeStep": 10 + n, "expiry": 3_600, "name": f"s{n}"} for n in range(16)]
    spec = {"type": "distribution", "max_bins": 65_536, "relative_accuracy": 0.0001}
    by.server.call("metrics.define", specs={"many": {**spec, "sequences": sequences}})
    writes = [
        {"metric": "many", "op": "record", "value": 1.0003**n} for n in range(by.times(5_000))
    ]
    by.server.call("metrics.write", writes=writes)
    hits = [{"condition": "many", "entity": [n]} for n in range(by.times(2_000))]
    condition = {"many": {"limit": 1_000, "window": 10_000}}
    for call in ("try_incr", "peek"):
        by.server.call(
            f"metrics.{call}", operations=hits, conditions=condition, bucket_count=10_000
        )
    quantiles = [n / 50_000 for n in range(by.times(50_000))]
    by.server.call("metrics.distribution", metric="many", latest=60, quantiles=quantiles)
