"""The clients beyond single operations: handles, streams, scans and long lists."""

import asyncio
import inspect
from typing import Any

import pytest

import holdfast
from holdfast.client.generated.async_handles import AsyncJobHandle, AsyncQueueHandle
from holdfast.errors import UnknownJob
from holdfast.jobs.handles import JobHandle, QueueHandle
from holdfast.limits import EVENTS_PER_STREAM_STEP, JOBS_PER_STEP

PAGES = {
    "table": "pages",
    "attributes": {"title": "string", "length": "int"},
    "index": [
        {"type": "hash", "attribute": "title"},
        {"type": "range", "attribute": "length", "order": "asc"},
    ],
}


def test_handles_on_a_queue_and_a_job_do_what_the_calls_do(url: str) -> None:
    with holdfast.connect(url) as client:
        queue = client.jobs.queue("emails")

        id = queue.put("app.Send", {"to": "ann"})
        [job] = queue.pop("worker")
        client.jobs[id].complete("worker")

        assert (job.id, len(queue), queue.counts().running) == (id, 0, 0)
        assert client.jobs[id].get().state == "complete"
        with pytest.raises(UnknownJob):
            client.jobs["nobody"].get()


def test_handles_of_the_async_client_are_awaited(url: str) -> None:
    async def run() -> None:
        async with holdfast.aio.connect(url) as client:
            queue, other = client.jobs.queue("letters"), client.jobs.queue("other")
            id = await queue.put("app.Send", {"to": "ann"}, retries=2)
            job = client.jobs[id]
            assert (queue.name, job.id, await queue.length()) == ("letters", id, 1)
            assert [each.id for each in await queue.peek()] == [id]

            await queue.pause()
            assert await queue.pop("worker") == []
            await queue.unpause()
            [popped] = await queue.pop_wait("worker", timeout=10)
            assert await job.heartbeat("worker") >= popped.expires
            await job.log("half way", {"percent": 50})
            await job.priority(7)
            assert await job.retry("worker") == 1
            assert await job.move("other") == id
            [popped] = await other.pop("worker")
            await job.timeout()
            [popped] = await other.pop("worker")
            assert await job.fail("worker", "timeout", "too late") == id
            assert (await other.stats()).failed == 1
            await job.move("other")
            [popped] = await other.pop("worker")
            assert await job.complete("worker", result={"sent": True}) == "complete"
            assert await job.result() == {"sent": True}
            assert (await job.get()).priority == 7
            assert (await other.counts()).running == 0

            await client.jobs[await queue.put()].cancel()
            assert await queue.length() == 0
            with pytest.raises(UnknownJob):
                await client.jobs["nobody"].get()

    asyncio.run(run())


def test_both_kinds_of_a_handle_have_the_same_methods() -> None:
    def signatures(kind: type) -> dict[str, str]:
        names = [name for name in dir(kind) if not name.startswith("_")]
        methods = {name: getattr(kind, name) for name in names}
        return {n: str(inspect.signature(m)) for n, m in methods.items() if callable(m)}

    awaited = signatures(AsyncQueueHandle)
    assert awaited.pop("length") == "(self) -> int"  # `len` can't be awaited
    assert awaited == signatures(QueueHandle)
    assert signatures(AsyncJobHandle) == signatures(JobHandle)


def test_any_number_of_jobs_is_put_in_steps_with_await_too(url: str) -> None:
    async def run() -> tuple[int, int]:
        async with holdfast.aio.connect(url) as client:
            jobs = [{"queue": "many"} for _ in range(JOBS_PER_STEP + 5)]
            ids = [id async for id in client.jobs.put_all(jobs)]
            return len(ids), await client.jobs.length("many")

    assert asyncio.run(run()) == (JOBS_PER_STEP + 5, JOBS_PER_STEP + 5)


def test_any_number_of_jobs_is_put_in_steps(url: str) -> None:
    with holdfast.connect(url) as client:
        jobs = [{"queue": "q", "id": f"{number}"} for number in range(JOBS_PER_STEP + 5)]

        ids = list(client.jobs.put_all(jobs))

        assert (len(ids), client.jobs.length("q")) == (JOBS_PER_STEP + 5, JOBS_PER_STEP + 5)


def test_a_stream_of_events_names_the_positions_of_bad_ones(client: Any) -> None:
    client.events.deploy({"visit": [{"targets": ["['visitors']"], "add": "who"}]})
    events: list[Any] = [
        {"name": "visit", "attributes": {"who": f"{number}"}}
        for number in range(EVENTS_PER_STREAM_STEP + 2)
    ]
    events[1] = {"name": 5}
    events.append({"cake": 1})

    reply = client.events.send_stream(iter(events))

    assert reply.accepted == EVENTS_PER_STREAM_STEP + 1
    assert [error.position for error in reply.errors] == [1, EVENTS_PER_STREAM_STEP + 2]
    assert client.events.size("visitors") == EVENTS_PER_STREAM_STEP + 1


def test_reads_of_events_have_the_types_of_their_operations(client: Any) -> None:
    client.events.deploy({"visit": [{"targets": ["['visitors']"], "add": "who"}]})
    client.events.send({"name": "visit", "attributes": {"who": "ann"}})

    queries = ["#visitors", "visitors", {"op": "contains", "key": "visitors", "value": "ann"}]
    size, members, member = client.events.read(queries)
    with client.batch() as batch:
        read = batch.events.read(queries)

    assert (size, members.members[0].value, member.value) == (1, "ann", "ann")
    assert read.result() == [size, members, member]


def test_a_scan_gives_all_rows_page_by_page(url: str) -> None:
    with holdfast.connect(url) as client:
        _write_pages(client)

        rows = list(client.tables.scan("pages", {"title": "A"}))
        lines = list(client.tables.export("pages", {"title": "A"}, proj=["length"]))

        assert [row["length"] for row in rows] == list(range(1_500))
        assert lines[7].rstrip() == b'{"length":7}'

    async def scan() -> list[int]:
        async with holdfast.aio.connect(url) as client:
            return [row["length"] async for row in client.tables.scan("pages", {"title": "A"})]

    assert asyncio.run(scan()) == list(range(1_500))


@pytest.mark.parametrize("format", ["ndjson", "csv"])
def test_an_export_is_the_same_on_both_clients(url: str, format: Any) -> None:
    async def export() -> bytes:
        async with holdfast.aio.connect(url) as client:
            lines = client.tables.export("pages", {"title": "A"}, format=format)
            return b"".join([line async for line in lines])

    with holdfast.connect(url) as client:
        _write_pages(client)
        lines = b"".join(client.tables.export("pages", {"title": "A"}, format=format))

    assert lines.count(b"\n") == 1_500 + (format == "csv")
    assert asyncio.run(export()) == lines


def _write_pages(client: Any) -> None:
    client.tables.create(PAGES)
    puts = [
        {"op": "put", "table": "pages", "attributes": {"title": "A", "length": length}}
        for length in range(1_500)
    ]
    client.tables.batch(puts[:750])
    client.tables.batch(puts[750:])


def test_the_calls_of_the_first_qless_work_over_the_network(url: str) -> None:
    with holdfast.connect(url) as client:
        seed = client.jobs.v1
        seed.put("old", "deadbeef", '{"a": 1}', 0, -5, ["x"])
        [job] = seed.pop("old", "worker", 1, 1, 60)

        assert (job.id, job.priority, job.state) == ("deadbeef", -5, "pending")
        assert seed.complete("deadbeef", worker="other") is None
        assert seed.complete("deadbeef") == "complete"
        assert client.jobs.v1_call("get", ["deadbeef"])["state"] == "complete"


def test_the_calls_of_the_first_qless_are_awaited(url: str) -> None:
    async def run() -> None:
        async with holdfast.aio.connect(url) as client:
            await client.jobs.v1.put("older", "beef", "{}", 0)
            job = await client.jobs.v1.get("beef")
            assert (job.id, job.queue) == ("beef", "older")

    asyncio.run(run())
