"""Errors of events."""

from holdfast.errors.base import BadInput, NotFound


class InvalidEventSchema(BadInput):
    """A schema has errors; `problems` has a sentence for each, with its place in the schema."""

    code = "invalid_schema"
    hint = "Nothing was deployed. Fix these problems and deploy it again."
    facts = {"problems": list}  # noqa: RUF012  # nobody changes it

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


InvalidSchema = InvalidEventSchema  # its former name, which programs may import


class UnknownSchema(NotFound):
    """No schema of that name is deployed."""

    code = "unknown_schema"
    hint = "`events.schemas()` lists those that are deployed."


class InvalidEvent(BadInput):
    """An event is invalid; nothing of it was written."""

    code = "invalid_event"


class ExpandsTooFar(BadInput):
    """A handler would make more writes than one event may; nothing of the event was written."""

    code = "expands_too_far"


class WrongKind(BadInput):
    """The key holds a leaderboard and was read as a set, or the other way round."""

    code, status = "wrong_kind", 409


class CountersWithoutTimes(BadInput):
    """A count with `since` needs counters that keep times, and those of this key do not."""

    code, status = "counters_without_times", 409
    hint = 'Set `"windowed_counters": true` in the handlers of the key; times count from then on.'


class IncompleteCounter(BadInput):
    """A count with `complete` is impossible: the key was written to while its counter was off."""

    code, status = "incomplete_counter", 409
    hint = "Keep the counter on in all handlers of the key, or count without `complete`."


class NoJobQueue(BadInput):
    """A handler enqueues a job, but the events layer was opened without a jobs layer."""

    code, status = "no_job_queue", 409
    hint = "Send the event with `store.events.send`, which has the jobs of the store."
