"""Injection: provided objects, made once in a process and closed at its end."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.errors import BadTask
from holdfast.store import Store
from holdfast.tasks import Run, Tasks, provided
from holdfast.testing import run_tasks


class Mailer:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def send(self, to: str) -> None:
        self.log.append(f"to {to}")


class Closing(Mailer):
    def close(self) -> None:
        self.log.append("closed")


def test_an_object_is_made_once_and_closed_at_the_end(store: Store) -> None:
    tasks, log = Tasks(), list[str]()

    def make() -> Closing:
        log.append("made")
        return Closing(log)

    tasks.provide(Mailer, make)

    @tasks.task
    def send(to: str, mailer: Mailer = provided) -> None:
        mailer.send(to)

    send.put_many(store, [("ann",), ("bob",)])
    run_tasks(store, tasks)

    assert log == ["made", "to ann", "to bob", "closed"]


def test_a_generator_is_entered_and_left(store: Store) -> None:
    tasks, log = Tasks(), list[str]()

    def make() -> Iterator[Mailer]:
        log.append("entered")
        yield Mailer(log)
        log.append("left")

    tasks.provide(Mailer, make)

    @tasks.task
    def send(run: Run, mailer: Mailer, to: str) -> None:
        mailer.send(to)

    store.jobs.put("default", send.name, {"to": "ann"})
    run_tasks(store, tasks)

    assert log == ["entered", "to ann", "left"]


def test_an_async_generator_lives_on_the_loop_of_the_tasks(store: Store) -> None:
    tasks, log = Tasks(), list[str]()
    loops: set[int] = set()

    async def make() -> AsyncIterator[Mailer]:
        loops.add(id(asyncio.get_running_loop()))
        yield Mailer(log)
        loops.add(id(asyncio.get_running_loop()))
        log.append("left")

    tasks.provide(Mailer, make)

    @tasks.task
    async def send(to: str, mailer: Mailer = provided) -> None:
        loops.add(id(asyncio.get_running_loop()))
        mailer.send(to)

    send.put(store, "ann")
    run_tasks(store, tasks)

    assert log == ["to ann", "left"]
    assert len(loops) == 1


def test_a_coroutine_function_may_make_it(store: Store) -> None:
    tasks, log = Tasks(), list[str]()

    async def make() -> Mailer:
        return Mailer(log)

    tasks.provide(Mailer, make)

    @tasks.task
    def send(to: str, mailer: Mailer = provided) -> None:
        mailer.send(to)

    send.put(store, "ann")
    run_tasks(store, tasks)

    assert log == ["to ann"]


def test_an_outer_registry_provides_for_the_included_ones(store: Store) -> None:
    app, mail, log = Tasks("app"), Tasks("mail"), list[str]()
    app.include(mail)
    app.provide(Mailer, lambda: Mailer(log))

    @mail.task
    def send(to: str, mailer: Mailer = provided) -> None:
        mailer.send(to)

    send.put(store, "ann")
    run_tasks(store, app)

    assert log == ["to ann"]


def test_what_nobody_provides_is_named(store: Store) -> None:
    tasks = Tasks()

    @tasks.task(name="send")
    def send(mailer: Mailer = provided) -> None: ...

    send.put(store)

    with pytest.raises(BadTask, match="task send needs a Mailer, which is not provided"):
        run_tasks(store, tasks)


def test_one_type_is_provided_once() -> None:
    tasks = Tasks()
    tasks.provide(Mailer, lambda: None)

    with pytest.raises(BadTask, match="twice"):
        tasks.provide(Mailer, lambda: None)
