"""Registries: names, defaults, inclusion, options."""

from typing import Any

import pytest

from holdfast.errors import BadTask
from holdfast.store import Store
from holdfast.tasks import Run, Tasks, Tx, exponential
from holdfast.testing import run_tasks


def test_a_task_is_called_by_its_module_and_name_unless_it_says_otherwise() -> None:
    tasks = Tasks()

    @tasks.task
    def unnamed() -> None: ...

    @tasks.task(name="mail.send")
    def named() -> None: ...

    assert unnamed.name == f"{__name__}.{unnamed.function.__qualname__}"
    assert [task.name for task in tasks] == [unnamed.name, "mail.send"]


def test_two_tasks_of_one_name_are_refused_where_they_are_declared() -> None:
    tasks = Tasks()
    tasks.task(name="send")(print)

    with pytest.raises(BadTask, match="two tasks are called 'send'"):
        tasks.task(name="send")(repr)


def test_a_registry_gives_defaults_to_its_tasks(store: Store) -> None:
    tasks = Tasks(queue="mail", retries=2, priority=3, tags=["a"])

    @tasks.task
    def usual() -> None: ...

    @tasks.task(queue="urgent", retries=9, tags=["b"])
    def special() -> None: ...

    first, second = usual.put(store).get(), special.put(store).get()

    assert first is not None
    assert second is not None
    assert (first.queue, first.retries, first.priority, first.tags) == ("mail", 2, 3, ("a",))
    assert (second.queue, second.retries, second.priority, second.tags) == ("urgent", 9, 3, ("b",))
    assert tasks.queues == ["mail", "urgent"]


def test_a_registry_can_be_included_in_another(store: Store) -> None:
    billing, app = Tasks("billing", queue="billing"), Tasks("app")
    ran: list[str] = []

    @billing.task
    def charge() -> None:
        ran.append("charge")

    app.include(billing)

    @billing.task
    def later() -> None:
        ran.append("later")

    charge.put(store)
    later.put(store)
    run_tasks(store, app)

    assert ran == ["charge", "later"]
    assert len(app) == 2


def test_inclusion_refuses_a_double_name_on_either_side() -> None:
    billing, app = Tasks("billing"), Tasks("app")
    billing.task(name="send")(print)
    app.task(name="send")(repr)

    with pytest.raises(BadTask, match="two tasks"):
        app.include(billing)

    other = Tasks("other")
    app.include(other)
    with pytest.raises(BadTask, match="two tasks"):
        other.task(name="send")(abs)


def test_registries_do_not_include_each_other() -> None:
    one, two = Tasks("one"), Tasks("two")
    one.include(two)

    with pytest.raises(BadTask, match="already"):
        two.include(one)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retrys": 3}, "no option 'retrys'"),
        ({"timeout": 0}, "timeout of a task must be above 0"),
        ({"retries": -1}, "0 or more"),
        ({"tags": "one"}, "a list"),
        ({"fail_on": "ValueError"}, "exception class"),
        ({"backoff": []}, "backoff"),
        ({"backoff": "long"}, "backoff"),
    ],
)
def test_options_that_can_not_be_meant_are_refused(options: Any, words: str) -> None:
    tasks = Tasks()

    with pytest.raises(BadTask, match=words):
        tasks.task(**options)(print)


def test_a_function_that_does_not_tell_its_parameters_is_refused() -> None:
    builtin: Any = max
    task = Tasks().task(name="odd")(builtin)

    with pytest.raises(BadTask, match="the parameters of task odd can't be read"):
        _ = task.parameters


def test_an_async_task_can_not_have_a_transaction() -> None:
    tasks = Tasks()

    @tasks.task
    async def mark(tx: Tx) -> None: ...

    with pytest.raises(BadTask, match="is async and takes a Tx"):
        _ = mark.parameters


def test_a_plain_call_is_the_function_itself() -> None:
    tasks = Tasks()

    @tasks.task(backoff=exponential())
    def double(number: int) -> int:
        """Doubles."""
        return 2 * number

    assert double(21) == 42
    assert double.__doc__ == "Doubles."


def test_the_run_of_a_task_tells_about_its_job(store: Store) -> None:
    tasks = Tasks(queue="q")
    seen: list[Any] = []

    @tasks.task(tags=["t"], retries=4)
    def look(run: Run, order: str) -> None:
        job = run.job
        seen.append((job.id, job.data, job.tags, job.attempt, job.retries_left, job.queue))
        assert run.store is store

    look.options(id="a").put(store, "1001")
    run_tasks(store, tasks)

    assert seen == [("a", {"order": "1001"}, ("t",), 1, 4, "q")]
