"""Times and their labels."""

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast.errors import BadInput, InvalidEvent
from holdfast.events.times import (
    Calendar,
    labels,
    labels_between,
    labels_within,
    to_event_ms,
    zone,
)

NOON = 1_344_427_200_000


@pytest.mark.parametrize(
    "given",
    [
        NOON,
        float(NOON),
        "2012-08-08T12:00:00Z",
        "2012-08-08T14:00:00+02:00",
        "2012-08-08 12:00",
        datetime(2012, 8, 8, 12, tzinfo=UTC),
        datetime(2012, 8, 8, 13, tzinfo=timezone(timedelta(hours=1))),
        datetime(2012, 8, 8, 12),
    ],
)
def test_a_time_is_given_in_milliseconds_or_iso_8601(given: object) -> None:
    assert to_event_ms(given, "UTC") == NOON


@pytest.mark.parametrize("given", ["noon", None, float("nan"), float("inf"), -1, [], "1969-01-01"])
def test_what_is_no_time_is_refused(given: object) -> None:
    with pytest.raises(InvalidEvent):
        to_event_ms(given, "UTC")


def test_labels_follow_the_time_zone() -> None:
    late = to_event_ms("2012-12-31T23:30:00Z", "UTC")

    assert labels(late, Calendar())["@day"] == [b"2012-12-31"]
    assert labels(late, Calendar("Europe/Berlin"))["@day"] == [b"2013-01-01"]
    assert labels(late, Calendar("Europe/Berlin"))["@year"] == [b"2013"]


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown time zone"):
        zone("Mars/Olympus")


@pytest.mark.parametrize(
    ("unit", "begin", "end", "expected"),
    [
        (
            "minute",
            "2012-08-08T23-59",
            "2012-08-09T00:00",
            ["2012-08-08T23-59", "2012-08-09T00-00"],
        ),
        ("hour", "2012-08-08T23", "2012-08-09", ["2012-08-08T23", "2012-08-09T00"]),
        ("day", "2012-02-28", "2012-03-01", ["2012-02-28", "2012-02-29", "2012-03-01"]),
        ("week", "2020-12-31", "2021-01-04", ["2020-W53", "2021-W01"]),
        ("month", "2012-12", "2013-01-31", ["2012-12", "2013-01"]),
        ("year", "2012", "2014-01-01", ["2012", "2013", "2014"]),
        ("day", "2012-08-09", "2012-08-08", []),
        ("year", "9998", "9999", ["9998", "9999"]),  # where the calendar ends
        ("month", "9999-12", "9999-12", ["9999-12"]),
        ("day", "9999-12-31", "9999-12-31", ["9999-12-31"]),
    ],
)
def test_every_step_of_a_range_has_its_label(
    unit: str, begin: str, end: str, expected: list[str]
) -> None:
    assert list(labels_between(unit, begin, end, Calendar())) == expected


def test_days_do_not_slip_where_clocks_change() -> None:
    days = list(labels_between("day", "2024-03-29", "2024-04-02", Calendar("Europe/Berlin")))

    assert days == ["2024-03-29", "2024-03-30", "2024-03-31", "2024-04-01", "2024-04-02"]


@pytest.mark.parametrize(
    ("unit", "seconds", "now", "expected"),
    [
        # Clocks in Berlin are set back at 01:00 UTC: they show 02:00 to 03:00 twice.
        ("hour", 3_600, "2026-10-25T01:30Z", ["2026-10-25T02"]),
        ("hour", 3 * 3_600, "2026-10-25T02:30Z", ["2026-10-25T02", "2026-10-25T03"]),
        ("minute", 180, "2026-10-25T01:01Z", [f"2026-10-25T02-{m}" for m in ("59", "00", "01")]),
        # They are set forward at 01:00 UTC: nothing happens from 02:00 to 03:00.
        ("hour", 2 * 3_600, "2026-03-29T01:30Z", ["2026-03-29T01", "2026-03-29T03"]),
        ("minute", 120, "2026-03-29T01:00Z", ["2026-03-29T01-59", "2026-03-29T03-00"]),
        ("day", 2 * 86_400, "2026-03-29T12:00Z", ["2026-03-28", "2026-03-29"]),
        # A step that takes longer than the window is the present one.
        ("week", 3_600, "2026-11-17T12:00Z", ["2026-W47"]),
        ("quarter", 86_400, "2026-11-17T12:00Z", ["2026-Q4"]),
        ("hour", 60, "2026-11-17T12:30Z", ["2026-11-17T13"]),
    ],
)
def test_a_window_has_the_steps_that_began_in_it_and_the_present_one(
    unit: str, seconds: int, now: str, expected: list[str]
) -> None:
    now_ms = to_event_ms(now, "UTC")

    assert list(labels_within(unit, seconds, now_ms, Calendar("Europe/Berlin"))) == expected


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
CHANGES = ["2026-10-25T01:00Z", "2026-03-29T01:00Z", "2026-11-01T06:00Z", "2026-04-04T15:00Z"]


@pytest.mark.parametrize("timezone", ZONES)
@pytest.mark.parametrize("change", CHANGES)
def test_labels_of_a_range_are_those_of_the_events_in_it(timezone: str, change: str) -> None:
    chance = random.Random(timezone + change)
    for _ in range(8):
        calendar = Calendar(timezone, first_day=chance.randrange(7))
        unit = chance.choice(["minute", "hour", "day", "week"])
        end = to_event_ms(change, "UTC") + chance.randrange(-9_000_000, 9_000_000)
        begin = end - chance.choice([1, 30, 100, 300]) * 60_000

        found = list(labels_between(unit, begin, end, calendar))

        moments = [*range(begin, end, 60_000), end]
        of_events = [labels(moment, calendar)[f"@{unit}"][0].decode() for moment in moments]
        assert found == list(dict.fromkeys(of_events))
