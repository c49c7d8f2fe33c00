"""Serves the shop on a free port, buys something, and has a worker run the tasks."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from http.cookiejar import CookieJar

import django
from django.core.handlers.wsgi import WSGIHandler

from examples.serving import serving_wsgi


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "examples.django_shop.settings"
    django.setup()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    receipts = []
    with serving_wsgi(WSGIHandler()) as url:
        for name in ("ann", "bob"):
            with browser.open(f"{url}/orders/{name}", timeout=60) as answer:
                found = json.load(answer)
            print("order", found["order"])
            receipts.append(found["receipt"])
        for _ in range(3):
            try:
                with browser.open(f"{url}/customer", timeout=60) as answer:
                    print("the customer is", json.load(answer)["customer"])
            except urllib.error.HTTPError as refused:
                with refused:
                    print(refused.code, "with Retry-After:", "Retry-After" in refused.headers)
    worker = [sys.executable, "-m", "examples.django_shop.manage", "holdfast_worker", "--burst"]
    sys.stdout.flush()
    subprocess.run(worker, check=True)
    show(receipts)


def show(receipts: list[str]) -> None:
    from examples.django_shop.shop.tasks import send_receipt
    from holdfast.contrib.django import close_store

    for id in receipts:
        result = send_receipt.get_result(id)
        print(result.status.value, result.return_value)
    close_store()


if __name__ == "__main__":
    main()
