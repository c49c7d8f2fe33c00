"""The worker's log of runs: a line for each run that did not complete its job, with the reason.

Each line has `job`, `task`, `queue` and `worker` as separate fields, for log collectors. Runs that
completed, snoozed or wait for a signal are logged at the level DEBUG.
"""

import logging
from typing import TYPE_CHECKING, Final

from holdfast.error_text import reason_of
from holdfast.jobs.records import Job
from holdfast.limits import MAX_LOGGED_REASON_CHARS

if TYPE_CHECKING:
    from holdfast.jobs.reports import Report
    from holdfast.tasks.slots import Finished

__all__ = ["log_end"]

_log: Final = logging.getLogger("holdfast.tasks")


def log_end(job: Job, finished: "Finished", seconds: float) -> None:
    """Logs how a run has ended."""
    level, text = _outcome_text(finished, seconds)
    if _log.isEnabledFor(level):
        fields = {"job": job.id, "task": job.klass, "queue": job.queue, "worker": job.worker}
        _log.log(level, "job %s (%s) %s", job.id, job.klass, text, extra=fields)


def _outcome_text(finished: "Finished", seconds: float) -> tuple[int, str]:
    """Returns the outcome in words, and its log level."""
    outcome, report = finished.outcome, finished.report
    if outcome is None:
        return logging.DEBUG, "broke"  # which was logged where it broke
    if report is not None and report.what == "fail":
        return logging.ERROR, f"failed in the group {report.group}: {_reason(report)}"
    if report is not None and report.what == "retry" and report.group is not None:
        return logging.WARNING, f"runs again in {report.delay:.3g} s: {_reason(report)}"
    if outcome.what == "lost" and outcome.error is not None:
        why = finished.attempt.run.stopped or outcome.error
        return logging.WARNING, f"was lost, and its outcome is not counted: {why}"
    return logging.DEBUG, f"ended after {seconds:.3f} s: {outcome.what}"


def _reason(report: "Report") -> str:
    """Returns the reason in one line."""
    reason = reason_of(report.message or "no reason given")
    if len(reason) <= MAX_LOGGED_REASON_CHARS:
        return reason
    return f"{reason[:MAX_LOGGED_REASON_CHARS]}..."
