"""Writers, readers and limiters of a client: what they hold is here, what they store is there."""

from typing import Any

import pytest

from holdfast.errors import BadLimit, LimitExceeded, OutcomeUnknown, UnknownCondition
from holdfast.metrics import GlobalEntityKey, LimitCondition, LocalEntityKey
from tests.client.colours import connected
from tests.client.scripted import CLOSE, scripted, well

SPECS = {"edits": {"sequences": [{"timeStep": 10, "expiry": 3600}]}, "load": {"type": "gauge"}}
AT = 1_000_000.0


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


def test_a_flush_whose_outcome_is_unknown_is_not_sent_again(colour: str) -> None:
    import msgspec

    from holdfast import wire
    from holdfast.metrics.specs import normalize

    defined = wire.bulk(msgspec.msgpack.encode(normalize(SPECS)))  # type: ignore[arg-type]

    def breaks(command: wire.Command) -> bytes:
        if command[0] == b"METRICS.DEFINE":
            return defined
        return CLOSE if command[0] == b"METRICS.WRITE" else well(command)

    with scripted(breaks) as server, connected(colour, server.url) as client:
        writer = client.metrics.writer(SPECS)
        writer.incr("edits")
        with pytest.raises(OutcomeUnknown):
            writer.flush()
        writer.flush()

        assert server.count("METRICS.WRITE") == 1


def test_a_flush_that_was_refused_stays_in_the_buffer(client: Any, url: str, colour: str) -> None:
    writer = client.metrics.writer(SPECS)
    writer.incr("edits")
    with connected(colour, url) as other:
        closed = other.metrics.writer(SPECS)
        closed.incr("edits")
        other.close()
        with pytest.raises(Exception, match="closed"):
            closed.flush()
        closed.discard()

    writer.flush()

    assert client.metrics.rate("edits", latest=60).total == 1
