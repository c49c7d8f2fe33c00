"""Explaining: what an event would do, found out by doing it where nothing is kept."""

from holdfast.engine.contract import Reader
from holdfast.errors import HoldfastError
from holdfast.events.dry_run import DryRun
from holdfast.events.handlers import CompiledHandler, Scope
from holdfast.events.ingestion import AnyEvent, EventRun, Ingestion, as_event
from holdfast.events.records import Explanation, HandlerExplanation, Settings, Write

__all__ = ["explain"]


def explain(reader: Reader, settings: Settings | None, given: AnyEvent) -> Explanation:
    """What each handler of an event would do, in order, each seeing the writes of those before."""
    event = as_event(given)
    ingest = Ingestion(DryRun(reader), settings, None)
    at, plan = ingest.arrival(event)
    run = EventRun(ingest, Scope(event, at, ingest.settings, ingest.look_up))
    return Explanation(
        name=event.name,
        at=at,
        handlers=[_explain_handler(run, handler) for handler in plan.handlers],
        duplicate=event.id is not None and ingest.is_duplicate(event.id),
    )


def _explain_handler(run: EventRun, handler: CompiledHandler) -> HandlerExplanation:
    skipped = len(run.skipped)
    keys: list[str] = []
    writes: list[Write] = []
    error: str | None = None
    try:
        step = run.resolve(handler)
        if step is not None:
            run.write(step)
            keys = [key.decode() for key in step.keys]
            values = [value.decode() for value in step.values]
            writes = [Write(key=key, value=value) for key in keys for value in values]
    except HoldfastError as failure:
        error = failure.message
    reason = run.skipped[-1] if len(run.skipped) > skipped else None
    return HandlerExplanation(
        handler=handler.name,
        operation=handler.operation,
        keys=keys,
        writes=[] if reason else writes,
        job=run.explained_job(handler),
        missing=reason.missing if reason else None,
        error=error or (reason.error if reason else None),
        schema=handler.schema,
    )
