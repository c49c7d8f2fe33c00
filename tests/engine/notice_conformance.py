"""The notices of every engine, as tests: a part of `Conformance`."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.errors import (
    BadInput,
)


class Undone(Exception):
    """Raised by a test in order to undo a transaction."""


class NoticeConformance:
    """Derive from it, and give the fixture `url`."""

    @pytest.fixture
    def engine(self, url: str) -> Iterator[Engine]:
        engine = open_engine(url, durability="interval")
        yield engine
        assert engine.check() == []
        engine.close()

    def test_notices_arrive_after_the_commit_and_in_its_order(self, engine: Engine) -> None:
        def step(number: int) -> Any:
            return lambda tx: tx.after_commit(Notice("n", b"%d" % number))

        with engine.subscribe() as subscription:
            for number in range(5):
                engine.transact(step(number))
            engine.transact_many([step(number) for number in range(5, 10)])

            assert [int(notice.payload) for notice in subscription.poll()] == list(range(10))
            assert subscription.missed == 0

    def test_notices_that_are_made_when_somebody_listens_keep_their_order(
        self, engine: Engine
    ) -> None:
        def step(name: str) -> Any:
            def work(tx: Transaction) -> None:
                tx.after_commit(Notice(f"{name}1"))
                tx.after_commit_many(name, lambda: [Notice(f"{name}2"), Notice(f"{name}3")])
                tx.after_commit(Notice(f"{name}4"))

            return work

        with engine.subscribe() as subscription, engine.subscribe(topic_prefix="c2") as one:
            engine.transact(step("a"))
            engine.transact_many([step("b"), step("c")])

            heard = [notice.topic for notice in subscription.poll()]
            assert heard == [f"{name}{number}" for name in "abc" for number in (1, 2, 3, 4)]
            assert [notice.topic for notice in one.poll()] == ["c2"]

    def test_a_transaction_that_raises_publishes_nothing(self, engine: Engine) -> None:
        def fails(tx: Transaction) -> None:
            tx.after_commit(Notice("n"))
            raise Undone

        with engine.subscribe() as subscription:
            engine.transact_many([fails, lambda tx: tx.after_commit(Notice("m")), fails])
            with pytest.raises(Undone):
                engine.transact(fails)

            assert [notice.topic for notice in subscription.poll()] == ["m"]

    def test_an_invalid_notice_fails_alone_and_stops_no_subscriber(self, engine: Engine) -> None:
        bad = [Notice("n", "text"), Notice("n", object()), Notice(b"n")]  # type: ignore[arg-type]
        works = [lambda tx, notice=notice: tx.after_commit(notice) for notice in bad]

        with engine.subscribe() as subscription:
            outcomes = engine.transact_many([*works, lambda tx: tx.after_commit(Notice("good"))])

            assert [type(outcome.error) for outcome in outcomes] == [BadInput] * 3 + [type(None)]
            assert [notice.topic for notice in subscription.poll()] == ["good"]

    def test_a_subscriber_hears_its_topics_and_its_space_only(self, engine: Engine) -> None:
        with (
            engine.subscribe(topic_prefix="jobs.") as jobs,
            engine.subscribe(space=b"B") as in_b,
            engine.subscribe() as all_of_them,
        ):
            engine.transact(lambda tx: tx.after_commit(Notice("jobs.put")), space=b"A")
            engine.transact(lambda tx: tx.after_commit(Notice("rows.put")), space=b"B")

            assert jobs.poll() == [Notice("jobs.put", b"", b"A")]
            assert in_b.poll() == [Notice("rows.put", b"", b"B")]
            assert len(all_of_them.poll()) == 2

    def test_a_waiting_subscriber_is_woken(self, engine: Engine) -> None:
        with engine.subscribe() as subscription, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(subscription.get, 30)
            engine.transact(lambda tx: tx.after_commit(Notice("wake")))

            assert waiting.result() == Notice("wake")

    def test_a_closed_subscription_ends_the_wait(self, engine: Engine) -> None:
        subscription = engine.subscribe()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(subscription.get)
            subscription.close()

            assert waiting.result() is None
