"""Starts the shop on a free port, and buys something."""

from examples.serving import ask, serving_asgi
from examples.starlette_shop.app import app


def main() -> None:
    with serving_asgi(app) as url:
        print("order 1:", ask(f"{url}/orders/1", {}).body)
        print("receipt 1:", ask(f"{url}/receipts/receipt-1").body)
        print("receipt 9:", ask(f"{url}/receipts/receipt-9").body["error"]["code"])
        print("order 2:", ask(f"{url}/orders/2", {}).body)
        refused = ask(f"{url}/orders/3", {})
        print("order 3:", refused.status, refused.body["detail"])
        print("try again after", "some time" if refused.headers["retry-after"] else "?")


if __name__ == "__main__":
    main()
