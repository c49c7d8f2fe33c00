"""Qless clients, unchanged: they load their script, call it by its hash, and listen.

There is no Lua here. A script is recognised by what it says, its hash is remembered together with
the dialect that it speaks, and a call of it is a command of `holdfast.jobs.qless`.

Where scripts live, in the directory of the store (space 0):

(0, "script", sha)    -> dialect    "G2" or "G3"
"""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from hashlib import sha1
from typing import Final

from holdfast import wire
from holdfast.engine.contract import Transaction
from holdfast.errors import HoldfastError
from holdfast.jobs import qless
from holdfast.keys import pack, prefix_range
from holdfast.limits import MAX_SCRIPTS
from holdfast.server.commands import command, wrong_arguments
from holdfast.server.session import Later, Plan, Session, Write
from holdfast.server.waiting import first_jobs
from holdfast.store import Tx

NO_SCRIPT: Final = wire.error("NOSCRIPT No matching script. Please use EVAL.")
NOT_OURS: Final = wire.error(
    "ERR this server runs the queue script only; other Lua is not supported"
)
_FORK: Final = wire.error("ERR this is the script of the fork reqless, not that of qless")
_LARGEST: Final = 2**63 - 1  # integer that the protocol has; a priority may be greater
_PUT: Final = re.compile(rb"QlessAPI\.put\s*=?\s*(?:function)?\s*\(\s*now\s*,\s*(me|queue)\b")


def dialect_of(body: bytes) -> qless.Dialect | None:
    """Which dialect a script speaks, by the arguments of its `put`; None if it is another script.

    >>> dialect_of(b"function QlessAPI.put(now, me, queue, jid, klass) end")
    'G3'
    """
    found = _PUT.search(body)
    if found is None:
        return None
    return "G3" if found[1] == b"me" else "G2"


# --- scripts -------------------------------------------------------------------------------------


@command("SCRIPT")
def script(session: Session, words: wire.Command) -> Plan:
    """`SCRIPT LOAD body`, `SCRIPT EXISTS sha...`, `SCRIPT FLUSH`."""
    session.who().require("write", space=session.space.name, layer="jobs")
    match [word.upper() for word in words[1:2]]:
        case [b"LOAD"] if len(words) == 3:
            return _load(session, words[2])
        case [b"EXISTS"]:
            known = session.execution.scripts
            return wire.array(wire.integer(sha.lower() in known) for sha in words[2:])
        case [b"FLUSH"]:
            return _flush(session)
    return wire.error("ERR Unknown SCRIPT subcommand. Try LOAD, EXISTS, FLUSH.")


def _load(session: Session, body: bytes) -> Plan:
    dialect = dialect_of(body)
    if dialect is None:
        return _refusal(body)
    sha = sha1(body).hexdigest().encode()

    def remember(tx: Transaction) -> None:
        tx.put(pack(0, "script", sha), dialect.encode())

    def remembered(_: object) -> bytes:
        session.execution.scripts[sha] = dialect
        return wire.bulk(sha)

    if sha in session.execution.scripts:
        return wire.bulk(sha)
    if len(session.execution.scripts) >= MAX_SCRIPTS:
        return wire.error(f"ERR {MAX_SCRIPTS} scripts are loaded; SCRIPT FLUSH forgets them")
    return Later(lambda: session.execution.in_directory(remember), remembered)


def _flush(session: Session) -> Plan:
    def forget(tx: Transaction) -> None:
        tx.clear(*prefix_range(pack(0, "script")))

    def forgotten(_: object) -> bytes:
        session.execution.scripts.clear()
        return wire.OK

    return Later(lambda: session.execution.in_directory(forget), forgotten)


@command("EVAL")
def eval_(session: Session, words: wire.Command) -> Plan:
    if len(words) < 3:
        return wrong_arguments("eval")
    dialect = dialect_of(words[1])
    if dialect is None:
        return _refusal(words[1])
    sha = sha1(words[1]).hexdigest().encode()
    if len(session.execution.scripts) < MAX_SCRIPTS:
        # As in Redis, EVALSHA may follow; who sends the text each time needs it no longer.
        session.execution.scripts[sha] = dialect
    return _call(session, dialect, sha, words[2:])


def _refusal(body: bytes) -> bytes:
    return _FORK if b"ReqlessAPI" in body else NOT_OURS


@command("EVALSHA")
def evalsha(session: Session, words: wire.Command) -> Plan:
    if len(words) < 3:
        return wrong_arguments("evalsha")
    sha = words[1].lower()
    dialect = session.execution.scripts.get(sha)
    return NO_SCRIPT if dialect is None else _call(session, dialect, sha, words[2:])


@command("QLESS")
def native(session: Session, words: wire.Command) -> Plan:
    """`QLESS command now arguments...`: the same without a script; `*` is the server's time."""
    return _plan_command(session, words[1:], "G3", "ERR ")


@command("QLESS1")
def first(session: Session, words: wire.Command) -> Plan:
    """`QLESS1 Name numkeys [keys] [arguments]`: the seed's own calls."""
    return _plan(
        session, lambda tx: qless.call_first(tx, list(map(wire.text_of, words[1:]))), "ERR "
    )


def _call(session: Session, dialect: qless.Dialect, sha: bytes, words: wire.Command) -> Plan:
    prefix = f"ERR Error running script (call to f_{sha.decode()}): @user_script:1: user_script:1: "
    if words[0] != b"0":
        return wire.error(f"{prefix}No Keys should be provided")
    return _plan_command(session, words[1:], dialect, prefix)


def _plan_command(
    session: Session, words: wire.Command, dialect: qless.Dialect, prefix: str
) -> Plan:
    texts = list(map(wire.text_of, words))
    if texts[:1] == ["bpop"]:
        return _plan_wait(session, texts, prefix)
    return _plan(session, lambda tx: qless.call(tx, texts, dialect), prefix)


def _plan_wait(session: Session, words: list[str], prefix: str) -> Plan:
    """A pop that waits, and holds no transaction meanwhile."""
    session.who().require("write", space=session.space.name, layer="jobs")
    protocol, space, execution = session.protocol, session.space, session.execution

    def failed(error: HoldfastError) -> bytes:
        return wire.error(f"{prefix}{error.message}")

    async def wait(asked: qless.BlockingPop) -> qless.Reply:
        # The first round is at the very time that the caller gave, later ones as much later.
        with space.view() as view:
            ahead = 0.0 if asked.now is None else asked.now - view.now
        first_round = iter(asked.queues)

        def pop(queue: str) -> Callable[[Tx], qless.Reply]:
            now = None if next(first_round, None) is None else asked.now
            return partial(_pop, asked, queue, now, ahead)

        found = await first_jobs(execution, space, asked.queues, pop, asked.timeout, ahead)
        return found or qless.NOTHING

    try:
        asked = qless.blocking_pop(words)
    except HoldfastError as error:
        return failed(error)
    return Later(
        lambda: asyncio.ensure_future(wait(asked)), lambda reply: _reply(reply, protocol), failed
    )


def _pop(
    asked: qless.BlockingPop, queue: str, now: float | None, ahead: float, tx: Tx
) -> qless.Reply:
    time = repr(tx.now + ahead if now is None else now)
    reply = qless.call(tx.raw, ["pop", time, queue, asked.worker, str(asked.count)])
    return None if reply == qless.NOTHING else reply


def _plan(session: Session, work: Callable[[Transaction], qless.Reply], prefix: str) -> Plan:
    """One command of the queue, which is one transaction: even those that look may move jobs."""
    session.who().require("write", space=session.space.name, layer="jobs")
    protocol = session.protocol

    def failed(error: HoldfastError) -> bytes:
        return wire.error(f"{prefix}{error.message}")

    return Write(session.space, lambda tx: work(tx.raw), lambda r: _reply(r, protocol), failed)


def _reply(reply: qless.Reply, protocol: int) -> bytes:
    match reply:
        case None:
            return wire.null(protocol)
        case str():
            return wire.bulk(wire.bytes_of(reply))
        case list():
            return wire.array(wire.bulk(wire.bytes_of(each)) for each in reply)
        case _:
            return wire.integer(max(-_LARGEST - 1, min(_LARGEST, reply)))
