"""A shop as a Starlette application: `uvicorn examples.starlette_shop.app:app`."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast import HoldfastError, Tx
from holdfast.contrib.starlette import AppStore, RateLimitMiddleware
from holdfast.tasks import Tasks

tasks = Tasks(queue="receipts")
data = AppStore("data", tasks=tasks)


@tasks.task(name="send_receipt")
def send_receipt(number: int) -> str:
    return f"thank you for order {number}"


@data.transactional
def place(request: Request, tx: Tx) -> JSONResponse:
    """Places an order in one transaction, committed before the answer is sent; errors undo it."""
    number = int(request.path_params["number"])
    receipt = send_receipt.options(id=f"receipt-{number}").put(tx, number)
    return JSONResponse({"receipt": receipt.id})


async def receipt(request: Request) -> JSONResponse:
    job = await data.aio.jobs.result_wait(request.path_params["id"], timeout=30)
    return JSONResponse({"state": job.state})


app = Starlette(
    routes=[
        Route("/orders/{number}", place, methods=["POST"]),
        Route("/receipts/{id}", receipt),
    ],
    lifespan=data.lifespan,
    middleware=[
        Middleware(
            RateLimitMiddleware,
            limiter=data.limiter({"ip": "4/hour"}),
            key=lambda request: {"ip": request.client_address},
        )
    ],
    exception_handlers={HoldfastError: data.on_error},
)
