"""All or nothing, over several conditions and entities."""

from typing import Any

import pytest

from holdfast.errors import BadLimit, DuplicateCondition, LimitExceeded, UnknownCondition
from holdfast.metrics import GlobalEntityKey, Limiter, LocalEntityKey, Operation
from holdfast.metrics.conditions import Algorithm, make_plan
from holdfast.store import Store

CONDITIONS: Any = {"user": "2/minute", "ip": "5/minute"}


@pytest.fixture(params=["estimate", "strict", "log", "gcra", "token_bucket"])
def limiter(request: pytest.FixtureRequest, store: Store) -> Limiter:
    algorithm: Algorithm = request.param
    return store.metrics.limiter(CONDITIONS, algorithm=algorithm)


def test_a_batch_counts_all_or_nothing(limiter: Limiter) -> None:
    def attempt() -> Any:
        return limiter.batch().local_op("user", 1).global_op("ip", "192.0.2.7").try_incr()

    assert [bool(attempt()) for _ in range(3)] == [True, True, False]
    denied = attempt()
    assert (list(denied.failed), list(denied.passed)) == (["user"], ["ip"])
    assert denied.results["ip"].prev_total == 2
    assert denied.results["ip"].remaining == 3
    assert denied.retry_after == denied.results["user"].retry_after > 0
    assert denied.results["ip"].retry_after == 0


def test_the_entity_of_a_batch_operation_begins_with_its_condition(limiter: Limiter) -> None:
    limiter.batch().local_op("ip", "192.0.2.7").incr()

    assert limiter.peek("ip", LocalEntityKey(["ip", "192.0.2.7"])).prev_total == 1
    assert limiter.peek("ip", LocalEntityKey(["192.0.2.7"])).prev_total == 0
    assert limiter.batch().local_op("ip", ["192.0.2.7"]).peek().results["ip"].prev_total == 1
    assert limiter.peek("ip", GlobalEntityKey(["ip", "192.0.2.7"])).prev_total == 0


def test_a_batch_has_a_default_amount(limiter: Limiter) -> None:
    batch = limiter.batch(default_amount=2).local_op("user").local_op("ip", amount=4)

    result = batch.try_incr()

    assert [found.new_total for found in result.results.values()] == [2, 4]


def test_a_condition_occurs_once_in_a_batch(limiter: Limiter) -> None:
    batch = limiter.batch().local_op("user", 1)

    with pytest.raises(DuplicateCondition):
        batch.global_op("user", 2)
    with pytest.raises(UnknownCondition):
        batch.local_op("usr", 2)
    with pytest.raises(BadLimit):
        batch.local_op("ip", 2, amount=-1)


def test_operations_on_the_same_entity_are_judged_by_their_sum(limiter: Limiter) -> None:
    same = [Operation(condition="user", entity=["x"]) for _ in range(2)]
    other = Operation(condition="user", entity=["y"], amount=2)

    result = limiter.try_all([*same, other])

    assert result.allowed
    assert [found.new_total for found in result] == [2, 2, 2]
    over = limiter.try_all([{"condition": "ip", "amount": 3}, {"condition": "ip", "amount": 3}])
    assert (over.allowed, list(over.failed), list(over.passed)) == (False, [0, 1], [])
    assert [found.new_total for found in over] == [6, 6]
    assert over.retry_after is None
    assert limiter.peek("ip").prev_total == 0


def test_two_entities_under_one_condition_are_judged_each_by_its_own_count(
    limiter: Limiter,
) -> None:
    limiter.incr("user", ["full"], 2)

    result = limiter.try_all(
        [{"condition": "user", "entity": ["full"]}, {"condition": "user", "entity": ["free"]}]
    )

    assert (list(result.failed), list(result.passed)) == ([0], [1])


def test_an_empty_batch_is_allowed(limiter: Limiter) -> None:
    for result in (limiter.batch().try_incr(), limiter.batch().peek()):
        assert (result.allowed, result.results, result.retry_after) == (True, {}, 0)
    limiter.batch().incr()
    assert limiter.try_all([]).allowed


def test_nothing_of_a_batch_happens_if_one_operation_is_bad(limiter: Limiter) -> None:
    good = {"condition": "user"}
    bad: list[tuple[Any, type[Exception]]] = [
        ({"condition": "usr"}, UnknownCondition),
        ({"condition": None}, UnknownCondition),
        ({"condition": "user", "amount": -1}, BadLimit),
        ({"condition": "user", "amount": 1.5}, BadLimit),
        ({"condition": "user", "amonut": 1}, BadLimit),
        ("user", BadLimit),
    ]
    for operation, error in bad:
        for call in (limiter.try_all, limiter.peek_all, limiter.incr_all):
            with pytest.raises(error):
                call([good, operation])

    assert limiter.peek("user").prev_total == 0


def test_a_denied_attempt_is_not_counted(limiter: Limiter) -> None:
    limiter.try_incr("user", amount=2)
    for _ in range(3):
        assert not limiter.try_incr("user")

    assert limiter.peek("user").prev_total == 2


def test_a_limit_can_be_reset_for_an_entity(store: Store, limiter: Limiter) -> None:
    limiter.incr("user", ["x"], 2)
    limiter.incr("user", ["y"], 2)

    store.metrics.reset([["x"]])

    assert limiter.peek("user", ["x"]).prev_total == 0
    assert limiter.peek("user", ["y"]).prev_total == 2


@pytest.mark.every_engine
@pytest.mark.parametrize("algorithm", ["estimate", "gcra"])
def test_a_required_limit_that_refuses_undoes_its_transaction(store: Store, algorithm: str) -> None:
    def order(id: str) -> None:
        with store.transaction() as tx:
            tx.jobs.put("emails", id=id)
            wanted: list[Any] = [{"condition": "user", "entity": ["ann"]}, {"condition": "ip"}]
            tx.metrics.require(wanted, {"user": "1/minute", "ip": "9/minute"}, algorithm=algorithm)

    order("first")
    with pytest.raises(LimitExceeded, match="'user' allows 1 in 60 seconds") as refused:
        order("second")

    assert store.jobs.get("second") is None
    assert refused.value.retry_after == refused.value.result.retry_after
    assert refused.value.result.retry_after > 0
    assert list(refused.value.result.failed) == [0]
    ip = store.metrics.limiter({"ip": "9/minute"}, algorithm=algorithm).peek("ip")  # type: ignore[arg-type]  # a parameter is a plain string
    assert ip.remaining == 8


def test_a_result_is_asked_by_the_names_of_the_original(store: Store) -> None:
    limiter = store.metrics.limiter({"user": "1/minute"}, "MyLimitCaller")

    assert limiter.try_incr("user").is_allowed()
    assert not limiter.try_incr("user").is_allowed()
    assert limiter.batch().local_op("user").try_incr().is_allowed()
    assert limiter.peek_all([]).is_allowed()
    assert [*store.metrics.buckets(prefix="MyLimitCaller").buckets] != []


@pytest.mark.parametrize("algorithm", ["estimate", "gcra"])
def test_an_operation_counts_for_its_entity_in_whatever_form_it_is_given(
    store: Store, algorithm: str
) -> None:
    forms: list[Any] = [
        {"condition": "ip", "entity": ["a", 1]},
        {"condition": "ip", "entity": ["a", "1"], "amount": 1},
        {"condition": "ip", "entity": {"components": ["a", 1]}},
        {"condition": "ip", "entity": LocalEntityKey(["a", 1])},
        Operation(condition="ip", entity=["a", 1]),
    ]

    tried = [store.metrics.try_incr([form], CONDITIONS, algorithm=algorithm) for form in forms]

    assert [one.results[0].prev_total for one in tried] == [0, 1, 2, 3, 4]


def test_equal_conditions_that_are_written_differently_have_plans_of_their_own() -> None:
    whole, fraction = (make_plan({"user": {"limit": 2, "window": window}}) for window in (60, 60.0))

    assert [type(plan.find("user").window) for plan in (whole, fraction)] == [int, float]


def test_a_condition_that_is_not_plain_data_is_refused_with_a_reason() -> None:
    with pytest.raises(BadLimit, match="`limit` and `window`, not <object"):
        make_plan({"user": object()})  # type: ignore[dict-item]  # that is what is refused
