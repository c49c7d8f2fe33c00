"""Configuration: defaults, what was set, what is refused."""

import pytest

from holdfast.errors import BadArgument
from holdfast.store import Store
from tests.jobs.conftest import Qless

DEFAULTS = {
    "application": "qless",
    "heartbeat": 60,
    "grace-period": 10,
    "stats-history": 30,
    "histogram-history": 7,
    "jobs-history-count": 50000,
    "jobs-history": 604800,
}


def test_exactly_the_seven_defaults_are_shown(qless: Qless) -> None:
    assert qless("config.get", 0) == DEFAULTS


def test_defaults_are_numbers_and_what_was_set_is_text(qless: Qless) -> None:
    assert qless("config.get", 0, "heartbeat") == 60
    assert qless("config.get", 0, "application") == "qless"

    assert qless("config.set", 0, "heartbeat", "30") is None
    qless("config.set", 0, "foo", "bar")

    assert qless("config.get", 0, "heartbeat") == "30"
    assert qless("config.get", 0) == {**DEFAULTS, "heartbeat": "30", "foo": "bar"}


def test_unset_takes_an_option_back_to_its_default(qless: Qless) -> None:
    qless("config.set", 0, "heartbeat", "30")
    qless("config.set", 0, "foo", "bar")

    qless("config.unset", 0, "heartbeat")
    assert qless("config.unset", 0, "foo") is None

    assert qless("config.get", 0) == DEFAULTS


def test_an_unknown_option_is_nothing(qless: Qless) -> None:
    assert qless("config.get", 0, "foo") is None
    assert qless("config.get", 0, "max-job-history") is None


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["config.set"], 'config.set(): Arg "option" missing'),
        (["config.set", "foo"], 'config.set(): Arg "value" missing'),
        (["config.set", "heartbeat", "x"], 'config.set(): Arg "value" not a number: x'),
        (["config.set", "q-heartbeat", "x"], 'config.set(): Arg "value" not a number: x'),
        (["config.set", "max-job-history", "nan"], 'config.set(): Arg "value" not a number: nan'),
        (["config.unset"], 'config.unset(): Arg "option" missing'),
    ],
)
def test_malformed_settings_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(BadArgument) as refused:
        qless(words[0], 0, *words[1:])

    assert refused.value.message == text


def test_configuration_from_python(store: Store) -> None:
    store.jobs.config_set("heartbeat", 90)
    store.jobs.config_set("jobs-history-count", 1234567)

    assert store.jobs.config_get("heartbeat") == "90"
    assert store.jobs.config()["jobs-history-count"] == "1234567"
    store.jobs.config_unset("heartbeat")
    assert store.jobs.config_get("heartbeat") == 60


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("emails-rat", "did you mean 'emails-rate'"),
        ("hearbeat", "did you mean 'heartbeat'"),
        ("emails-deadletter", "unknown option"),
        ("colour", "unknown option 'colour'"),
        ("-rate", "unknown option"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    store: Store, option: str, meant: str
) -> None:
    with pytest.raises(BadArgument, match=meant):
        store.jobs.config_set(option, "1/60")
