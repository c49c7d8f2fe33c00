"""The templates, and the filters that format times, numbers and values in them."""

import asyncio
import threading
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup

from holdfast.dashboard import charts, static_files
from holdfast.dashboard.charts import NONE
from holdfast.limits import MAX_SHOWN_CHARS
from holdfast.version import VERSION

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


async def prepare(*templates: str) -> None:
    """Compiles new templates in a thread, and reads the static files that they name: otherwise the
    first page of a server would block all of its clients for some 100 ms."""
    if missing := [each for each in templates if each not in _prepared()]:
        await asyncio.to_thread(_compile, missing)


def _compile(templates: list[str]) -> None:
    with _compiling():  # else several first pages would each compile all templates
        static_files.load()
        for template in templates:
            if template not in _prepared():
                _environment().get_template(template)
                _prepared().add(template)


@cache
def _compiling() -> threading.Lock:
    return threading.Lock()


@cache
def _prepared() -> set[str]:
    return set()


def render(template: str, **values: Any) -> bytes:
    """Returns a page. Text that is not UTF-8 is shown with replacement characters."""
    page = _environment().get_template(template).render(**values)
    return page.encode(errors="replace")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("holdfast.dashboard"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )
    environment.filters.update(
        {
            "ago": ago,
            "bytes": size,
            "compact": compact,
            "cut": cut,
            "duration": duration,
            "number": number,
            "pretty": pretty,
            "round_off": round_off,
            "utc": utc,
            "when": when,
        }
    )
    environment.globals.update(
        {
            "asset": static_files.address,
            "chart_data": charts.chart_data,
            "sparkline": charts.sparkline,
            "version": VERSION,
        }
    )
    return environment


def utc(moment: float) -> str:
    """Returns a time in UTC.

    >>> utc(0.5)
    '1970-01-01 00:00:00 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{moment!r} s after 1970"


def when(moment: float | None) -> Markup:
    """Returns a time, which the script shows in the viewer's time zone, with exact UTC on hover."""
    if not moment:
        return Markup(NONE)
    exact = utc(moment)
    return Markup('<time datetime="{}" data-time="{}" title="{}">{}</time>').format(
        exact.removesuffix(" UTC").replace(" ", "T") + "Z", moment, exact, exact
    )


def ago(moment: float | None, now: float) -> Markup:
    """Returns a time in words, "3 min ago" or "in 5 s", with the exact UTC time on hover."""
    if not moment:
        return Markup(NONE)
    exact = utc(moment)
    passed = now - moment
    words = f"{duration(passed)} ago" if passed >= 0 else f"in {duration(-passed)}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.removesuffix(" UTC").replace(" ", "T") + "Z", exact, words
    )


def duration(seconds: float | None) -> str:
    """Returns a duration with its two largest units.

    >>> [duration(each) for each in (0.0004, 0.25, 7, 95, 4000, 200000)]
    ['0.4 ms', '250 ms', '7 s', '1 min 35 s', '1 h 6 min', '2 d 7 h']
    """
    if seconds is None:
        return NONE
    if seconds < 1:
        thousandths = seconds * 1000
        return f"{thousandths:.1f} ms" if 0 < thousandths < 10 else f"{thousandths:.0f} ms"
    whole = int(seconds)
    for long, long_name, short, short_name in _LENGTHS:
        if whole >= long:
            rest = whole % long // short
            return f"{whole // long} {long_name}" + (f" {rest} {short_name}" if rest else "")
    return f"{seconds:.3g} s" if seconds < 10 else f"{whole} s"


_LENGTHS: Final = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def number(value: float | None) -> str:
    """Returns a number with thousands separators.

    >>> number(1234567), number(0.5)
    ('1,234,567', '0.5')
    """
    if value is None:
        return NONE
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def round_off(value: float | None) -> str:
    """Returns a number with three significant digits.

    >>> round_off(5.6413), round_off(1234.5)
    ('5.64', '1,234')
    """
    return NONE if value is None else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def compact(value: float | None) -> str:
    """Returns a large number with a unit prefix.

    >>> compact(999), compact(12_345), compact(3_400_000)
    ('999', '12.3 k', '3.4 M')
    """
    if value is None:
        return NONE
    for size_of, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size_of:
            return f"{value / min(size_of, 1e3 if name == 'k' else size_of):.3g} {name}"
    return number(value)


def size(value: float | None) -> str:
    """Returns a number of bytes with a unit.

    >>> size(100), size(1536), size(1932735283)
    ('100 B', '1.5 KiB', '1.8 GiB')
    """
    if value is None:
        return NONE
    for unit in _UNITS:
        if abs(value) < 1024 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("the last unit is returned")


def pretty(value: Any, most: int = MAX_SHOWN_CHARS) -> str:
    """Returns a value as JSON with line breaks; a long one is cut, with a note of its length."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        text = repr(value)
    return cut(text, most)


def cut(text: str, most: int = MAX_SHOWN_CHARS) -> str:
    """Returns the first characters of a text, with a note of how many were cut.

    >>> cut("abcdef", 4)
    'abcd … and 2 characters more'
    """
    if len(text) <= most:
        return text
    return f"{text[:most]} … and {len(text) - most:,} characters more"
