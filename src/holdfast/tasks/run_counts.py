"""Counts the runs of a worker in the metrics of its space: `runs` below the prefix `worker`.

They are counted by queue and outcome: by minute for two hours, by ten minutes for two days, and by
hour for nine days. To read them:
`store.metrics.rate("runs", ["emails", "complete"], latest=3600, prefix="worker")`.
"""

import logging
from typing import Any, Final

from holdfast.errors import Forbidden, HoldfastError
from holdfast.tasks.worker_figures import WorkerFigures

__all__ = ["RunCounts"]

_log: Final = logging.getLogger("holdfast.tasks")
_PREFIX: Final = "worker"
_DAY: Final = 86_400
_SPECS: Final = {
    "runs": {
        "help": "runs of jobs by queue and outcome",
        "sequences": [
            {"timeStep": 60, "expiry": 7_200},
            {"timeStep": 600, "expiry": 2 * _DAY},
            {"timeStep": 3_600, "expiry": 9 * _DAY},
        ],
    }
}


class RunCounts:
    """Writes the runs since the last call; if a write fails, the next call includes them."""

    def __init__(self, where: Any, figures: WorkerFigures) -> None:
        self._where: Any = where  # a store or client; None if its metrics can't be written
        self._figures = figures
        self._written: dict[tuple[str, str], int] = {}
        self._is_defined = False

    def write(self) -> None:
        """Writes the counts; stops for good if the worker's user may not write metrics."""
        ended = self._figures.ended_by_queue()
        new = {key: number - self._written.get(key, 0) for key, number in ended.items()}
        writes = [
            {"metric": "runs", "entity": list(key), "value": number}
            for key, number in new.items()
            if number
        ]
        if self._where is None or not writes:
            return
        try:
            if not self._is_defined:
                self._where.metrics.define(_SPECS, prefix=_PREFIX)
                self._is_defined = True
            self._where.metrics.write(writes, prefix=_PREFIX)
        except Forbidden as error:
            _log.info("the runs of this worker are not counted: %s", error)
            self._where = None
        except HoldfastError as error:
            _log.warning("the runs of this worker could not be counted: %s", error)
        else:
            self._written = ended
