"""Arguments of a wrong type: every operation of every class refuses them, and nothing happens."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Any, get_type_hints

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import Jobs, JobSearch, Match, NewJob, StoreJobs, WorkerProgram
from holdfast.jobs.argument_types import kind_of
from holdfast.jobs.v1 import JobsV1
from holdfast.store import Store
from tests.plain_keys import keys_below

# One of each kind; which of them an argument does not take is up to its type.
VALUES: tuple[Any, ...] = (
    *(None, True, 1.5, float("nan"), float("-inf"), 2**63, 10**400, "3", b"3"),
    *([None], [["a"]], {1: 2}, object(), [NewJob(queue=5)]),  # type: ignore[arg-type]  # wrong, on purpose
)
RIGHT: tuple[Any, ...] = ("a", 1, 1.0, Match(), JobSearch(), WorkerProgram(name="a"), [])


def methods(layer: type[Any]) -> list[str]:
    return [
        name
        for name in dir(layer)
        if not name.startswith("_") and inspect.isfunction(inspect.getattr_static(layer, name))
    ]


def arguments(
    method: Callable[..., Any], wrong: str, value: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Returns arguments for `method`: `value` as the argument `wrong`, and what else it needs."""
    hints = get_type_hints(method)
    given: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += [value] if parameter.name == wrong else []
        elif parameter.name == wrong:
            named[parameter.name] = value
        elif parameter.default is parameter.empty:
            named[parameter.name] = next(filter(kind_of(hints[parameter.name]).fits, RIGHT))
    if given:  # what comes before them can't be named
        given = [*named.values(), *given]
        named = {}
    return given, named


@pytest.mark.parametrize("layer", [Jobs, JobsV1, StoreJobs])
def test_an_argument_of_a_wrong_type_is_refused_and_nothing_happens(
    store: Store, layer: type[Any]
) -> None:
    store.jobs.put("queue", id="a")
    before = keys_below(store, store)

    for name in methods(layer):
        method = inspect.unwrap(getattr(layer, name))
        for parameter, hint in get_type_hints(method).items():
            fits = kind_of(hint).fits
            if parameter == "return" or fits is None:
                continue
            for value in (value for value in VALUES if not fits(value)):
                given, named = arguments(method, parameter, value)
                with pytest.raises(BadArgument, match=rf"^{parameter} must be "):
                    called(store, layer, name)(*given, **named)

    assert keys_below(store, store) == before


def called(store: Store, layer: type[Any], name: str) -> Callable[..., Any]:
    if layer is StoreJobs:
        method: Callable[..., Any] = getattr(store.jobs, name)
        return method
    if layer is JobsV1:
        method = getattr(store.jobs.v1, name)
        return method
    return lambda *args, **kwargs: store._runner.transact(
        lambda tx: getattr(Jobs(tx), name)(*args, **kwargs)
    )


def test_the_error_says_what_came_and_what_was_expected(store: Store) -> None:
    with pytest.raises(BadArgument) as error:
        store.jobs.pop("queue", "worker", "3")  # type: ignore[arg-type]  # wrong, on purpose
    assert error.value.message == "count must be a whole number of 64 bits, not '3'"

    with pytest.raises(BadArgument) as error:
        store.jobs.put("queue", tags="urgent")
    assert error.value.message == (
        "tags must be a list, each of them text or a whole number of 64 bits or a number or None, "
        "not 'urgent'"
    )


BY_NAME = (
    *("cancel", "cancel_queue", "counts", "failed_in", "get", "length", "multiget", "pause"),
    *("peek", "queue_forget", "recur_get", "result", "stats", "tagged", "throttle_get"),
    *("throttle_locks", "throttle_pending", "track", "unpause", "unrecur", "worker"),
    "worker_deregister",
)


def test_nothing_has_an_empty_name(store: Store) -> None:
    for operation in BY_NAME:
        with pytest.raises(BadArgument, match="must not be empty"):
            getattr(store.jobs, operation)("")


def test_a_number_with_too_many_digits_to_be_shown_is_refused(store: Store) -> None:
    with pytest.raises(BadArgument, match="something of type int"):
        store.jobs.put("queue", priority=10**5000)


def test_names_may_be_members_of_an_enumeration(store: Store) -> None:
    class Queues(StrEnum):
        MAIL = "mail"

    store.jobs.put(Queues.MAIL, id="a")

    assert [job.queue for job in store.jobs.pop(Queues.MAIL, "worker")] == ["mail"]


def test_lists_may_be_tuples_and_sets(store: Store) -> None:
    store.jobs.put("queue", id="a", tags={"x"}, depends=("b",))  # type: ignore[arg-type]  # a set, as before

    assert store.jobs.tagged("x").jobs == ("a",)


@pytest.mark.parametrize("delay", ["1 day", timedelta(days=1)])
def test_a_duration_of_another_kind_is_told_its_unit(store: Store, delay: Any) -> None:
    with pytest.raises(BadArgument, match=r"numbers of seconds: 60"):
        store.jobs.put("emails", delay=delay)


class Queue(str, Enum):  # noqa: UP042 - as written before StrEnum
    MAILS = "mails"


def test_a_member_of_an_enumeration_names_the_queue_and_the_job_of_its_value(store: Store) -> None:
    store.jobs.put(Queue.MAILS, id=Queue.MAILS, tags=[Queue.MAILS])

    assert [each.name for each in store.jobs.queues()] == ["mails"]
    assert store.jobs.get("mails") == store.jobs.get(Queue.MAILS) is not None
    assert [job.id for job in store.jobs.pop("mails", "worker")] == ["mails"]
