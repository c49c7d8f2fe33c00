"""Every scenario that the original has played: with writers and readers, and with operations."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.errors import DuplicateCondition, HoldfastError
from holdfast.metrics import Reader
from holdfast.store import Space, Store
from holdfast.testing import Clock

Step = dict[str, Any]

HERE = Path(__file__).parent / "vectors" / "metrics.json"
SHARED = Path(__file__).parents[2].parent / "shared" / "vectors" / "metrics.json"
SCENARIOS = json.loads(HERE.read_text())["scenarios"]

scenarios = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda found: found["id"])


def test_the_vectors_checked_in_are_those_of_the_specification() -> None:
    assert not SHARED.exists() or HERE.read_bytes() == SHARED.read_bytes()


@scenarios
def test_writers_readers_and_limiters_answer_as_the_original(
    store: Store, clock: Clock, scenario: dict[str, Any]
) -> None:
    _play(ObjectPlayer(store.space("scenario"), scenario, clock), scenario)


@scenarios
def test_operations_answer_as_the_original(store: Store, scenario: dict[str, Any]) -> None:
    _play(OperationPlayer(store.space("scenario"), scenario), scenario)


def _play(player: Any, scenario: dict[str, Any]) -> None:
    if "expect_error" in scenario:
        with pytest.raises(HoldfastError) as caught:
            player.start()
        assert caught.value.code == scenario["expect_error"]
        return
    player.start()
    for step in scenario["steps"]:
        expected = step.get("expect")
        if isinstance(expected, dict) and "error" in expected:
            with pytest.raises(HoldfastError) as caught:
                player.play(step)
            assert caught.value.code == expected["error"]
            continue
        found = player.play(step)
        if expected is not None:
            _assert_equal(found, expected, step)


def _assert_equal(found: Any, expected: Any, step: dict[str, Any]) -> None:
    """Equal, and of the same type; floats may differ by one part in 10^9."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), step
        for key, value in expected.items():
            _assert_equal(found[key], value, step)
        if step["op"] == "dump":
            assert found == expected
    elif isinstance(expected, list):
        assert len(found) == len(expected), step
        for one, other in zip(found, expected, strict=True):
            _assert_equal(one, other, step)
    elif isinstance(expected, float):
        assert isinstance(found, float), step
        assert found == pytest.approx(expected, rel=1e-9, abs=0), step
    else:
        assert found == expected, step
        assert type(found) is type(expected), step


class ObjectPlayer:
    """Plays a scenario with a writer, a limiter and a reader for each read, by a turned clock."""

    def __init__(self, space: Space, scenario: dict[str, Any], clock: Clock) -> None:
        self.metrics = space.metrics
        self.scenario = scenario
        self.clock = clock
        self.where = {"prefix": scenario["prefix"], "namespace": scenario["namespace"]}

    def start(self) -> None:
        specs = self.scenario.get("specs")
        if specs is not None:
            self.writer = self.metrics.writer(specs, **self.where)
        if "conditions" in self.scenario:
            counted = {"bucket_count": self.scenario.get("bucket_count", 30)}
            self.limiter = self.metrics.limiter(
                self.scenario["conditions"], **counted, **self.where
            )

    def play(self, step: Step) -> Any:
        self.clock.set(step["at"])
        return getattr(self, step["op"])(step)

    def incr(self, step: Step) -> None:
        self.writer.incr(step["metric"], step["entity"], step["value"])

    def flush(self, step: Step) -> None:
        self.writer.flush()

    def reset_all(self, step: Step) -> None:
        if step["entities"] is None:
            self.writer.reset_all()
        else:
            self.writer.reset_all(step["entities"])

    def read(self, step: Step) -> Any:
        return self._read([step])[0]

    def read_batch(self, step: Step) -> Any:
        return {"results": self._read(step["reads"])}

    def _read(self, reads: list[Step]) -> list[Any]:
        specs = self.scenario["specs"]
        as_source = self.metrics.reader(specs, **self.where, future="extrapolate")
        clamping = self.metrics.reader(specs, **self.where)
        promises = [(_promise(as_source, read), _promise(clamping, read)) for read in reads]
        return [
            {
                "total": promise.total(),
                "per_second": promise.per_second(),
                "per_minute": promise.per_minute(),
                "per_hour": promise.per_hour(),
                "per_day": promise.per_day(),
                "sequence": promise.sequence,
                "first_bucket": promise.buckets[0],
                "last_bucket": promise.buckets[1],
                "total_clamped": clamped.total(),
            }
            for promise, clamped in promises
        ]

    def dump(self, step: Step) -> Any:
        return {"keys": self.metrics.buckets(**self.where).buckets}

    def try_incr(self, step: Step) -> Any:
        return _plain(self.limiter.try_incr(step["condition"], step["entity"], step["amount"]))

    def peek(self, step: Step) -> Any:
        return _plain(self.limiter.peek(step["condition"], step["entity"], step["amount"]))

    def limit_incr(self, step: Step) -> None:
        self.limiter.incr(step["condition"], step["entity"], step["amount"])

    def batch(self, step: Step) -> Any:
        batch = self.limiter.batch(step.get("default_amount", 1))
        for op in step["ops"]:
            add = batch.global_op if op["scope"] == "global" else batch.local_op
            add(op["condition"], op["components"], op["amount"])
        return _plain_batch(getattr(batch, step["mode"])())

    def ops_batch(self, step: Step) -> Any:
        modes = {"try_incr": "try_all", "peek": "peek_all", "incr": "incr_all"}
        return _plain_batch(getattr(self.limiter, modes[step["mode"]])(step["ops"]))


class OperationPlayer:
    """Plays a scenario by the operations alone, each with its own time, as the server does."""

    def __init__(self, space: Space, scenario: dict[str, Any]) -> None:
        self.metrics = space.metrics
        self.scenario = scenario
        self.where = {"prefix": scenario["prefix"], "namespace": scenario["namespace"]}
        self.limits = {"conditions": scenario.get("conditions", {})}
        if "bucket_count" in scenario:
            self.limits["bucket_count"] = scenario["bucket_count"]
        self.kept: list[Step] = []

    def start(self) -> None:
        if "specs" in self.scenario:
            defined = self.metrics.define(self.scenario["specs"], **self.where)
            assert _plain(defined) == self.scenario["normalized"]

    def play(self, step: Step) -> Any:
        return getattr(self, step["op"])(step)

    def incr(self, step: Step) -> None:
        write = {key: step[key] for key in ("metric", "entity", "value", "at")}
        if "expect" in step:
            self.metrics.write([write], **self.where)
        self.kept.append(write)

    def flush(self, step: Step) -> None:
        written = self.metrics.write(self.kept, **self.where, at=step["at"])
        assert written.written == len(self.kept)
        self.kept = []

    def reset_all(self, step: Step) -> None:
        self.kept = []
        if step["entities"] is None:
            self.metrics.reset(**self.where, at=step["at"])
        else:
            self.metrics.reset(step["entities"], **self.where, at=step["at"])

    def read(self, step: Step) -> Any:
        query = _query(step)
        found = _plain(
            self.metrics.rate(**query, future="extrapolate", **self.where, at=step["at"])
        )
        clamped = self.metrics.rate(**query, **self.where, at=step["at"])
        return {**found, "total_clamped": clamped.total}

    def read_batch(self, step: Step) -> Any:
        queries = [{**_query(read), "future": "extrapolate"} for read in step["reads"]]
        found = self.metrics.rates(queries, **self.where, at=step["at"])
        clamped = self.metrics.rates(
            [_query(read) for read in step["reads"]], **self.where, at=step["at"]
        )
        pairs = zip(found, clamped, strict=True)
        return {"results": [{**_plain(one), "total_clamped": other.total} for one, other in pairs]}

    def dump(self, step: Step) -> Any:
        return {"keys": self.metrics.buckets(**self.where, at=step["at"]).buckets}

    def try_incr(self, step: Step) -> Any:
        return self._limit("try_incr", [step], step)["results"][0]

    def peek(self, step: Step) -> Any:
        return self._limit("peek", [step], step)["results"][0]

    def limit_incr(self, step: Step) -> None:
        self._limit("limit_incr", [step], step)

    def ops_batch(self, step: Step) -> Any:
        return self._limit(_call_of(step["mode"]), step["ops"], step)

    def batch(self, step: Step) -> Any:
        names = [op["condition"] for op in step["ops"]]
        if len(set(names)) < len(names):
            raise DuplicateCondition(
                "results are named by condition; only a batch object checks it"
            )
        operations = []
        for op in step["ops"]:
            parts = op["components"] if isinstance(op["components"], list) else [op["components"]]
            entity = {"global": op["scope"] == "global", "components": [op["condition"], *parts]}
            amount = step.get("default_amount", 1) if op["amount"] is None else op["amount"]
            operations.append({"condition": op["condition"], "entity": entity, "amount": amount})
        found = self._limit(_call_of(step["mode"]), operations, step)
        if found is None:
            return None
        return {
            "allowed": found["allowed"],
            "results": dict(zip(names, found["results"], strict=True)),
            "failed": [names[place] for place in found["failed"]],
            "passed": [names[place] for place in found["passed"]],
        }

    def _limit(self, call: str, operations: list[Step], step: Step) -> Any:
        fields = ("condition", "entity", "amount")
        asked = [{field: given[field] for field in fields} for given in operations]
        operation = getattr(self.metrics, call)
        return _plain_batch(operation(asked, **self.limits, **self.where, at=step["at"]))


def _call_of(mode: str) -> str:
    return "limit_incr" if mode == "incr" else mode


def _query(read: Step) -> Step:
    return {"metric": read["metric"], "entity": read["entity"], **read["range"]}


def _promise(reader: Reader, read: Step) -> Any:
    asked = read["range"]
    if "latest" in asked:
        found = reader.latest(asked["latest"])
    else:
        found = reader.time_range(asked["start"], asked["end"])
    return reader.get_rate(read["metric"], read["entity"], found)


def _plain(result: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(result))


def _plain_batch(result: Any) -> Any:
    if result is None:
        return None
    return {**_plain(result), "failed": list(result.failed), "passed": list(result.passed)}
