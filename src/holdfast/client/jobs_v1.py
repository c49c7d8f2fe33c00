"""The calls of version 1 of Qless over the network: `client.jobs.v1.put(...)`."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from holdfast.jobs.v1 import V1_CALLS, JobsV1

if TYPE_CHECKING:
    from holdfast.client.generated.async_jobs import AsyncJobs
    from holdfast.client.jobs import ClientJobs


def _arguments(
    method: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of a call by their names."""
    bound = inspect.signature(method).bind(None, *given, **named).arguments
    return {name: value for name, value in bound.items() if name != "self"}


def _called(name: str) -> Callable[..., Any]:
    method = getattr(JobsV1, name)
    result = get_type_hints(method)["return"]

    def call(self: Any, *given: Any, **named: Any) -> Any:
        answer = self._jobs.v1_call(name, named=_arguments(method, given, named))
        return msgspec.convert(answer, result)

    return call


def _awaited(name: str) -> Callable[..., Any]:
    method = getattr(JobsV1, name)
    result = get_type_hints(method)["return"]

    async def call(self: Any, *given: Any, **named: Any) -> Any:
        answer = await self._jobs.v1_call(name, named=_arguments(method, given, named))
        return msgspec.convert(answer, result)

    return call


if TYPE_CHECKING:

    class ClientJobsV1(JobsV1):
        """The calls of version 1 of Qless, each in a transaction of the server."""

        def __init__(self, jobs: ClientJobs) -> None: ...

    class AsyncJobsV1:
        """The calls of version 1 of Qless, for `await`."""

        def __init__(self, jobs: AsyncJobs) -> None: ...
        def __getattr__(self, name: str) -> Callable[..., Any]: ...

else:

    def _init(self: Any, jobs: Any) -> None:
        self._jobs = jobs

    _SYNC = {"__init__": _init, **{name: _called(name) for name in V1_CALLS}}
    _ASYNC = {"__init__": _init, **{name: _awaited(name) for name in V1_CALLS}}
    ClientJobsV1 = type("ClientJobsV1", (), _SYNC)
    AsyncJobsV1 = type("AsyncJobsV1", (), _ASYNC)
