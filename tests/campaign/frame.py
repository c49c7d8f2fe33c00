"""The results that every part of the campaign returns.

A part is a module of this package with a function `run(random, seconds)`: it attacks a real store
or server with what the seeded `random` chooses, for about `seconds`, and returns a `Result`. The
short form of a part, a few seconds of it with a fixed seed, is a test beside it: `test_<part>.py`.
`PARTS` in `__main__.py` lists the parts. A part whose attacks are a list may run out of time before
its end: then it names what is left, and has a `run_rest(left, random, seconds)` for it. On the
page, the first line of a module's docstring is the title of its section (no more than a few words),
and the rest is what a reader should know about it.
"""

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Counts what one part tried, and names every promise that it saw broken."""

    tried: dict[str, int]  # for the report: {"kills": 40, "acknowledged": 12_000}
    broken: list[str] = []  # a sentence each, with what reproduces it; empty means that all held
    rows: dict[str, dict[str, int]] = {}  # the same figures for each kind of attack, as a table
    left: list[str] = []  # what there was no time for

    def followed_by(self, rest: "Result") -> "Result":
        """Returns the figures of this run and of one of its rest, together."""
        names = [*self.rows, *(name for name in rest.rows if name not in self.rows)]
        return Result(
            tried=_sum(self.tried, rest.tried),
            broken=self.broken + rest.broken,
            rows={name: _sum(self.rows.get(name, {}), rest.rows.get(name, {})) for name in names},
            left=rest.left,
        )


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Adds counts; a figure that is the latest or the most of something is the larger one."""
    return {
        name: (max if name.startswith(("latest", "most")) else _plus)(
            one.get(name, 0), other.get(name, 0)
        )
        for name in {**one, **other}
    }


def _plus(one: int, other: int) -> int:
    return one + other
