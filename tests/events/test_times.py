"""Times and their labels."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast.errors import BadInput, InvalidEvent
from holdfast.events.times import Calendar, labels, labels_between, to_event_ms, zone

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
