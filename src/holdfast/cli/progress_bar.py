"""A progress bar on a terminal: one line, drawn again as work goes on, and removed at its end."""

import math
import time
from collections.abc import Callable
from typing import IO, Final

__all__ = ["ProgressBar"]

_WIDTH: Final = 40  # columns; on a terminal of 80, the figures fit next to it
_SECONDS_BETWEEN: Final = 0.1  # more often, a fast command would spend its time on drawing
_ERASE: Final = "\r\x1b[K"


class ProgressBar:
    """Draws how far `total` is done; without a total, the figures alone."""

    def __init__(
        self,
        file: IO[str],
        label: str,
        total: float | None,
        figures: Callable[[float], str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._label = label
        self._total = total
        self._figures = figures
        self._clock = clock
        self._begun = clock()
        self._drawn = -math.inf  # the first figures are shown at once
        self._draw(0)

    def update(self, done: float) -> None:
        """Takes the work that is done by now, and draws it if the last drawing is old enough."""
        now = self._clock()
        if now - self._drawn >= _SECONDS_BETWEEN:
            self._drawn = now
            self._draw(done)

    def close(self) -> None:
        """Removes the bar: the next output begins at the start of the line."""
        self._write(_ERASE)

    def _draw(self, done: float) -> None:
        parts = [self._label, *self._bar(done), self._figures(done), *self._left(done)]
        self._write(_ERASE + " ".join(filter(None, parts)))

    def _bar(self, done: float) -> list[str]:
        if not self._total:
            return []
        full = min(_WIDTH, int(_WIDTH * done / self._total))
        return ["━" * full + "─" * (_WIDTH - full)]

    def _left(self, done: float) -> list[str]:
        """Returns the time that the rest will take at the present speed."""
        if not self._total or not done:
            return []
        seconds = int((self._clock() - self._begun) * max(0.0, self._total - done) / done)
        return [f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"]

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()
