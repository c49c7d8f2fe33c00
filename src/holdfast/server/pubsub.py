"""SUBSCRIBE and related commands: notices as messages on channels, or (NOTICES) as they are.

`PUBLISH` reaches subscribers on every server of the store: it leaves a notice.
"""

from collections.abc import Iterator
from typing import cast

from holdfast import wire
from holdfast.engine.contract import Notice
from holdfast.errors import RequestTooLarge
from holdfast.limits import MAX_CHANNEL_BYTES
from holdfast.server.commands import command, wrong_arguments
from holdfast.server.resp_session import SHORTER_NAME, Change, Plan, RespSession, Steps, Write
from holdfast.server.subscribers import PUBLISHED, Kind, layer_of


@command("SUBSCRIBE")
@command("PSUBSCRIBE")
def subscribe(session: RespSession, words: wire.Command) -> Plan:
    """`SUBSCRIBE channel...`, `PSUBSCRIBE pattern...`: each is confirmed by itself."""
    kind = cast(Kind, words[0].decode().lower())
    if len(words) < 2:
        return wrong_arguments(kind)

    def begin() -> Iterator[bytes]:
        session.refuse_too_many(kind, words[1:])
        for channel in words[1:]:
            session.subscribe(kind, channel)
            yield _confirmation(session, kind, wire.bulk(channel))

    return Steps(begin())


@command("UNSUBSCRIBE")
@command("PUNSUBSCRIBE")
def unsubscribe(session: RespSession, words: wire.Command) -> Plan:
    """`UNSUBSCRIBE [channel...]`, `PUNSUBSCRIBE [pattern...]`: those named, or all."""
    name = words[0].decode().lower()
    kind = cast(Kind, name.replace("un", "", 1))

    def end() -> Iterator[bytes]:
        channels = words[1:] or session.channels(kind)
        for channel in channels:
            session.unsubscribe(kind, channel)
            yield _confirmation(session, name, wire.bulk(channel))
        if not channels:
            yield _confirmation(session, name, wire.null(session.protocol))

    return Steps(end())


@command("NOTICES")
def notices(session: RespSession, words: wire.Command) -> Plan:
    """`NOTICES [topic]`: the notices of this space whose topics begin with `topic`, from now on.

    Each is sent as `notice`, its topic and its payload, like the notices of a store's subscription.
    """
    if len(words) > 2:
        return wrong_arguments("notices")
    topic = words[1] if len(words) == 2 else b""

    def begin() -> bytes:
        session.refuse_too_many("notices", [topic])
        session.listen(topic)
        return _confirmation(session, "notices", wire.bulk(topic))

    return Change(begin)


@command("PUBLISH")
def publish(session: RespSession, words: wire.Command) -> Plan:
    """`PUBLISH channel text`: returns the number of subscriptions on this server that get it."""
    if len(words) != 3:
        return wrong_arguments("publish")
    channel, space = words[1], session.space
    if len(channel) > MAX_CHANNEL_BYTES:
        raise RequestTooLarge(f"a channel may have {MAX_CHANNEL_BYTES} bytes", hint=SHORTER_NAME)
    session.who().require("write", space=space.name, layer=layer_of(channel))
    notice = Notice(PUBLISHED + wire.text_of(channel), words[2])
    count = session.dispatcher.subscribers.count

    def hearing(_: object) -> bytes:
        # Counted now: if this write created the space, those who waited for it get it, too.
        return wire.integer(count(space.prefix, channel))

    return Write(space, lambda tx: tx.publish(notice), hearing)


def _confirmation(session: RespSession, kind: str, channel: bytes) -> bytes:
    count = wire.integer(len(session.subscriptions))
    return wire.push([wire.bulk(kind.encode()), channel, count], session.protocol)
