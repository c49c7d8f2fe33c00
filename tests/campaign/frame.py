"""What every part of the campaign returns.

A part is a module of this package with a function `run(random, seconds)`: it attacks a real store
or server with what the seeded `random` chooses, for about `seconds`, and returns a `Result`. The
short form of a part, a few seconds of it with a fixed seed, is a test beside it: `test_<part>.py`.
`PARTS` in `__main__.py` lists the parts. On the page, the first line of a module's docstring is the
title of its section (no more than a few words), and the rest is what a reader should know about it.
"""

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Counts what one part tried, and names every promise that it saw broken."""

    tried: dict[str, int]  # for the report: {"kills": 40, "acknowledged": 12_000}
    broken: list[str] = []  # a sentence each, with what reproduces it; empty means that all held
    rows: dict[str, dict[str, int]] = {}  # the same figures for each kind of attack, as a table
