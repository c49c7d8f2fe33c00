"""Steps and signals: the finished steps of a workflow, and messages sent to it from outside.

A workflow is a job whose worker stores the result of each step with the job, so that the next run
does not repeat it. Steps and signals have their own keys and are removed with their job.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.declarations import operation
from holdfast.errors import BadArgument, UnknownJob, WrongState
from holdfast.jobs import lists, results
from holdfast.jobs.arguments import check_jid, check_name, cut_message, from_json, json_text
from holdfast.jobs.layout import below
from holdfast.jobs.records import COMPLETE, SCHEDULED, JobRecord
from holdfast.keys import pack_int, unpack
from holdfast.limits import (
    MAX_ANSWER_BYTES,
    MAX_HISTORY_MESSAGE_CHARS,
    MAX_JOB_SIGNALS,
    MAX_STEP_RESULT_BYTES,
    MAX_STEPS,
)

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger


class Step(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One step, as a workflow remembers it.

    Steps are numbered from 0 in the order in which the workflow calls them. A step that has not
    `ended` waits for a time, a signal or child jobs. `error` and `error_class` belong to a step
    that has failed for good.
    """

    number: int
    name: str
    begun: float = 0.0
    ended: float = 0.0
    attempts: int = 1
    result: Any = None
    error: str = ""
    error_class: str = ""
    until: float = 0.0
    children: tuple[str, ...] = ()


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that was sent to a workflow and that it has not taken yet."""

    name: str
    number: int
    value: Any = None
    when: float = 0.0


class _StepRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A step as it is stored: its result as JSON text."""

    name: str
    begun: float = 0.0
    ended: float = 0.0
    attempts: int = 1
    result: str = "null"
    error: str = ""
    error_class: str = ""
    until: float = 0.0
    children: tuple[str, ...] = ()


class _SignalRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A signal as it is stored."""

    value: str
    when: float


_step_of: Final = msgspec.msgpack.Decoder(_StepRecord).decode
_signal_of: Final = msgspec.msgpack.Decoder(_SignalRecord).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class StepOperations:
    """Operations on the steps and signals of workflows."""

    _ledger: "Ledger"

    @operation(reads=True)
    def steps(self, id: str, *, after: int = -1, count: int = 1000) -> list[Step]:
        """Returns the steps of a workflow after number `after`, as many as fit into one answer.

        Reads 1 key for each.
        """
        return read_steps(self._ledger, check_jid(id), after, min(count, MAX_STEPS))

    @operation()
    def signal(self, id: str, name: str, value: Any = None, *, now: float | None = None) -> None:
        """Sends a signal to a workflow: a run that waits for `name` continues with `value`.

        A signal that comes before the workflow waits for it is kept. Reads 2 keys, writes up to 5.
        """
        text = json_text(value, "value")
        add_signal(self._ledger, check_jid(id), name, text, self._ledger.time(now))

    @operation(reads=True)
    def signals(self, id: str) -> list[Signal]:
        """Returns the signals that a workflow has not taken yet, oldest first of each name.

        Reads 1 key for each.
        """
        return read_signals(self._ledger, check_jid(id))


# --- steps --------------------------------------------------------------------------------------


def read_steps(ledger: "Ledger", jid: str, after: int, count: int) -> list[Step]:
    prefix = ledger.keys.steps_of(jid)
    begin = prefix if after < 0 else prefix + pack_int(after) + b"\xff"
    found: list[Step] = []
    size = 0
    for key, value in ledger.tx.scan(begin, prefix + b"\xff", limit=max(0, count)):
        size += len(value)
        if size > MAX_ANSWER_BYTES and found:
            break
        (number,) = unpack(key, len(prefix))
        record = _step_of(value)
        found.append(
            Step(
                number=number,
                name=record.name,
                begun=record.begun,
                ended=record.ended,
                attempts=record.attempts,
                result=from_json(record.result),
                error=record.error,
                error_class=record.error_class,
                until=record.until,
                children=record.children,
            )
        )
    return found


def write_steps(ledger: "Ledger", job: JobRecord, steps: Sequence[Step]) -> None:
    """Stores steps of a job. Saves its record if these are the first."""
    prefix = ledger.keys.steps_of(job.jid)
    for step in steps:
        if not 0 <= step.number < MAX_STEPS:
            raise BadArgument.named("steps", f"has number {step.number}, at most {MAX_STEPS} fit")
        text = json_text(step.result, "result")
        if len(text) > MAX_STEP_RESULT_BYTES:
            raise BadArgument(
                f"the result of step {step.name} has {len(text)} characters, at most "
                f"{MAX_STEP_RESULT_BYTES} fit",
                hint="Keep it in an entity or a table, and return its id.",
            )
        record = _StepRecord(
            name=check_name(step.name, "step"),
            begun=step.begun,
            ended=step.ended,
            attempts=step.attempts,
            result=text,
            error=cut_message(step.error, MAX_HISTORY_MESSAGE_CHARS),
            error_class=cut_message(step.error_class, MAX_HISTORY_MESSAGE_CHARS),
            until=step.until,
            children=step.children,
        )
        ledger.tx.put(prefix + pack_int(step.number), _encode(record))
    if not job.has_steps:
        job.has_steps = True
        ledger.save(job)


def remember_child(ledger: "Ledger", job: JobRecord) -> None:
    """Keeps the result of a complete child that is about to be removed, for the waiting workflow.

    Its number is above all that a workflow's own steps can have. Reads 3 keys, writes 1.
    """
    parent = ledger.job(job.parent)
    text = results.result_text(ledger, job.jid) or "null"
    if parent is None or parent.state == COMPLETE or len(text) > MAX_STEP_RESULT_BYTES:
        return
    prefix = ledger.keys.steps_of(parent.jid)
    number = MAX_STEPS
    for key, _ in ledger.tx.scan(*below(prefix), limit=1, reverse=True):
        number = max(number, unpack(key, len(prefix))[0] + 1)
    record = _StepRecord(name=child_step(job.jid), begun=job.time, ended=job.time, result=text)
    ledger.tx.put(prefix + pack_int(number), _encode(record))


def child_step(jid: str) -> str:
    """Returns the name of the step that keeps the result of a child."""
    return f"child {jid}"


def forget_steps(ledger: "Ledger", job: JobRecord) -> None:
    """Removes all steps and signals of the job. The caller saves the record."""
    for prefix in (ledger.keys.steps_of(job.jid), ledger.keys.signals_of(job.jid)):
        ledger.tx.clear(*below(prefix))
    job.has_steps = False


# --- signals ------------------------------------------------------------------------------------


def add_signal(ledger: "Ledger", jid: str, name: str, text: str, now: float) -> None:
    check_name(name, "name")
    job = ledger.job(jid)
    if job is None:
        raise UnknownJob.of(jid)
    if job.state == COMPLETE:
        raise WrongState.of(jid, job.state, "under way")
    if len(text) > MAX_STEP_RESULT_BYTES:
        raise BadArgument.named("value", f"has at most {MAX_STEP_RESULT_BYTES} characters")
    prefix = ledger.keys.signals_of(jid)
    kept = [key for key, _ in ledger.tx.scan(*below(prefix), limit=MAX_JOB_SIGNALS)]
    if len(kept) >= MAX_JOB_SIGNALS:
        raise BadArgument(f"job {jid!r} has {len(kept)} signals that it has not taken")
    of_name = ledger.keys.signals_named(jid, name)
    number = 0
    for key, _ in ledger.tx.scan(*below(of_name), limit=1, reverse=True):
        number = int(unpack(key, len(of_name))[0]) + 1
    ledger.tx.put(of_name + pack_int(number), _encode(_SignalRecord(value=text, when=now)))
    job.has_steps = True
    if job.state == SCHEDULED and job.awaits == name:
        lists.leave(ledger, job, now)
        job.awaits = ""
        lists.enter_work(ledger, job, now)
    ledger.save(job)


def read_signals(ledger: "Ledger", jid: str) -> list[Signal]:
    prefix = ledger.keys.signals_of(jid)
    found = []
    for key, value in ledger.tx.scan(*below(prefix), limit=MAX_JOB_SIGNALS):
        name, number = unpack(key, len(prefix))
        record = _signal_of(value)
        found.append(
            Signal(name=name, number=number, value=from_json(record.value), when=record.when)
        )
    return found


def has_signal(ledger: "Ledger", jid: str, name: str) -> bool:
    """Returns whether the job has a signal of that name that it has not taken."""
    of_name = ledger.keys.signals_named(jid, name)
    return any(True for _ in ledger.tx.scan(*below(of_name), limit=1))


def drop_signal(ledger: "Ledger", jid: str, name: str, number: int) -> None:
    """Forgets a signal that was taken."""
    ledger.tx.delete(ledger.keys.signals_named(jid, name) + pack_int(number))
