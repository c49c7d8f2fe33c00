"""Explains what an event would do, by running it on a transaction whose writes are discarded."""

from holdfast.engine.contract import Reader
from holdfast.errors import AnswerTooLarge, BatchTooLong, HoldfastError
from holdfast.events.dry_run import DryRun
from holdfast.events.event_run import EventRun, HandlerStep
from holdfast.events.handlers import CompiledHandler
from holdfast.events.ingestion import AnyEvent, Ingestion, as_event
from holdfast.events.records import Explanation, HandlerExplanation, Settings, Write
from holdfast.limits import MAX_ANSWER_BYTES

__all__ = ["explain"]


def explain(
    reader: Reader, settings: Settings | None, given: AnyEvent, schema: str | None = None
) -> Explanation:
    """Returns what each handler of an event would do, each after the writes of those before."""
    event = as_event(given)
    ingestion = Ingestion(DryRun(reader), settings, None, schema=schema)
    at, plan = ingestion.arrival(event)
    run = ingestion.run_of(event, at, plan)
    timer, size = ingestion.timer, 0
    handlers: list[HandlerExplanation] = []
    for handler in plan.handlers:
        explained, bytes_of_writes = _explain_handler(run, handler, MAX_ANSWER_BYTES - size)
        handlers.append(explained)
        size += bytes_of_writes
        timer.check()
    return Explanation(
        name=event.name,
        at=at,
        handlers=handlers,
        duplicate=event.id is not None and ingestion.is_duplicate(event.id),
        dialect="flux" if ingestion.is_flux else "mql",
    )


def _explain_handler(
    run: EventRun, handler: CompiledHandler, room: int
) -> tuple[HandlerExplanation, int]:
    """Returns what a handler would do, and how many bytes its writes have: at most `room`."""
    size = 0
    skipped, empty, background = len(run.skipped), len(run.empty), len(run.background)
    keys: list[str] = []
    writes: list[Write] = []
    error: str | None = None
    try:
        step = run.resolve(handler)
        if step is not None:
            size = _size_of_writes(step)
            if size > room:
                raise AnswerTooLarge(f"the writes have more than {MAX_ANSWER_BYTES} bytes")
            run.write(step)
            keys = [key.decode() for key in step.keys]
            values = [value.decode() for value in step.values]
            writes = [Write(key=key, value=value) for key in keys for value in values]
    except (AnswerTooLarge, BatchTooLong):
        raise
    except HoldfastError as failure:
        error = failure.message
    reason = run.skipped[-1] if len(run.skipped) > skipped else None
    fan_out = run.background[-1] if len(run.background) > background else None
    explained = HandlerExplanation(
        handler=handler.name,
        operation=handler.operation,
        keys=keys,
        writes=[] if reason else writes,
        job=run.explained_job(handler),
        missing=reason.missing if reason else None,
        error=error or (reason.error if reason else None),
        schema=handler.schema,
        empty=run.empty[empty:],
        background=fan_out.keys if fan_out else None,
    )
    return explained, size


def _size_of_writes(step: HandlerStep) -> int:
    """Returns the bytes of all pairs of key and value, each of which is listed."""
    keys, values = step.keys, step.values
    return sum(map(len, keys)) * len(values) + sum(map(len, values)) * len(keys)
