"""Starts the shop on a free port, and buys something."""

from examples.flask_shop.app import app, data
from examples.serving import ask, serving_wsgi


def main() -> None:
    with data, serving_wsgi(app) as url:
        for number, (customer, item) in enumerate(
            [("ann", "tea"), ("bob", "moon"), ("bob", "tea"), ("eve", "tea")], 1
        ):
            order = {"number": number, "customer": customer, "item": item}
            answer = ask(f"{url}/orders", order)
            print(f"order {number}:", answer.status, answer.body)
            if answer.status == 429:
                print("try again after", "some time" if answer.headers["Retry-After"] else "?")
        for number in (1, 2):
            found = ask(f"{url}/receipts/receipt-{number}")
            print(f"receipt {number}:", found.body.get("state") or found.body["error"]["code"])
        print("wish:", ask(f"{url}/wishes/sun", {}).body, ask(f"{url}/wishes").body)


if __name__ == "__main__":
    main()
