"""Errors of events."""

from holdfast.errors.base import BadInput, NotFound


class InvalidEventSchema(BadInput):
    """A schema was refused; `problems` has a sentence for each reason, with its place."""

    code = "invalid_schema"
    hint = "Nothing was deployed. Fix all of these and deploy it again."
    facts = {"problems": list}  # noqa: RUF012  # nobody changes it

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


InvalidSchema = InvalidEventSchema  # its former name, which programs may import


class UnknownSchema(NotFound):
    """No schema of that name is deployed."""

    code = "unknown_schema"
    hint = "`schemas()` lists those that are."


class InvalidEvent(BadInput):
    """An event is not what an event may be; nothing of it was written."""

    code = "invalid_event"


class ExpandsTooFar(BadInput):
    """A handler asks for more writes than one event may make; nothing of the event was written."""

    code = "expands_too_far"


class WrongKind(BadInput):
    """A key holds a set where a leaderboard was asked for, or the other way round."""

    code, status = "wrong_kind", 409


class CountersWithoutTimes(BadInput):
    """A count since a moment was asked of a key whose counters do not keep times."""

    code, status = "counters_without_times", 409
    hint = 'Give the handlers of the key `"windowed_counters": true`; counts begin from then on.'


class IncompleteCounter(BadInput):
    """A complete count was asked of a key that was written to while its counter was off."""

    code, status = "incomplete_counter", 409
    hint = "Keep the counter on in all handlers of the key, or ask without `complete`."


class NoJobQueue(BadInput):
    """A handler enqueues a job, and the layer was given no queue to put it into."""

    code, status = "no_job_queue", 409
    hint = "Send the event through a store, which passes its queue."
