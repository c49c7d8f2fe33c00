"""Subscribers of channels, who get the notices of commits as messages.

A notice's channel is its topic or, for what the qless script publishes, that script's own channel.
Subscribers get messages of the space that they were in when they subscribed, and only of layers
that they may read.
"""

from collections.abc import Callable, Iterator
from typing import Final, Literal, Protocol

from holdfast import wire
from holdfast.compat.qless import channel as qless_channel
from holdfast.engine.contract import Notice
from holdfast.server.globs import Glob, compile_glob
from holdfast.server.notice_feed import NoticeFeed

Kind = Literal["subscribe", "psubscribe", "notices"]

PUBLISHED: Final = "pubsub."  # the topic prefix of messages that clients publish
QLESS: Final = b"ql:"  # the channels of the job queue


class Subscriber(Protocol):
    """A client with subscriptions."""

    @property
    def protocol(self) -> int: ...
    @property
    def send(self) -> Callable[[bytes], None]: ...
    def may_receive(self, space: str, layer: str) -> bool: ...


class SpaceSubscriptions:
    """A client among the listeners of a space, with all of its subscriptions there.

    A subscription has no object of its own: the garbage collector would take longer for 200,000 of
    them than the loop may.
    """

    __slots__ = ("prefix", "space", "subscriber")

    def __init__(self, subscriber: Subscriber, space: str, prefix: bytes) -> None:
        self.subscriber = subscriber
        self.space = space
        self.prefix = prefix


class _Listeners(dict[SpaceSubscriptions, None]):
    """The listeners of a channel or a pattern, in order of arrival."""

    __slots__ = ("glob",)

    def __init__(self, glob: Glob | None) -> None:
        self.glob = glob  # of a pattern


_ListenersByChannel = dict[bytes, _Listeners]  # by channel or pattern


class Subscribers:
    """All subscriptions of a server."""

    def __init__(self, notice_feed: NoticeFeed) -> None:
        self._channels: dict[bytes, _ListenersByChannel] = {}  # by space
        self._patterns: dict[bytes, _ListenersByChannel] = {}
        self._notice_feed = notice_feed
        self._end: Callable[[], None] | None = (
            None  # stops listening; set while there are subscriptions
        )

    def join(self, listener: SpaceSubscriptions, kind: Kind, channel: bytes) -> None:
        """Adds a subscription to a channel or a pattern."""
        by_channel = self._subscriptions_of(kind).setdefault(listener.prefix, {})
        if (listeners := by_channel.get(channel)) is None:
            listeners = by_channel[channel] = _Listeners(
                compile_glob(channel) if kind == "psubscribe" else None
            )
        listeners[listener] = None
        if self._end is None:
            self._end = self._notice_feed.listen(self._on_notice)

    def leave(self, listener: SpaceSubscriptions, kind: Kind, channel: bytes) -> None:
        """Removes a subscription."""
        by_space = self._subscriptions_of(kind)
        by_channel = by_space[listener.prefix]
        del by_channel[channel][listener]
        if not by_channel[channel]:
            del by_channel[channel]
        if not by_channel:
            del by_space[listener.prefix]
        if self._end is not None and not self._channels and not self._patterns:
            self._end()
            self._end = None

    def _subscriptions_of(self, kind: Kind) -> dict[bytes, _ListenersByChannel]:
        return self._channels if kind == "subscribe" else self._patterns

    def count(self, prefix: bytes, channel: bytes) -> int:
        """Returns the number of subscriptions of a channel."""
        patterns = self._patterns.get(prefix, {})
        return len(self._channels.get(prefix, {}).get(channel, ())) + sum(
            len(listeners) for listeners in patterns.values() if _matches(listeners, channel)
        )

    def _on_notice(self, notice: Notice) -> Iterator[None] | None:
        channels = self._channels.get(notice.space)
        patterns = self._patterns.get(notice.space)
        if not channels and not patterns:
            return None
        return self._send_all(notice, channels or {}, patterns or {})

    def _send_all(
        self, notice: Notice, channels: _ListenersByChannel, patterns: _ListenersByChannel
    ) -> Iterator[None]:
        channel = channel_of(notice)
        if channel is None:
            return
        layer = layer_of(channel, notice.topic)
        rest = [wire.bulk(channel), wire.bulk(notice.payload)]
        if channel in channels:
            yield from _send(channels[channel], layer, [wire.bulk(b"message"), *rest])
        for pattern, listeners in list(patterns.items()):
            if listeners and _matches(listeners, channel):
                frame = [wire.bulk(b"pmessage"), wire.bulk(pattern), *rest]
                yield from _send(listeners, layer, frame)
            yield


def _matches(listeners: _Listeners, channel: bytes) -> bool:
    """Returns whether the pattern of a row matches a channel."""
    return listeners.glob is not None and listeners.glob.fullmatch(channel)


def _send(listeners: _Listeners, layer: str, frame: list[bytes]) -> Iterator[None]:
    written: dict[int, bytes] = {}  # by protocol: all listeners share one message
    for listener in list(listeners):
        subscriber = listener.subscriber
        # Some may have left since the first ones got it.
        if listener in listeners and subscriber.may_receive(listener.space, layer):
            protocol = subscriber.protocol
            if protocol not in written:
                written[protocol] = wire.push(frame, protocol)
            subscriber.send(written[protocol])
        yield


def channel_of(notice: Notice) -> bytes | None:
    """Returns the channel of a notice; of the job queue's notices, only those that qless has."""
    topic = notice.topic
    if topic.startswith(PUBLISHED):
        return wire.bytes_of(topic.removeprefix(PUBLISHED))
    channel = qless_channel(topic) if topic.startswith("jobs.") else topic
    return None if channel is None else wire.bytes_of(channel)


def layer_of(channel: bytes, topic: str = PUBLISHED) -> str:
    """Returns the layer that a client must be able to read in order to listen to a channel, or to
    write in order to publish on it."""
    return "jobs" if channel.startswith(QLESS) else topic.replace(":", ".").partition(".")[0]
