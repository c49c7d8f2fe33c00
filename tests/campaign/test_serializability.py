"""The checker finds every anomaly in histories made by hand, and none in clean ones."""

import random
from collections import defaultdict
from typing import Literal

import pytest

from tests.campaign.serializability import Append, Read, Transaction, check

Outcome = Literal["done", "failed", "unknown"]
OUTCOMES: tuple[Outcome, ...] = ("done", "failed", "unknown")


def t(
    *steps: Append | Read,
    session: int | None = None,
    at: tuple[float, float] = (0, 100),
    outcome: Outcome = "done",
) -> Transaction:
    """A transaction of a session of its own, at the same time as all others unless said."""
    t.sessions += 1  # type: ignore[attr-defined]  # a counter on the function
    number = t.sessions if session is None else session  # type: ignore[attr-defined]
    return Transaction(number, at[0], at[1], outcome, steps)


t.sessions = 1_000  # type: ignore[attr-defined]


def a(key: str, value: int) -> Append:
    return Append(key, value)


def r(key: str, *found: int) -> Read:
    return Read(key, found)


def kinds(history: list[Transaction], **final: tuple[int, ...]) -> set[str]:
    return {anomaly.kind for anomaly in check(history, final)}


def test_transactions_one_after_the_other_are_clean() -> None:
    history = [
        t(a("x", 1), session=1, at=(0, 1)),
        t(r("x", 1), a("y", 2), session=2, at=(2, 3)),
        t(r("x", 1), r("y", 2), a("x", 3), r("x", 1, 3), session=1, at=(4, 5)),
    ]

    assert kinds(history, x=(1, 3), y=(2,)) == set()


def test_an_unknown_outcome_may_be_there_or_not() -> None:
    there = t(a("x", 1), a("y", 1_001), outcome="unknown")
    gone = t(a("x", 2), outcome="unknown")

    assert kinds([there, gone, t(r("x", 1))], x=(1,), y=(1_001,)) == set()


def test_g0_writes_of_two_transactions_are_interleaved() -> None:
    history = [t(a("x", 1), a("y", 2)), t(a("x", 3), a("y", 4))]

    assert kinds(history, x=(1, 3), y=(4, 2)) == {"G0"}


def test_g1a_a_failed_transaction_was_read() -> None:
    history = [t(a("x", 1), outcome="failed"), t(r("x", 1))]

    assert "G1a" in kinds(history)


def test_g1a_a_failed_transaction_is_there_at_the_end() -> None:
    assert kinds([t(a("x", 1), outcome="failed")], x=(1,)) == {"G1a"}


def test_g1b_a_list_was_read_in_the_middle_of_a_transaction() -> None:
    history = [t(a("x", 1), a("x", 2)), t(r("x", 1))]

    assert "G1b" in kinds(history, x=(1, 2))


def test_g1c_two_transactions_saw_each_other() -> None:
    history = [t(a("x", 1), r("y", 2)), t(a("y", 2), r("x", 1))]

    assert kinds(history, x=(1,), y=(2,)) == {"G1c"}


def test_g_single_a_lost_update() -> None:
    history = [t(a("x", 9)), t(r("x", 9), a("x", 1)), t(r("x", 9), a("x", 2))]

    assert kinds(history, x=(9, 1, 2)) == {"G-single"}


def test_g_single_a_read_sees_one_half_of_a_transaction() -> None:
    history = [t(a("x", 1), a("y", 2)), t(r("x", 1), r("y"))]

    assert kinds(history, x=(1,), y=(2,)) == {"G-single"}


def test_g2_write_skew() -> None:
    history = [t(r("x"), a("y", 1)), t(r("y"), a("x", 2))]

    assert kinds(history, x=(2,), y=(1,)) == {"G2"}


def test_a_longer_cycle_is_found_among_many_clean_transactions() -> None:
    clean = [t(r("z", *range(100, 100 + n)), a("z", 100 + n)) for n in range(200)]
    ring = [
        t(r("x"), a("y", 1)),
        t(r("y"), a("w", 2)),
        t(r("w"), a("x", 3)),
    ]

    found = kinds([*clean, *ring], x=(3,), y=(1,), w=(2,), z=tuple(range(100, 300)))

    assert found == {"G2"}


@pytest.mark.parametrize(
    ("history", "final", "kind"),
    [
        ([t(a("x", 1))], {"x": ()}, "lost"),
        ([t(a("x", 1))], {"x": (1, 1)}, "doubled"),
        ([t(r("x", 7))], {"x": (7,)}, "invented"),
        ([t(a("x", 1), r("x"))], {"x": (1,)}, "internal"),
        ([t(r("x"), r("x", 1)), t(a("x", 1))], {"x": (1,)}, "internal"),
        ([t(a("x", 1), a("y", 2), outcome="unknown")], {"x": (1,), "y": ()}, "half done"),
        (
            [t(a("x", 1)), t(a("x", 2)), t(r("x", 2)), t(r("x", 1, 2))],
            {"x": (1, 2)},
            "incompatible order",
        ),
    ],
)
def test_other_damage_is_named(
    history: list[Transaction], final: dict[str, tuple[int, ...]], kind: str
) -> None:
    assert kind in {anomaly.kind for anomaly in check(history, final)}


def test_a_session_reads_its_own_writes() -> None:
    history = [t(a("x", 1), session=1, at=(0, 1)), t(r("x"), session=1, at=(2, 3))]

    assert "read your writes" in kinds(history, x=(1,))


def test_a_session_does_not_go_back_in_time() -> None:
    history = [
        t(a("x", 1), session=1),
        t(r("x", 1), session=2, at=(0, 1)),
        t(r("x"), session=2, at=(2, 3)),
    ]

    assert "monotonic reads" in kinds(history, x=(1,))


def test_a_session_writes_in_its_own_order() -> None:
    history = [t(a("x", 1), session=1, at=(0, 1)), t(a("x", 2), session=1, at=(2, 3))]

    assert "monotonic writes" in kinds(history, x=(2, 1))


def test_what_was_acknowledged_is_seen_by_all_who_begin_later() -> None:
    history = [t(a("x", 1), at=(0, 1)), t(r("x"), at=(2, 3))]

    assert kinds(history, x=(1,)) == {"G-single in real time"}


def test_appends_are_in_the_order_of_real_time() -> None:
    history = [t(a("x", 1), at=(0, 1)), t(r("y"), at=(2, 3)), t(a("x", 2), at=(4, 5))]

    assert kinds(history, x=(2, 1)) == {"G0 in real time"}


def random_history(
    chance: random.Random, count: int
) -> tuple[list[Transaction], dict[str, list[int]]]:
    """A serial run of transactions that overlap in time, as a serializable store would make."""
    lists: dict[str, list[int]] = defaultdict(list)
    values = iter(range(1, 100_000))
    history = []
    for number in range(count):
        steps: list[Append | Read] = []
        [outcome] = chance.choices(OUTCOMES, [8, 1, 1])
        applied = outcome == "done" or (outcome == "unknown" and chance.random() < 0.5)
        copies = {key: list(items) for key, items in lists.items()}
        for _ in range(chance.randint(1, 4)):
            key = chance.choice("xyz")
            if chance.random() < 0.5:
                steps.append(Append(key, next(values)))
                copies.setdefault(key, []).append(steps[-1].value)  # type: ignore[union-attr]
            else:
                steps.append(Read(key, tuple(copies.get(key, ()))))
        if applied:
            lists.update(copies)
        begun, ended = number - chance.random() * 3, number + chance.random() * 3
        history.append(t(*steps, at=(begun, ended), outcome=outcome))
    return history, lists


@pytest.mark.parametrize("seed", range(20))
def test_a_serial_run_is_clean_and_one_with_a_changed_read_is_not(seed: int) -> None:
    chance = random.Random(seed)
    history, lists = random_history(chance, 150)
    final = {key: tuple(items) for key, items in lists.items()}
    assert check(history, final) == []

    number = chance.choice(
        [
            n
            for n, each in enumerate(history)
            if each.outcome == "done" and isinstance(each.steps[0], Read) and each.steps[0].found
        ]
    )
    [first, *rest] = history[number].steps
    assert isinstance(first, Read)
    stale = Read(first.key, first.found[: len(first.found) // 2])
    history[number] = history[number]._replace(steps=(stale, *rest))

    assert check(history, final) != []
