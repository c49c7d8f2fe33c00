"""The tasks of the shop."""

from typing import Any

try:
    from django.tasks import task
except ImportError:  # Django 5
    from django_tasks import task  # type: ignore[no-redef]  # one of the two is there


@task(takes_context=True)
def send_receipt(context: Any, customer: str) -> str:
    return f"thank you, {customer} (attempt {context.attempt})"


@task
def charge(amount: int) -> int:
    if amount < 0:
        raise ValueError("nobody pays a negative amount")
    return amount
