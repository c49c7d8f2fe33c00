"""Configuration: the options, their defaults, and the operations on them.

All options of a space are in one record, so an operation reads one key for all of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.bounded_cache import BoundedCache
from holdfast.declarations import operation
from holdfast.error_text import nearest
from holdfast.errors import BadArgument
from holdfast.jobs.arguments import (
    check_name,
    check_tags,
    from_json,
    is_unicode,
    number_from,
    number_text,
    shortened,
    tag_text,
)
from holdfast.jobs.rates import QueueRate, rate_from
from holdfast.limits import MAX_JOB_HISTORY_ENTRIES, MAX_STATS_TAGS

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

Value = str | int | float

# `config_get` without a key shows exactly these, whether set or not.
SHOWN_DEFAULTS: Final[dict[str, Value]] = {
    "application": "qless",
    "grace-period": 10,
    "heartbeat": 60,
    "histogram-history": 7,
    "jobs-history": 604800,
    "jobs-history-count": 50000,
    "stats-history": 30,
}
MAX_WORKER_AGE: Final = "max-worker-age"
MAX_JOB_HISTORY: Final = "max-job-history"
RESULT_TTL: Final = "result-ttl"
STATS_TAGS: Final = "stats-tags"
_OTHER_NUMBERS: Final = {MAX_WORKER_AGE: 86400, MAX_JOB_HISTORY: 100, RESULT_TTL: 0}
_QUEUE_NUMBERS: Final = ("-heartbeat", "-max-concurrency")
_RATE: Final = "-rate"
_KEY_RATE: Final = "-rate-per-key"
_DEAD_LETTER: Final = "-dead-letter"
_QUEUE_OPTIONS: Final = (*_QUEUE_NUMBERS, _RATE, _KEY_RATE, _DEAD_LETTER)


def refuse_unknown(option: str) -> None:
    """Raises for an option that does not exist, and suggests the nearest one that does."""
    ours = [*SHOWN_DEFAULTS, *_OTHER_NUMBERS, STATS_TAGS]
    if not isinstance(option, str) or option in ours or _queue_of(option):
        return
    near = nearest(option, ours)
    for ending in _QUEUE_OPTIONS:  # a queue's name may hold dashes, and so do the endings
        queue, *rest = option.rsplit("-", ending.count("-"))
        if queue and nearest("-".join(["", *rest]), [ending]) is not None:
            near = f"{queue}{ending}"
    asked = "" if near is None else f", did you mean {near!r}?"
    raise BadArgument(
        f"unknown option {option!r}{asked}",
        hint="" if near else f"Options are {', '.join(ours)}, and <queue>{_queue_option_names()}.",
    )


def _queue_option_names() -> str:
    return ", <queue>".join(_QUEUE_OPTIONS)


def _queue_of(option: str) -> str:
    """Returns the queue of an option, "" for an option of all queues."""
    for ending in _QUEUE_OPTIONS:
        if option.endswith(ending) and len(option) > len(ending):
            return option.removesuffix(ending)
    return ""


def _check_value(option: str, value: str) -> None:
    """Refuses a value that the option can't have."""
    is_number = option in _OTHER_NUMBERS or (option in SHOWN_DEFAULTS and option != "application")
    if (is_number or option.endswith(_QUEUE_NUMBERS)) and number_from(value) is None:
        raise BadArgument.named("value", f"must be a number, not {shortened(value)}")
    if not is_unicode(value):
        raise BadArgument.named("value", "is not valid UTF-8")
    if option == STATS_TAGS:
        tags_from(value)
    if option.endswith((_RATE, _KEY_RATE)):
        rate_from(value)
    if option.endswith(_DEAD_LETTER) and check_name(value, "value") == _queue_of(option):
        raise BadArgument.named("value", f"must be another queue than {value}")


def tags_from(text: str) -> frozenset[str]:
    """Reads a list of tags: separated by commas, or as a JSON array.

    >>> sorted(tags_from("vip, eu")), sorted(tags_from('["a,b", 7]'))
    (['eu', 'vip'], ['7', 'a,b'])
    """
    given: list[str] | list[Any] = [part.strip() for part in text.split(",")]
    if text.lstrip().startswith("["):
        try:
            given = from_json(text)
        except msgspec.DecodeError:
            raise BadArgument.named("value", f"is not JSON: {shortened(text)}") from None
    tags = [tag_text(tag) for tag in check_tags([tag for tag in given if tag != ""])]
    if len(tags) > MAX_STATS_TAGS:
        raise BadArgument.named("value", f"has {len(tags)} tags, at most {MAX_STATS_TAGS} fit")
    return frozenset(tags)


class JobSettings:
    """The options of one space, cached by their stored bytes."""

    __slots__ = (
        "given",
        "grace_period",
        "heartbeat",
        "histogram_days",
        "history_length",
        "jobs_history",
        "jobs_history_count",
        "result_ttl",
        "statistics_days",
        "stats_tags",
        "worker_age",
    )

    def __init__(self, given: dict[str, str]) -> None:
        self.given = given
        self.heartbeat = self._number("heartbeat")
        self.grace_period = self._number("grace-period")
        self.jobs_history = self._number("jobs-history")
        self.jobs_history_count = self._number("jobs-history-count")
        self.histogram_days = self._number("histogram-history")
        self.statistics_days = self._number("stats-history")
        self.worker_age = self._number(MAX_WORKER_AGE)
        length = int(self._number(MAX_JOB_HISTORY))
        self.history_length = (
            length if 0 < length < MAX_JOB_HISTORY_ENTRIES else MAX_JOB_HISTORY_ENTRIES
        )
        self.result_ttl = self._number(RESULT_TTL)
        self.stats_tags = _read_tags(given.get(STATS_TAGS, ""))

    def _number(self, option: str) -> float:
        text = self.given.get(option)
        if text is not None:
            return number_from(text) or 0.0
        return float(SHOWN_DEFAULTS.get(option, _OTHER_NUMBERS.get(option, 0)))

    def heartbeat_of(self, queue: str) -> float:
        """Returns how many seconds a lock of `queue` lasts."""
        own = self.given.get(f"{queue}-heartbeat") if self.given else None
        return self.heartbeat if own is None else number_from(own) or 0.0

    def concurrency_of(self, queue: str) -> int:
        """Returns how many jobs of `queue` may run at once; 0 is no limit."""
        own = self.given.get(f"{queue}-max-concurrency") if self.given else None
        return 0 if own is None else int(number_from(own) or 0)

    def rate_of(self, queue: str) -> QueueRate | None:
        """Returns how many jobs of `queue` may start in a time; None is no limit."""
        own = self.given.get(f"{queue}{_RATE}")
        return None if own is None else _read_rate(own)

    def key_rate_of(self, queue: str) -> QueueRate | None:
        """Returns the rate of each key of `queue`; None is no limit."""
        own = self.given.get(f"{queue}{_KEY_RATE}")
        return None if own is None else _read_rate(own)

    def dead_letter_of(self, queue: str) -> str | None:
        """Returns the queue that jobs of `queue` go to when they would fail."""
        return self.given.get(f"{queue}{_DEAD_LETTER}") or None


def _read_tags(text: str) -> frozenset[str]:
    """Returns the tags that were set; none for a text that an older version accepted."""
    try:
        return tags_from(text)
    except BadArgument:
        return frozenset()


DEFAULTS: Final = JobSettings({})


def _rate(text: str) -> QueueRate | None:
    """Returns a rate that was set; None for a text that an older version accepted."""
    try:
        return rate_from(text)
    except BadArgument:
        return None


_read_rate: Final[Callable[[str], QueueRate | None]] = BoundedCache(_rate, entries=256).__getitem__


def _settings(value: bytes) -> JobSettings:
    return JobSettings(msgspec.msgpack.decode(value, type=dict[str, str]))


settings_from: Final[Callable[[bytes], JobSettings]] = BoundedCache(
    _settings, entries=256
).__getitem__


# --- operations -------------------------------------------------------------------------------


def get_option(ledger: "Ledger", option: str) -> Value | None:
    """Returns the string that was set, else the default as a number, else None."""
    given = ledger.settings().given.get(option)
    return SHOWN_DEFAULTS.get(option) if given is None else given


def all_options(ledger: "Ledger") -> dict[str, Value]:
    return {**SHOWN_DEFAULTS, **ledger.settings().given}


def set_option(ledger: "Ledger", option: str, value: str) -> None:
    check_name(option, "option")
    _check_value(option, value)
    ledger.save_settings({**ledger.settings().given, option: value})
    ledger.log({"option": option, "event": "config_set", "value": value})
    ledger.announce_ready_everywhere()


def unset_option(ledger: "Ledger", option: str) -> None:
    check_name(option, "option")
    given = dict(ledger.settings().given)
    given.pop(option, None)
    ledger.save_settings(given)
    ledger.log({"event": "config_unset", "option": option})
    ledger.announce_ready_everywhere()


class SettingsOperations:
    """Operations on the configuration."""

    _ledger: "Ledger"

    @operation(reads=True)
    def config_get(self, option: str) -> Value | None:
        """Returns the value of an option as it was set, else its default or None. Reads 1 key."""
        return get_option(self._ledger, option)

    @operation(reads=True)
    def config(self) -> dict[str, Value]:
        """Returns the values of all options of Qless, and of others that were set. Reads 1 key."""
        return all_options(self._ledger)

    @operation()
    def config_set(self, option: str, value: Value) -> None:
        """Sets an option of one queue or of all; raises for an option that does not exist.

        A queue `emails` has the options `emails-heartbeat`, `emails-max-concurrency`, `emails-rate`
        (`100/60`: 100 jobs in any 60 seconds), `emails-rate-per-key` and `emails-dead-letter`.
        Reads 1 key, writes 1.
        """
        refuse_unknown(option)
        set_option(self._ledger, option, value if isinstance(value, str) else number_text(value))

    @operation()
    def config_unset(self, option: str) -> None:
        """Resets an option to its default. Reads 1 key, writes 1."""
        unset_option(self._ledger, option)
