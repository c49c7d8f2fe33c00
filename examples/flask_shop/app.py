"""A shop as a Flask application: `flask --app examples.flask_shop.app run`."""

from typing import Any

from flask import Flask, request

from holdfast import Tx
from holdfast.contrib.flask import AppStore
from holdfast.tasks import Tasks

tasks = Tasks(queue="receipts")
app = Flask(__name__)
data = AppStore("data", app, tasks=tasks)


@tasks.task(name="send_receipt")
def send_receipt(number: int, customer: str) -> str:
    return f"thank you, {customer}, for order {number}"


@app.post("/orders")
@data.rate_limit({"orders": "3/hour"})
def place() -> tuple[dict[str, str], int]:
    """Places an order in the request's transaction, committed before the answer is sent."""
    order: dict[str, Any] = request.get_json()
    receipt = send_receipt.options(id=f"receipt-{order['number']}").put(
        data.tx, order["number"], order["customer"]
    )
    if order["item"] == "moon":
        return {"error": "we are out of moons"}, 409
    return {"receipt": receipt.id}, 200


@app.get("/receipts/<id>")
def receipt(id: str) -> dict[str, str]:
    return {"state": data.store.jobs.result_wait(id, timeout=30).state}


@app.post("/wishes/<item>")
@data.transactional
def wish(tx: Tx, item: str) -> dict[str, str]:
    """Records a wish in a transaction of its own, which runs again after a conflict."""
    tx.jobs.put("wishes", id=f"wish-{item}")
    tx.jobs.put("catalogue", id=f"find-{item}")
    return {"wished": item}


@app.get("/wishes")
def wishes() -> dict[str, int]:
    return {"wishes": data.store.jobs.length("wishes")}
