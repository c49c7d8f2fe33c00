"""Serves Qless clients, which load their script, call it by its hash, and subscribe to channels.

No Lua runs here. A script is recognised by its content, its hash is stored with its dialect, and a
call of it is a command of `holdfast.compat.qless`.

All users of a store share the remembered hashes, since a hash means the same dialect for everyone.
`SCRIPT FLUSH` therefore affects its own connection only, unless its user may administer the jobs of
all spaces. Beyond `MAX_SCRIPTS`, only the connection that loads a script remembers it.

Where scripts live, in the directory of the store (space 0):

(0, "script", sha)    -> dialect    "G2" or "G3"
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from hashlib import sha1
from typing import Any, Final

from holdfast import wire
from holdfast.compat import qless
from holdfast.compat.qless.dialects import dialect_of
from holdfast.compat.qless.error_texts import as_qless_error
from holdfast.engine.contract import Transaction
from holdfast.errors import BadArgument, HoldfastError
from holdfast.keys import pack, prefix_range
from holdfast.limits import MAX_SCRIPTS, MAX_SESSION_SCRIPTS
from holdfast.server.auth import Recheck
from holdfast.server.blocking_calls import first_jobs, wait_until_ended
from holdfast.server.commands import command, wrong_arguments
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.resp_session import Later, Plan, RespSession, Write
from holdfast.store import Space, Tx

NO_SCRIPT: Final = wire.error("NOSCRIPT No matching script. Please use EVAL.")
NOT_OURS: Final = wire.error(
    "ERR this server runs the queue script only; other Lua is not supported"
)
_FORK: Final = wire.error("ERR this is the script of the fork reqless, not that of qless")
# The names of commands in traces; unknown commands have none.
_NAMES: Final = {name: f"qless.{name}" for name in (*qless.COMMANDS, "bpop")}
_LARGEST: Final = 2**63 - 1  # the largest integer of the protocol; a priority may be larger


# --- scripts -------------------------------------------------------------------------------------


@command("SCRIPT")
def script(session: RespSession, words: wire.Command) -> Plan:
    """`SCRIPT LOAD body`, `SCRIPT EXISTS sha...`, `SCRIPT FLUSH`."""
    _require_jobs(session)
    match [word.upper() for word in words[1:2]]:
        case [b"LOAD"] if len(words) == 3:
            return _load(session, words[2])
        case [b"EXISTS"]:
            known = (_dialect(session, sha.lower()) is not None for sha in words[2:])
            return wire.array(map(wire.integer, known))
        case [b"FLUSH"]:
            return _flush(session)
    return wire.error("ERR Unknown SCRIPT subcommand. Try LOAD, EXISTS, FLUSH.")


def _require_jobs(session: RespSession) -> None:
    """Raises unless this client may write to the jobs of its space."""
    session.who().require("write", space=session.space.name, layer="jobs")


def _load(session: RespSession, body: bytes) -> Plan:
    dialect = dialect_of(body)
    if dialect is None:
        return _refusal(body)
    sha = sha1(body).hexdigest().encode()

    if _dialect(session, sha) is not None:
        return wire.bulk(sha)
    scripts = session.dispatcher.scripts
    _keep_for_session(session, sha, dialect)
    if sha in scripts or len(scripts) >= MAX_SCRIPTS:
        return wire.bulk(sha)

    def remembered(_: object) -> bytes:
        scripts[sha] = dialect
        return wire.bulk(sha)

    return Later(
        lambda: session.dispatcher.transact_directory(partial(_remember, sha, dialect)), remembered
    )


def _dialect(session: RespSession, sha: bytes) -> qless.Dialect | None:
    """Returns the dialect of a script that this connection, or anyone else, has loaded."""
    own = session.scripts.get(sha)
    if own is not None or session.has_flushed_scripts:
        return own
    return session.dispatcher.scripts.get(sha)


def _keep_for_session(session: RespSession, sha: bytes, dialect: qless.Dialect) -> None:
    if len(session.scripts) >= MAX_SESSION_SCRIPTS:
        session.scripts.pop(next(iter(session.scripts)))
    session.scripts[sha] = dialect


def _remember(sha: bytes, dialect: qless.Dialect, tx: Transaction) -> None:
    tx.put(pack(0, "script", sha), dialect.encode())


def _flush(session: RespSession) -> Plan:
    if not session.who().may("admin", space="*", layer="jobs"):
        session.flush_scripts()
        return wire.OK

    def forget(tx: Transaction) -> None:
        tx.clear(*prefix_range(pack(0, "script")))

    def forgotten(_: object) -> bytes:
        session.dispatcher.scripts.clear()
        session.scripts.clear()
        return wire.OK

    return Later(lambda: session.dispatcher.transact_directory(forget), forgotten)


@command("EVAL")
def eval_(session: RespSession, words: wire.Command) -> Plan:
    if len(words) < 3:
        return wrong_arguments("eval")
    dialect = dialect_of(words[1])
    if dialect is None:
        return _refusal(words[1])
    sha = sha1(words[1]).hexdigest().encode()
    plan = _call(session, dialect, sha, words[2:])
    if _dialect(session, sha) is None:
        _keep_for_session(session, sha, dialect)
    scripts = session.dispatcher.scripts
    if sha in scripts or len(scripts) >= MAX_SCRIPTS:
        return plan
    # As in Redis, EVALSHA may follow.
    scripts[sha] = dialect
    if not isinstance(plan, Write) or session.batch is not None:
        return plan
    return _and_remember(session, sha, dialect, plan)


def _and_remember(session: RespSession, sha: bytes, dialect: qless.Dialect, plan: Write) -> Plan:
    """Stores the script for later restarts, and then runs the plan."""
    dispatcher = session.dispatcher

    async def run() -> Any:
        await dispatcher.transact_directory(partial(_remember, sha, dialect))
        return await dispatcher.write(plan.space, plan.work)

    return Later(lambda: asyncio.ensure_future(run()), plan.encode, plan.fail, plan.traced)


def _refusal(body: bytes) -> bytes:
    return _FORK if b"ReqlessAPI" in body else NOT_OURS


@command("EVALSHA")
def evalsha(session: RespSession, words: wire.Command) -> Plan:
    if len(words) < 3:
        return wrong_arguments("evalsha")
    sha = words[1].lower()
    dialect = _dialect(session, sha)
    return NO_SCRIPT if dialect is None else _call(session, dialect, sha, words[2:])


@command("QLESS")
def native(session: RespSession, words: wire.Command) -> Plan:
    """`QLESS command now arguments...`: the same without a script; `*` is the server's time."""
    return _plan_command(session, words[1:], "G3", "ERR ")


@command("QLESS1")
def version_1(session: RespSession, words: wire.Command) -> Plan:
    """`QLESS1 Name numkeys [keys] [arguments]`: the calls of version 1 of Qless."""
    texts = list(map(wire.text_of, words[1:]))
    return _plan(session, lambda tx: qless.call_v1(tx, texts), "ERR ", "qless1")


def _call(session: RespSession, dialect: qless.Dialect, sha: bytes, words: wire.Command) -> Plan:
    prefix = f"ERR Error running script (call to f_{sha.decode()}): @user_script:1: user_script:1: "
    if words[0] != b"0":
        return wire.error(f"{prefix}No Keys should be provided")
    return _plan_command(session, words[1:], dialect, prefix)


def _plan_command(
    session: RespSession, words: wire.Command, dialect: qless.Dialect, prefix: str
) -> Plan:
    texts = list(map(wire.text_of, words))
    name = _NAMES.get(texts[0], "qless") if texts else "qless"
    dispatcher, space = session.dispatcher, session.space
    recheck = partial(_require_jobs, session)
    try:
        if texts[:1] == ["bpop"]:
            asked = qless.blocking_pop(texts)
            return _plan_wait(
                session, lambda: _pop_wait(dispatcher, space, asked, recheck), prefix, name
            )
        if texts[:1] == ["result"] and len(texts) > 3:
            jid, seconds = qless.awaited_result(texts)
            return _plan_wait(
                session,
                lambda: _result_wait(dispatcher, space, jid, seconds, recheck),
                prefix,
                name,
            )
    except BadArgument as error:
        return wire.error(f"{prefix}{error.message}")
    return _plan(session, lambda tx: qless.call(tx, texts, dialect), prefix, name)


def _plan_wait(
    session: RespSession,
    wait: Callable[[], Coroutine[Any, Any, qless.Reply]],
    prefix: str,
    name: str,
) -> Plan:
    """Plans a command that waits without holding a transaction."""
    _require_jobs(session)
    protocol = session.protocol
    later = Later(
        lambda: asyncio.ensure_future(wait()),
        lambda reply: _reply(reply, protocol),
        lambda error: wire.error(f"{prefix}{as_qless_error(error, 'result').message}"),
    )
    return session.traced_unless_batched(name, later)


async def _result_wait(
    dispatcher: Dispatcher, space: Space, jid: str, seconds: float, recheck: Recheck
) -> qless.Reply:
    await wait_until_ended(dispatcher, space, jid, seconds, recheck)
    reply: qless.Reply = await dispatcher.write(
        space, lambda tx: qless.call(tx.raw, ["result", "*", jid])
    )
    return reply


async def _pop_wait(
    dispatcher: Dispatcher, space: Space, asked: qless.BlockingPop, recheck: Recheck
) -> qless.Reply:
    # The first round uses exactly the caller's time, later ones a correspondingly later time.
    with space.view() as view:
        ahead = 0.0 if asked.now is None else asked.now - view.now
    first_round = iter(asked.queues)

    def pop(queue: str) -> Callable[[Tx], qless.Reply]:
        now = None if next(first_round, None) is None else asked.now
        return partial(_pop, asked, queue, now, ahead)

    found = await first_jobs(dispatcher, space, asked.queues, pop, asked.timeout, recheck, ahead)
    return found or qless.NOTHING


def _pop(
    asked: qless.BlockingPop, queue: str, now: float | None, ahead: float, tx: Tx
) -> qless.Reply:
    time = repr(tx.now + ahead if now is None else now)
    reply = qless.call(tx.raw, ["pop", time, queue, asked.worker, str(asked.count)])
    return None if reply == qless.NOTHING else reply


def _plan(
    session: RespSession, work: Callable[[Transaction], qless.Reply], prefix: str, name: str
) -> Plan:
    """Plans one queue command as one transaction: even commands that read may move jobs."""
    _require_jobs(session)
    protocol = session.protocol

    def failed(error: HoldfastError) -> bytes:
        return wire.error(f"{prefix}{error.message}")

    write = Write(session.space, lambda tx: work(tx.raw), lambda r: _reply(r, protocol), failed)
    return session.traced_unless_batched(name, write)


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
