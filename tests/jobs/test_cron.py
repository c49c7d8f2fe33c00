"""Cron expressions: fields, days, time zones, daylight saving."""

from datetime import UTC, datetime
from time import process_time
from zoneinfo import ZoneInfo

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs.cron import Cron


def runs(expression: str, begin: str, count: int, zone: str = "UTC") -> list[str]:
    """The next `count` runs after a local time, as local times with their offset from UTC."""
    cron = Cron(expression, zone)
    time = datetime.fromisoformat(begin).replace(tzinfo=ZoneInfo(zone)).timestamp()
    found = []
    for _ in range(count):
        time = cron.next_after(time)
        found.append(datetime.fromtimestamp(time, ZoneInfo(zone)).isoformat(" "))
    return [run.replace("+00:00", "") for run in found]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ["2024-01-01 00:01:00", "2024-01-01 00:02:00"]),
        ("*/20 3 * * *", ["2024-01-01 03:00:00", "2024-01-01 03:20:00"]),
        ("5/25 * * * *", ["2024-01-01 00:05:00", "2024-01-01 00:30:00"]),
        ("0 9-10 * * mon-fri", ["2024-01-01 09:00:00", "2024-01-01 10:00:00"]),
        ("0 0 29 2 *", ["2024-02-29 00:00:00", "2028-02-29 00:00:00"]),
        ("0 0 1,15 * *", ["2024-01-15 00:00:00", "2024-02-01 00:00:00"]),
        ("0 0 13 * fri", ["2024-01-05 00:00:00", "2024-01-12 00:00:00"]),
        ("0 0 * * 7", ["2024-01-07 00:00:00", "2024-01-14 00:00:00"]),
        ("0 0 1 JAN,jul *", ["2024-07-01 00:00:00", "2025-01-01 00:00:00"]),
        ("15,45 30 12 * * *", ["2024-01-01 12:30:15", "2024-01-01 12:30:45"]),
        ("@hourly", ["2024-01-01 01:00:00", "2024-01-01 02:00:00"]),
        ("@yearly", ["2025-01-01 00:00:00", "2026-01-01 00:00:00"]),
    ],
)
def test_expressions_mean_what_cron_says(expression: str, expected: list[str]) -> None:
    assert runs(expression, "2024-01-01 00:00:00", 2) == expected


def test_a_local_time_that_is_skipped_runs_at_the_next_valid_minute() -> None:
    found = runs("30 2 * * *", "2024-03-30 12:00:00", 2, "Europe/Berlin")

    assert found == ["2024-03-31 03:00:00+02:00", "2024-04-01 02:30:00+02:00"]


def test_all_runs_of_a_skipped_hour_are_one() -> None:
    found = runs("*/30 2-3 * * *", "2024-03-31 01:00:00", 2, "Europe/Berlin")

    assert found == ["2024-03-31 03:00:00+02:00", "2024-03-31 03:30:00+02:00"]


def test_a_local_time_that_comes_twice_runs_once() -> None:
    found = runs("30 2 * * *", "2024-10-26 12:00:00", 2, "Europe/Berlin")

    assert found == ["2024-10-27 02:30:00+02:00", "2024-10-28 02:30:00+01:00"]


def test_the_newest_runs_are_found_without_walking_through_years() -> None:
    cron = Cron("* * * * *", "UTC")
    until = datetime(2024, 1, 1, tzinfo=UTC).timestamp()

    assert cron.newest_runs(0.0, until, 3) == [until - 120, until - 60, until]
    assert cron.newest_runs(until - 60, until, 5) == [until - 60, until]


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8",
     "*/0 * * * *", "a * * * *", "5-1 * * * *", "*/x * * * *", "1- * * * x",
     "9" * 5_000 + " * * * *", "*/" + "0" * 5_000 + "5 * * * *", "*," * 1_000_000 + "* * * * *"],
)  # fmt: skip
def test_what_is_no_cron_expression_is_refused(expression: str) -> None:
    with pytest.raises(BadArgument, match="not a cron expression") as refused:
        Cron(expression, "UTC")

    assert len(refused.value.message) < 300


def test_a_day_that_never_comes_and_an_unknown_zone_are_refused() -> None:
    with pytest.raises(BadArgument, match="no run"):
        Cron("0 0 30 2 *", "UTC").next_after(0.0)
    with pytest.raises(BadArgument, match="time zone 'Europe/Atlantis' is unknown"):
        Cron("* * * * *", "Europe/Atlantis")


@pytest.mark.parametrize("expression", ["* * * * *", "* * * * * *"])
def test_the_next_run_is_found_as_quickly_in_the_evening_as_in_the_morning(
    expression: str,
) -> None:
    cron = Cron(expression, "UTC")
    evening = datetime(2024, 1, 1, 23, 50, tzinfo=UTC).timestamp()

    begun = process_time()
    for _ in range(300):
        cron.next_after(evening)

    assert process_time() - begun < 0.5  # it takes 5 ms; going through the times of the day, 5 s


def test_the_newest_runs_are_found_without_the_older_ones() -> None:
    cron = Cron("* * * * * *", "UTC")

    begun = process_time()
    found = cron.newest_runs(0.0, 1e9, 1000)

    assert found == [1e9 - 999 + number for number in range(1000)]
    assert process_time() - begun < 2  # it takes 40 ms
