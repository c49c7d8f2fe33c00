"""Operations that are sent together: a batch is one transaction, a pipeline is many."""

import asyncio
import signal
import threading
from contextlib import suppress
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import wire
from holdfast.client import Handle
from holdfast.entities import Model, column, schema_yaml
from holdfast.errors import (
    BadInput,
    DuplicateKey,
    InvalidTable,
    OutcomeUnknown,
    RequestTooLarge,
    UnknownJob,
    Unreachable,
)
from holdfast.limits import MAX_BATCH_COMMANDS
from holdfast.testing import temporary_store
from tests.client.both_clients import connected
from tests.client.scripted import CLOSE, HANG, at, scripted, well


class Order(Model, schema="shop", table="Orders"):
    customer: str = column(required=True)
    total: float = column(default=0.0)


def test_a_batch_is_one_transaction_whose_results_are_with_their_handles(client: Any) -> None:
    client.entities.deploy(schema_yaml(Order))
    client.metrics.define({"orders": {"lifetime": True}})
    order = Order(customer="ann", total=25.0)

    with client.batch() as batch:
        ids = batch.entities.put(order)
        job = batch.jobs.put("emails", "shop.SendReceipt", {"to": "ann"}, id="receipt")
        batch.metrics.incr("orders")
        found = batch.entities.select(Order, limit=5)
        counted = batch.metrics.lifetime("orders")

    assert (job.result(), counted.result()) == ("receipt", 1)
    assert ids.result() == [order.id]
    assert [each.customer for each in found.result()] == ["ann"]
    assert client.entities.get_one(Order, order.id).total == 25.0


def test_a_batch_is_done_as_a_whole_or_not_at_all(client: Any) -> None:
    with pytest.raises(UnknownJob) as failed, client.batch() as batch:
        put = batch.jobs.put("q", id="a")
        batch.jobs.tag("a", "blue")
        batch.jobs.complete("nobody", "worker")
        batch.jobs.put("q", id="b")

    assert failed.value.position == 2
    assert failed.value.__notes__ == ["at position 2 of the batch"]
    assert client.jobs.multiget("a", "b") == []
    with pytest.raises(UnknownJob):
        put.result()


def test_an_operation_that_is_refused_before_it_runs_has_its_position_too(client: Any) -> None:
    with (
        pytest.raises(BadInput, match="`id` must be text, not a whole number") as failed,
        client.batch() as batch,
    ):
        batch.jobs.put("q", id="a")
        batch.jobs.get(5)

    assert failed.value.position == 1
    assert client.jobs.get("a") is None


def test_a_block_that_raises_sends_nothing(client: Any) -> None:
    with pytest.raises(ZeroDivisionError), client.batch() as batch:
        batch.jobs.put("q", id="a")
        1 / 0  # noqa: B018

    assert client.jobs.get("a") is None


def test_a_result_is_not_there_before_the_batch_was_sent(client: Any) -> None:
    with client.batch() as batch:
        put = batch.jobs.put("q")

        with pytest.raises(BadInput, match="the operations were not sent"):
            put.result()

    with pytest.raises(BadInput, match="this batch or pipeline was already sent"):
        batch.jobs.put("q")


def test_a_batch_without_operations_does_nothing(client: Any) -> None:
    with client.batch() as batch:
        pass

    assert len(batch) == 0


def test_a_batch_has_a_bound(client: Any) -> None:
    with pytest.raises(RequestTooLarge, match="at most"), client.batch() as batch:
        for _ in range(MAX_BATCH_COMMANDS + 1):
            batch.jobs.get("a")


def test_models_in_a_batch_do_what_they_do_alone(client: Any) -> None:
    client.entities.deploy(schema_yaml(Order))
    ann, ben = Order(customer="ann"), Order(customer="ben")
    client.entities.put(ann, ben)

    with client.batch() as batch:
        raised = batch.entities.update(Order, Order.id == ann.id, total=7.0)
        deleted = batch.entities.delete(Order, Order.id == ben.id)
        left = batch.entities.count(Order)
        one = batch.entities.get_one(Order, ann.id)
        none = batch.entities.get_one(Order, ben.id)
        some = batch.entities.get(Order, ann.id, ben.id)

    assert (raised.result(), deleted.result(), left.result()) == (1, 1, 1)
    assert (one.result().total, none.result(), len(some.result())) == (7.0, None, 1)


def test_objects_of_a_batch_that_failed_have_no_ids(client: Any) -> None:
    client.entities.deploy(schema_yaml(Order))
    order = Order(customer="ann")

    with pytest.raises((DuplicateKey, InvalidTable)) as failed, client.batch() as batch:
        batch.entities.put(order)
        batch.entities.put_raw("no.Table", [{"a": 1}])

    assert failed.value.position == 1
    assert order.id is None


# --- pipelines -----------------------------------------------------------------------------------


def test_operations_of_a_pipeline_fail_each_for_itself(client: Any) -> None:
    with client.pipeline() as pipeline:
        put = pipeline.jobs.put("q", id="a")
        complete = pipeline.jobs.complete("nobody", "worker")
        got = pipeline.jobs.get("a")

    job = got.result()
    assert put.result() == "a"
    assert job is not None
    assert job.id == "a"
    with pytest.raises(UnknownJob):
        complete.result()


def test_a_pipeline_may_be_longer_than_what_travels_at_once(client: Any) -> None:
    with client.pipeline() as pipeline:
        put = [pipeline.jobs.put("q", id=f"{number}") for number in range(1_200)]

    assert [handle.result() for handle in put] == [f"{number}" for number in range(1_200)]
    assert client.jobs.length("q") == 1_200


def test_a_pipeline_whose_block_raises_or_is_empty_sends_nothing(client: Any) -> None:
    with client.pipeline():
        pass
    with pytest.raises(ZeroDivisionError), client.pipeline() as pipeline:
        pipeline.jobs.put("q", id="a")
        1 / 0  # noqa: B018

    assert client.jobs.get("a") is None


def test_a_pipeline_that_breaks_says_of_each_operation_what_is_known(mode: str) -> None:
    with scripted(at("JOBS.UNTRACK", CLOSE)) as server, connected(mode, server.url) as client:
        with client.pipeline() as pipeline:
            answered = pipeline.jobs.unpause("q")
            lost = pipeline.jobs.untrack("a")
            read = pipeline.jobs.get("a")

        assert answered.result() is None
        with pytest.raises(OutcomeUnknown):
            lost.result()
        with pytest.raises(holdfast.errors.NoAnswer):
            read.result()
    assert not issubclass(OutcomeUnknown, Unreachable)


def test_a_pipeline_that_breaks_while_it_is_sent_calls_no_command_of_it_unsent(mode: str) -> None:
    with scripted(at("JOBS.PUT", CLOSE)) as server, connected(mode, server.url) as client:
        with client.pipeline() as pipeline:
            put = [pipeline.jobs.put("q", data="x" * 100_000) for _ in range(200)]

        for handle in put:
            with pytest.raises(OutcomeUnknown):
                handle.result()
        assert server.came == ["JOBS.PUT"]


def test_a_pipeline_is_read_while_it_is_sent(mode: str) -> None:
    answer = wire.bulk(msgspec.msgpack.encode("y" * 100_000))
    with scripted(at("JOBS.PUT", answer)) as server, connected(mode, server.url) as client:
        with client.pipeline() as pipeline:
            put = [pipeline.jobs.put("q", data="x" * 100_000) for _ in range(200)]

        assert [len(handle.result()) for handle in put] == [100_000] * 200


def test_the_handles_of_a_batch_that_was_not_answered_say_so(mode: str) -> None:
    with scripted(at("EXEC", CLOSE)) as server, connected(mode, server.url) as client:
        with pytest.raises(OutcomeUnknown), client.batch() as batch:
            put = batch.jobs.put("q")

        with pytest.raises(OutcomeUnknown):
            put.result()


@pytest.mark.parametrize("kind", ["batch", "pipeline"])
def test_the_handles_of_what_was_cancelled_say_that_the_outcome_is_unknown(kind: str) -> None:
    async def send(client: Any) -> Handle[str]:
        with suppress(TimeoutError):
            async with asyncio.timeout(0), getattr(client, kind)() as recording:
                put: Handle[str] = recording.jobs.put("q")
        return put

    async def send_to(url: str) -> Handle[str]:
        async with holdfast.aio.connect(url) as client:
            return await send(client)

    with scripted(at("JOBS.PUT", HANG)) as server, temporary_store() as store:
        for put in (asyncio.run(send_to(server.url)), asyncio.run(send(store.aio))):
            with pytest.raises(OutcomeUnknown, match="interrupted"):
                put.result()


@pytest.mark.parametrize("kind", ["batch", "pipeline"])
def test_the_handles_of_what_was_interrupted_say_that_the_outcome_is_unknown(kind: str) -> None:
    def interrupt(command: wire.Command) -> bytes:
        if command[0] == b"JOBS.PUT":
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            return HANG
        return well(command)

    with scripted(interrupt) as server, holdfast.connect(server.url) as client:
        with pytest.raises(KeyboardInterrupt), getattr(client, kind)() as recording:
            put = recording.jobs.put("q")

        with pytest.raises(OutcomeUnknown, match="interrupted"):
            put.result()


@pytest.mark.parametrize(
    ("layer", "operation"),
    [("jobs", "pop_wait"), ("jobs", "cancel_queue"), ("entities", "deploy"), ("jobs", "cancel")],
)
def test_what_can_be_no_part_of_a_batch_says_why(client: Any, layer: str, operation: str) -> None:
    for recording in (client.batch, client.pipeline):
        with recording() as recorded, pytest.raises(AttributeError, match="several transactions"):
            getattr(getattr(recorded, layer), operation)
    with client.batch() as batch, pytest.raises(AttributeError, match="did you mean 'put'"):
        batch.jobs.putt  # noqa: B018
