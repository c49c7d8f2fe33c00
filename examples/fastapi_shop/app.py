"""A shop as a FastAPI application: `uvicorn examples.fastapi_shop.app:app`."""

from typing import Annotated

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from holdfast import HoldfastError, Tx
from holdfast.client.batches import Batch
from holdfast.contrib.fastapi import AppStore
from holdfast.tasks import Tasks

tasks = Tasks(queue="receipts")
data = AppStore("data", tasks=tasks)
app = FastAPI(lifespan=data.lifespan)
app.add_exception_handler(HoldfastError, data.on_error)


class Order(BaseModel):
    number: int
    customer: str
    item: str


@tasks.task(name="send_receipt")
def send_receipt(number: int, customer: str) -> str:
    return f"thank you, {customer}, for order {number}"


@app.post("/orders", dependencies=[data.rate_limit({"orders": "3/hour"})])
@data.transactional
def place(tx: Tx, order: Order) -> dict[str, str]:
    """Places an order in one transaction, committed before the answer is sent; errors undo it."""
    receipt = send_receipt.options(id=f"receipt-{order.number}").put(
        tx, order.number, order.customer
    )
    if order.item == "moon":
        raise HTTPException(409, "we are out of moons")
    return {"receipt": receipt.id}


@app.get("/receipts/{id}")
async def receipt(id: str) -> dict[str, str]:
    """Waits for the task without holding a thread."""
    job = await data.aio.jobs.result_wait(id, timeout=30)
    return {"state": job.state}


@app.post("/wishes/{item}")
async def wish(item: str, batch: Annotated[Batch, data.batch()]) -> dict[str, str]:
    """Records a batch, which is one transaction too, for endpoints that await."""
    batch.jobs.put("wishes", id=f"wish-{item}")
    batch.jobs.put("catalogue", id=f"find-{item}")
    return {"wished": item}


@app.get("/wishes")
async def wishes() -> int:
    return await data.aio.jobs.length("wishes")
