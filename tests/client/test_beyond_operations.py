"""What the clients do beyond single operations: handles, streams, scans and long lists."""

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast.errors import UnknownJob
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


def _write_pages(client: Any) -> None:
    client.tables.create(PAGES)
    puts = [
        {"op": "put", "table": "pages", "attributes": {"title": "A", "length": length}}
        for length in range(1_500)
    ]
    client.tables.batch(puts[:750])
    client.tables.batch(puts[750:])
