"""The message that a worker prints at its start: what it serves, and what no worker serves."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from holdfast.limits import MAX_UNSERVED_SHOWN, PEEKED_JOBS

if TYPE_CHECKING:
    from holdfast.tasks.loading import WorkerSource
    from holdfast.tasks.worker import Worker

__all__ = ["start_message"]


def start_message(worker: "Worker", source: "WorkerSource", where: Any) -> str:
    """Returns the lines that a worker prints when it starts."""
    tasks = worker.runtime.tasks
    kinds = Counter(slot.kind for slot in worker.slots)
    queues = worker.served.current()
    lines = [
        f"Holdfast worker {worker.name} on {source.describe()}"
        + (f", space {where.name}" if where.name else ""),
        f"  queues     {_listed(queues)}",
        f"  slots      {', '.join(f'{count} {kind}' for kind, count in kinds.items())}",
        f"  tasks      {_listed([task.name for task in tasks])}",
    ]
    if schedules := tasks.schedules:
        lines.append(f"  schedules  {_listed([each.describe() for each in schedules])}")
    lines += [f"  warning: {line}" for line in _unserved(worker, where)]
    return "\n".join(lines)


def _unserved(worker: "Worker", where: Any) -> list[str]:
    """Lists queues that no live worker serves, and tasks that this worker does not have."""
    found = []
    served = {queue for program in where.jobs.worker_programs() for queue in program.queues}
    unserved = [
        f"{queue.name} ({queue.waiting} waiting)"
        for queue in where.jobs.queues()
        if queue.waiting and queue.name not in served and not worker.served.wants(queue.name)
    ]
    if unserved:
        found.append(f"no worker serves {_listed(unserved)}")
    unknown = {
        job.klass
        for queue in worker.served.current()[:MAX_UNSERVED_SHOWN]
        for job in where.jobs.peek(queue, count=PEEKED_JOBS)
        if worker.runtime.tasks.find(job.klass) is None
    }
    if unknown:
        found.append(f"jobs wait for tasks that are not here: {_listed(sorted(unknown))}")
    return found


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    shown = ", ".join(names[:MAX_UNSERVED_SHOWN])
    more = len(names) - MAX_UNSERVED_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
