"""Converts durations to seconds, so that a timeout can be written as `timeout=days(7)`."""

__all__ = ["days", "hours", "minutes", "weeks"]


def minutes(count: float) -> float:
    """Returns a number of minutes in seconds.

    >>> minutes(1.5)
    90.0
    """
    return count * 60.0


def hours(count: float) -> float:
    """Returns a number of hours in seconds.

    >>> hours(2)
    7200.0
    """
    return count * 3_600.0


def days(count: float) -> float:
    """Returns a number of days of 24 hours in seconds.

    >>> days(7)
    604800.0
    """
    return count * 86_400.0


def weeks(count: float) -> float:
    """Returns a number of weeks in seconds.

    >>> weeks(1) == days(7)
    True
    """
    return count * 604_800.0
