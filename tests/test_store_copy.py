"""Copies between engines: complete, verified, and gone on with after an interruption."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import store_copy
from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Transaction
from holdfast.errors import BadInput, CopyUnfinished, StoreDamaged
from holdfast.jobs import NewJob
from holdfast.keys import pack
from holdfast.store import Store

Pairs = list[tuple[bytes, bytes]]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Engine]:
    """An empty store in a folder, whatever `engine` is."""
    engine = open_engine(tmp_path / "other", durability="interval")
    yield engine
    engine.close()


def fill(engine: Engine) -> None:
    store = Store(engine)
    for name in ("default", "shop"):
        space = store.space(name)
        space.jobs.put_many([NewJob(queue="emails", data=n) for n in range(100)])
        space.metrics.define({"orders": {}})
        space.metrics.incr("orders")


def everything(engine: Engine) -> Pairs:
    pairs: Pairs = []
    for space in (pack(number) for number in range(3)):
        with engine.view(space=space) as view:
            pairs += view.scan(space, space + b"\xff" * 600)
    return pairs


@pytest.mark.every_engine
def test_a_store_goes_to_another_engine_and_back(
    engine: Engine, other: Engine, tmp_path: Path
) -> None:
    fill(engine)

    there = store_copy.copy(engine, other, name="first")
    back = open_engine(tmp_path / "back", durability="interval")
    again = store_copy.copy(other, back, name="second")

    assert there == again
    assert there.keys == there.written == len(everything(engine))
    assert everything(back) == everything(other) == everything(engine)
    back.close()


def test_counters_count_on_after_a_copy(engine: Engine, other: Engine) -> None:
    fill(other)

    store_copy.copy(other, engine, name="other")
    copy = Store(engine)
    copy.jobs.put("emails")

    assert copy.jobs.length("emails") == 101


def test_an_interrupted_copy_goes_on(
    engine: Engine, other: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(other)
    monkeypatch.setattr(store_copy, "COPIED_KEYS_PER_STEP", 20)
    left = iter(range(5))

    def stop(phase: str, keys: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store_copy.copy(other, engine, name="other", progress=stop)
    with pytest.raises(CopyUnfinished):
        Store(engine)
    done = store_copy.copy(other, engine, name="other")

    assert 0 < done.written < done.keys
    assert everything(engine) == everything(other)


def test_a_copy_that_differs_is_told_so(
    engine: Engine, other: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(other)

    def forgetful(tx: Transaction, put: Pairs, gone: list[bytes]) -> None:
        for key, value in put[1:]:
            tx.put(key, value)

    monkeypatch.setattr(store_copy, "_write", forgetful)

    with pytest.raises(StoreDamaged, match="differs from other"):
        store_copy.copy(other, engine, name="other")


def test_a_store_is_not_overwritten(engine: Engine, other: Engine) -> None:
    fill(other)
    Store(engine).jobs.put("emails", id="precious")

    with pytest.raises(BadInput, match="is a store already"):
        store_copy.copy(other, engine, name="other")

    assert Store(engine).jobs.get("precious") is not None
