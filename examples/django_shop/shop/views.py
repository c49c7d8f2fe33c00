"""The pages of the shop."""

from django.core.cache import cache
from django.http import HttpRequest, JsonResponse

from examples.django_shop.shop.tasks import send_receipt
from holdfast.contrib.django import rate_limit


def order(request: HttpRequest, customer: str) -> JsonResponse:
    """Enqueues the receipt, counts the order, and remembers the customer in the session."""
    cache.add("orders", 0, timeout=None)
    request.session["customer"] = customer
    result = send_receipt.enqueue(customer)
    return JsonResponse({"order": cache.incr("orders"), "receipt": result.id})


@rate_limit({"visits": "2/hour"})
def customer(request: HttpRequest) -> JsonResponse:
    """Tells who is in the session; only twice an hour."""
    return JsonResponse({"customer": request.session.get("customer")})
