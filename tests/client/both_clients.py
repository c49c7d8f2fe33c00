"""The sync and the async client with one interface, so that one test covers both."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import holdfast


class Awaiting:
    """An object of the async client, whose calls are awaited at once."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self._inner = inner
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        return self._shown(getattr(self._inner, name))

    def __call__(self, *args: Any, **options: Any) -> Any:
        result = self._inner(*map(_bare, args), **options)
        if asyncio.iscoroutine(result):
            result = self._runner.run(result)
        return self._shown(result)

    def __enter__(self) -> Any:
        return self._shown(self._runner.run(self._inner.__aenter__()))

    def __exit__(self, *exc: Any) -> Any:
        return self._runner.run(self._inner.__aexit__(*exc))

    def _shown(self, thing: Any) -> Any:
        """Classes of the client's own are awaited too; results, handles and batches are not."""
        if type(thing) is dict:
            return {name: self._shown(each) for name, each in thing.items()}
        home = getattr(type(thing), "__module__", "")
        ours = ("holdfast.client.async", "holdfast.client.generated", "holdfast.async_store")
        is_ours = home.startswith(ours)
        is_face = home.startswith("holdfast.client.") and type(thing).__name__.startswith("Async")
        if is_ours or is_face or callable(thing) or hasattr(thing, "__aenter__"):
            return Awaiting(thing, self._runner)
        return thing


def _bare(argument: Any) -> Any:
    """An argument as the async client made it."""
    if type(argument) is dict:
        return {name: _bare(each) for name, each in argument.items()}
    if type(argument) is list:
        return [_bare(each) for each in argument]
    return argument._inner if isinstance(argument, Awaiting) else argument


@contextmanager
def connected(mode: str, url: str, **options: Any) -> Iterator[Any]:
    """A sync or async client, to be used without `await`."""
    if mode == "sync":
        with holdfast.connect(url, **options) as client:
            yield client
        return
    with asyncio.Runner() as runner:

        async def connect() -> Any:
            return await holdfast.aio.connect(url, **options)

        awaiting = Awaiting(runner.run(connect()), runner)
        try:
            yield awaiting
        finally:
            awaiting.close()
