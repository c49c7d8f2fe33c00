"""Writers, readers and limiters of a client: what they hold is here, what they store is there."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import wire
from holdfast.errors import (
    BadLimit,
    LimitExceeded,
    NoAnswer,
    OutcomeUnknown,
    SpecConflict,
    UnknownCondition,
)
from holdfast.metrics import GlobalEntityKey, LimitCondition, LocalEntityKey
from holdfast.metrics.specs import normalize
from tests.client.both_clients import connected
from tests.client.scripted import CLOSE, Behaviour, scripted, well

SPECS: dict[str, dict[str, Any]] = {
    "edits": {"sequences": [{"timeStep": 10, "expiry": 3600}]},
    "load": {"type": "gauge"},
}
AT = 1_000_000.0
DEADLINE = 60.0


def test_a_writer_sends_what_it_holds_when_its_block_ends(client: Any) -> None:
    user = LocalEntityKey(["user", 1])
    with client.metrics.writer(SPECS, prefix="app") as writer:
        writer.set_current_time(AT)
        for _ in range(5):
            writer.incr("edits", user)
        writer.incr("edits", GlobalEntityKey(["all"]), 7)
        writer.set("load", None, 2)
        before = client.metrics.rate("edits", user, latest=60, prefix="app", at=AT).total

    reader = client.metrics.reader(SPECS, prefix="app")
    reader.set_current_time(AT)
    rate = reader.get_rate("edits", user, reader.time_range(AT - 60, AT + 10))
    other = reader.get_rate("edits", GlobalEntityKey(["all"]), reader.time_range(AT - 60, AT + 10))

    assert before == 0
    assert (rate.total(), other.total()) == (5, 7)
    assert rate.per_second() == 5 / 70
    assert client.metrics.gauge("load", latest=60, prefix="app", at=AT).last == 2


def test_a_reader_gives_what_the_operation_gives(client: Any) -> None:
    client.metrics.define(SPECS)
    client.metrics.incr("edits", ["a"], 3, at=AT)
    reader = client.metrics.reader(SPECS)
    reader.set_current_time(AT + 4)

    promises = reader.get_rates(["edits"], ["a"], reader.latest(60))
    asked = client.metrics.rate("edits", ["a"], latest=60, at=AT + 4)

    assert reader.total([promises["edits"]]) == [asked.total]
    assert reader.total(promises) == {"edits": asked.total}
    assert promises["edits"].per_hour() == asked.per_hour
    assert promises["edits"].sequence == asked.sequence
    assert promises["edits"].buckets == (asked.first_bucket, asked.last_bucket)


def test_a_limiter_allows_what_its_conditions_allow(client: Any) -> None:
    limiter = client.metrics.limiter({"user": LimitCondition(2, 60), "ip": "100/minute"})

    assert limiter.try_incr("user", ["ann"]).allowed
    assert limiter.require("user", ["ann"]).remaining == 0
    assert not limiter.peek("user", ["ann"]).allowed
    assert not limiter.acquire("user", ["ann"], timeout=0).allowed
    with pytest.raises(LimitExceeded) as denied:
        limiter.require("user", ["ann"])
    with pytest.raises(UnknownCondition, match="did you mean 'user'"):
        limiter.batch().local_op("usr", 1)

    assert denied.value.result.limit == 2


def test_a_batch_of_a_limiter_counts_all_or_nothing(client: Any) -> None:
    limiter = client.metrics.limiter({"user": "5/minute", "ip": "1/minute"})

    assert limiter.batch().local_op("user", 1).global_op("ip", "192.0.2.7").try_incr().allowed
    denied = limiter.batch().local_op("user", 1).global_op("ip", "192.0.2.7").try_incr()

    assert set(denied.failed) == {"ip"}
    assert limiter.batch().local_op("user", 1).peek().results["user"].remaining == 4


def test_the_burst_of_a_bucket_travels_with_it(client: Any) -> None:
    limiter = client.metrics.limiter({"api": "1/minute burst 3"}, algorithm="gcra")

    allowed = [limiter.try_incr("api").allowed for _ in range(4)]

    assert allowed == [True, True, True, False]
    with pytest.raises(BadLimit):
        client.metrics.limiter({"api": "1/minute burst 3"})


def answering(own: dict[bytes, bytes]) -> Behaviour:
    """A server that knows `SPECS`, and answers some operations in its own way."""
    defined = wire.bulk(msgspec.msgpack.encode(normalize(SPECS)))
    answers = {b"METRICS.DEFINE": defined, **own}
    return lambda command: answers.get(command[0]) or well(command)


def test_a_flush_whose_outcome_is_unknown_is_not_sent_again(mode: str) -> None:
    with (
        scripted(answering({b"METRICS.WRITE": CLOSE})) as server,
        connected(mode, server.url) as client,
    ):
        writer = client.metrics.writer(SPECS)
        writer.incr("edits")
        with pytest.raises(OutcomeUnknown):
            writer.flush()
        writer.flush()

        assert server.count("METRICS.WRITE") == 1


def test_a_flush_that_is_cancelled_is_sent_once_and_the_next_waits_for_it() -> None:
    async def flush_twice(url: str) -> None:
        async with holdfast.aio.connect(url) as client:
            writer = await client.metrics.writer(SPECS)
            writer.incr("edits")
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await writer.flush()
            await writer.flush()

    stored = wire.bulk(msgspec.msgpack.encode({"written": 1}))
    with scripted(answering({b"METRICS.WRITE": stored})) as server:
        asyncio.run(flush_twice(server.url))

        assert server.count("METRICS.WRITE") == 1


def test_a_flush_that_is_cancelled_says_at_the_next_one_that_its_outcome_is_unknown() -> None:
    async def flush_twice(url: str) -> None:
        async with holdfast.aio.connect(url) as client:
            writer = await client.metrics.writer(SPECS)
            writer.incr("edits")
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await writer.flush()
            with pytest.raises(OutcomeUnknown):
                await writer.flush()
            await writer.flush()

    with scripted(answering({b"METRICS.WRITE": CLOSE})) as server:
        asyncio.run(flush_twice(server.url))

        assert server.count("METRICS.WRITE") == 1


def test_a_full_writer_of_a_coroutine_sends_its_content_each_time_that_it_is_full(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.metrics.writer.MAX_WRITER_KEYS", 2)

    async def count_without_a_flush() -> None:
        async with holdfast.aio.connect(url) as client:
            writer = await client.metrics.writer(SPECS)
            for number in range(3):
                writer.incr("edits", [number])
                writer.incr("edits", [number, "full"])
                while (await client.metrics.rate("edits", [number], latest=60)).total == 0:
                    pass

    asyncio.run(asyncio.wait_for(count_without_a_flush(), DEADLINE))


def test_promises_that_are_read_at_the_same_time_are_fetched_in_one_call(url: str) -> None:
    async def totals() -> list[Any]:
        async with holdfast.aio.connect(url) as client:
            await client.metrics.define(SPECS)
            for number, user in enumerate("abc", 1):
                await client.metrics.incr("edits", [user], number)
            reader = await client.metrics.reader(SPECS)
            promises = [reader.get_rate("edits", [user], reader.latest(60)) for user in "abc"]
            return await asyncio.gather(*[promise.total() for promise in promises])

    assert asyncio.run(totals()) == [1, 2, 3]


def test_promises_whose_fetch_failed_are_fetched_by_the_next_one(mode: str) -> None:
    per = {"per_second": 0.05, "per_minute": 3, "per_hour": 180, "per_day": 4320}
    place = {"sequence": "", "time_step": 10, "first_bucket": 1, "last_bucket": 6}
    rates = [{"total": 3, **per, **place, "exact": True}]
    found = {b"METRICS.RATES": wire.bulk(msgspec.msgpack.encode(rates))}
    broken = {b"METRICS.RATES": CLOSE}
    with (
        scripted(answering(broken), answering(found)) as server,
        connected(mode, server.url, retries=0) as client,
    ):
        reader = client.metrics.reader(SPECS)
        promise = reader.get_rate("edits", ["a"], reader.latest(60))
        with pytest.raises(NoAnswer):
            promise.total()

        assert promise.total() == 3


def test_a_flush_that_was_refused_stays_in_the_buffer(client: Any, url: str, mode: str) -> None:
    writer = client.metrics.writer(SPECS)
    writer.incr("edits")
    with connected(mode, url) as other:
        closed = other.metrics.writer(SPECS)
        closed.incr("edits")
        other.close()
        with pytest.raises(Exception, match="closed"):
            closed.flush()
        closed.discard()

    writer.flush()

    assert client.metrics.rate("edits", latest=60).total == 1


def test_a_limit_that_refuses_undoes_the_whole_batch_and_says_which_it_was(client: Any) -> None:
    def order(id: str) -> Any:
        with client.batch() as batch:
            batch.jobs.put("emails", id=id)
            allowed = batch.metrics.limiter({"user": "1/minute"}, "shop").require("user", ["ann"])
            batch.jobs.put("invoices", id=f"invoice-{id}")
        return allowed.result()

    allowed = order("first")
    with pytest.raises(LimitExceeded, match="'user' allows 1 in 60 seconds") as refused:
        order("second")

    assert (allowed.is_allowed(), allowed.remaining) == (True, 0)
    assert client.jobs.multiget("second", "invoice-second") == []
    assert refused.value.position == 1
    assert refused.value.retry_after is not None
    assert 0 < refused.value.retry_after <= 62
    assert refused.value.result.results[0].condition == "user"
    assert f"Try again in {refused.value.retry_after:g} seconds" in refused.value.hint


def test_several_limits_are_required_together_or_not_at_all(client: Any) -> None:
    conditions = {"user": "5/minute", "ip": "1/minute"}
    wanted = [{"condition": name, "entity": ["ann"]} for name in conditions]

    client.metrics.require(wanted, conditions)
    with pytest.raises(LimitExceeded) as refused:
        client.metrics.require(wanted, conditions)

    assert list(refused.value.result.failed) == [1]
    assert client.metrics.limiter(conditions).peek("user", ["ann"]).remaining == 4


def test_an_amount_that_no_wait_makes_possible_says_so(client: Any) -> None:
    with pytest.raises(LimitExceeded, match="more than the limit ever allows") as refused:
        client.metrics.limiter({"user": "2/minute"}).require("user", amount=3)
    with pytest.raises(LimitExceeded, match="more than the limit ever allows") as in_a_batch:
        client.metrics.require([{"condition": "user", "amount": 3}], {"user": "2/minute"})

    assert (refused.value.retry_after, in_a_batch.value.retry_after) == (None, None)


def test_the_other_calls_of_a_limiter_are_part_of_a_batch_too(client: Any) -> None:
    with client.batch() as batch:
        limiter = batch.metrics.limiter({"user": "2/minute"})
        limiter.incr("user")
        tried = limiter.try_incr("user")
        denied = limiter.try_incr("user")
        peeked = limiter.peek("user")
        with pytest.raises(UnknownCondition, match="did you mean 'user'"):
            limiter.try_incr("usr")

    assert [bool(each.result()) for each in (tried, denied, peeked)] == [True, False, False]


def test_a_limiter_over_the_network_can_discard_what_another_window_has_counted(
    client: Any,
) -> None:
    client.metrics.limiter({"user": "1/minute"}).try_incr("user")

    with pytest.raises(SpecConflict):
        client.metrics.limiter({"user": "1/hour"}).try_incr("user")
    limiter = client.metrics.limiter({"user": "1/hour"}, on_conflict="discard")

    assert limiter.try_incr("user").allowed
    assert not limiter.try_incr("user").allowed


def test_the_prefix_of_writers_readers_and_limiters_may_come_second(client: Any) -> None:
    with client.metrics.writer(SPECS, "app") as writer:
        writer.incr("edits")
    reader = client.metrics.reader(SPECS, "app")

    assert reader.get_rate("edits", None, reader.latest(60)).total() == 1
    assert client.metrics.limiter({"user": "1/minute"}, "app").try_incr("user").is_allowed()
    assert client.metrics.limiter({"user": "1/minute"}).try_incr("user").is_allowed()


def test_a_scope_is_bound_for_calls_writers_readers_and_limiters(client: Any) -> None:
    client.metrics.define(SPECS, prefix="app")
    scoped = client.metrics.scoped(prefix="app").scoped(namespace="web")

    scoped.incr("edits", ["a"], 3, at=AT)
    with scoped.writer(SPECS) as writer:
        writer.set_current_time(AT)
        writer.incr("edits", ["a"])
    with client.batch() as batch:
        batch.metrics.scoped(prefix="app", namespace="web").incr("edits", ["a"], at=AT)
    reader = scoped.reader(SPECS)
    reader.set_current_time(AT)
    limiter = scoped.limiter({"user": "1/minute"})
    allowed = [limiter.try_incr("user", ["a"]).allowed for _ in range(2)]

    named = client.metrics.rate("edits", ["a"], latest=60, prefix="app", namespace="web", at=AT)
    other = scoped.rate("edits", ["a"], latest=60, namespace="api", at=AT)
    outside = client.metrics.limiter({"user": "1/minute"}, prefix="app")
    assert (named.total, other.total) == (5, 0)
    assert reader.get_rate("edits", ["a"], reader.latest(60)).total() == 5
    assert allowed == [True, False]
    assert outside.try_incr("user", ["a"]).allowed
    assert "edits" not in client.metrics.scoped(prefix="other").prometheus()
