"""Stores inside web applications, over real servers; the examples and the guides show the rest."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import fastapi
import flask
import pytest

import holdfast
from examples.serving import ask, serving_asgi, serving_wsgi
from holdfast import HoldfastError, Tx
from holdfast.client.batches import Batch
from holdfast.contrib.fastapi import AppStore
from holdfast.contrib.flask import AppStore as FlaskStore
from holdfast.errors import BadInput, UnknownJob
from holdfast.tasks import Tasks


class Shop:
    """A FastAPI application that writes, and fails on request."""

    def __init__(self, folder: Path) -> None:
        self.data = AppStore(folder, durability="interval")
        app = self.app = fastapi.FastAPI(lifespan=self.data.lifespan)
        app.add_exception_handler(HoldfastError, self.data.on_error)
        data = self.data

        @app.post("/transaction/{id}")
        @data.transactional
        def transaction(tx: Tx, id: str, fails: bool = False) -> str:
            tx.jobs.put("orders", id=id)
            if fails:
                raise UnknownJob.of("payment")
            return id

        @app.post("/batch/{id}")
        async def batch(id: str, batch: Annotated[Batch, data.batch()], fails: bool = False) -> str:
            batch.jobs.put("orders", id=id)
            if fails:
                raise fastapi.HTTPException(409, "no stock")
            return id

        @app.get("/orders/{id}")
        async def order(id: str) -> bool:
            return await data.aio.jobs.get(id) is not None


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[str]:
    with serving_asgi(Shop(tmp_path / "data").app) as url:
        yield url


@pytest.mark.parametrize("way", ["transaction", "batch"])
def test_a_request_is_committed_before_its_answer_and_undone_by_an_error(
    shop: str, way: str
) -> None:
    assert ask(f"{shop}/{way}/one", {}).body == "one"
    assert ask(f"{shop}/orders/one").body is True

    refused = ask(f"{shop}/{way}/two?fails=1", {})

    assert refused.status == (404 if way == "transaction" else 409)
    assert ask(f"{shop}/orders/two").body is False


def test_an_error_of_holdfast_is_answered_as_its_own_server_does(shop: str) -> None:
    error = ask(f"{shop}/transaction/two?fails=1", {}).body["error"]

    assert set(error) == {"code", "message", "hint"}
    assert error["code"] == "unknown_job"


def test_a_store_of_an_application_that_does_not_run_is_not_open(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not open"):
        AppStore(tmp_path / "data").store  # noqa: B018  # to ask for it is enough

    assert not (tmp_path / "data").exists()


def test_a_store_whose_worker_could_not_start_is_closed_again(tmp_path: Path) -> None:
    data = AppStore(tmp_path / "data", tasks=Tasks(), threads=-1)
    for _ in range(2):
        with pytest.raises(BadInput, match="at least 1 slot"):
            data.open()

    with pytest.raises(BadInput, match="not open"):
        data.store.jobs.put("orders")
    holdfast.open(tmp_path / "data").close()


class SlowFolder:
    """A folder whose path becomes known later."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked, self.allowed = threading.Event(), threading.Event()

    def __fspath__(self) -> str:
        self.asked.set()
        assert self.allowed.wait(20)
        return str(self.folder)


def test_a_start_that_is_cancelled_leaves_no_open_store(tmp_path: Path) -> None:
    slow: Any = SlowFolder(tmp_path / "data")
    os.PathLike.register(SlowFolder)
    data = AppStore(slow)

    async def start_and_cancel() -> None:
        starting = asyncio.ensure_future(data.lifespan().__aenter__())
        await asyncio.to_thread(slow.asked.wait)
        starting.cancel()
        asyncio.get_running_loop().call_soon(slow.allowed.set)
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(start_and_cancel())

    with pytest.raises(BadInput, match="not open"):
        data.store.jobs.put("orders")


def test_a_transaction_that_could_not_run_again_is_refused(tmp_path: Path) -> None:
    data = AppStore(tmp_path / "data")

    async def awaits(tx: Tx) -> None: ...

    with pytest.raises(BadInput, match="coroutine"):
        data.transactional(awaits)
    with pytest.raises(BadInput, match="0 parameters"):
        data.transactional(lambda: None)


def test_the_transaction_of_a_flask_request_is_undone_by_an_exception(tmp_path: Path) -> None:
    app = flask.Flask("shop")
    data = FlaskStore(tmp_path / "data", app, durability="interval")

    @app.post("/orders/<id>")
    def order(id: str) -> dict[str, Any]:
        data.tx.jobs.put("orders", id=id)
        if id == "moon":
            raise UnknownJob.of("moon")
        return {"waiting": data.tx.jobs.length("orders")}

    with data, serving_wsgi(app) as url:
        answers = [ask(f"{url}/orders/{id}", {}) for id in ("tea", "moon", "cups")]

        assert [answer.status for answer in answers] == [200, 404, 200]
        assert answers[2].body == {"waiting": 2}
        assert data.store.jobs.length("orders") == 2
    with pytest.raises(BadInput, match="no request"):
        data.tx  # noqa: B018  # to ask for it is enough
