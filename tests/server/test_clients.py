"""The client libraries that people have connect and call."""

import asyncio
import json
from typing import Any

import pytest
import redis
import redis.asyncio
import valkey

from tests.server.running import Server

PUT = ("JOBS.PUT", '{"queue":"q","id":"a"}')


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("library", [redis, valkey])
def test_a_library_greets_calls_and_listens(server: Server, library: Any, protocol: int) -> None:
    database = 4 + protocol + (library is valkey) * 2
    with library.Redis(port=server.resp_port, protocol=protocol, db=database) as client:
        listening = client.pubsub()
        listening.subscribe("ql:log")
        assert listening.get_message(timeout=5)["type"] == "subscribe"

        assert client.ping()
        assert client.execute_command(*PUT) == b'"a"'
        assert client.info("replication")["role"] == "master"
        assert client.zcard("ql:q:q-work") == 1
        assert client.config_get("save") in ({"save": ""}, {b"save": b""})
        assert client.hgetall("ql:j:a")[b"queue"] == b"q"
        assert client.client_info()["db"] == database
        assert [line["db"] for line in client.client_list()] == [str(database)]
        message = listening.get_message(timeout=5)
        assert json.loads(message["data"])["event"] == "put"
        listening.close()


@pytest.mark.parametrize("library", [redis, valkey])
def test_an_error_is_the_librarys_own_exception(server: Server, library: Any) -> None:
    with library.Redis(port=server.resp_port) as client:
        with pytest.raises(library.ResponseError, match="UNKNOWN_JOB"):
            client.execute_command("JOBS.COMPLETE", '{"id":"nobody","worker":"w"}')
        assert client.ping()


@pytest.mark.parametrize("protocol", [2, 3])
def test_async_clients_call_too(server: Server, protocol: int) -> None:
    async def call() -> list[Any]:
        client = redis.asyncio.Redis(port=server.resp_port, protocol=protocol, db=15)
        async with client, client.pipeline(transaction=True) as pipeline:
            pipeline.execute_command(*PUT)
            pipeline.execute_command("JOBS.LENGTH", '{"queue":"q"}')
            return list(await pipeline.execute())

    assert asyncio.run(call()) == [b'"a"', b"1"]
