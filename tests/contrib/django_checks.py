"""Checks of `contrib.django` on a real project; test_django.py runs this program.

It is a process of its own, because the settings of Django are those of a whole process.
"""

import asyncio
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import cache, caches
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.http import HttpResponse
from django.test import RequestFactory

from holdfast.contrib.django import close_store, open_store, rate_limit
from holdfast.testing import Clock

clock = Clock()


def a_cached_value_lives_as_long_as_it_was_given() -> None:
    cache.set("price", {"tea": 3}, timeout=1.5)
    assert cache.get("price") == {"tea": 3}

    clock.advance(seconds=1)
    assert cache.touch("price", 10)
    clock.advance(seconds=9)
    assert "price" in cache
    clock.advance(seconds=2)

    assert cache.get("price", "gone") == "gone"
    assert not cache.touch("price", 10)
    cache.set("short", 1, timeout=0)
    assert "short" not in cache


def a_value_is_added_once_and_several_are_put_together() -> None:
    assert cache.add("first", 1)
    assert not cache.add("first", 2)
    assert cache.set_many({"a": 1, "b": [2]}) == []
    assert cache.get_many(["a", "b", "c"]) == {"a": 1, "b": [2]}
    cache.delete_many(["a", "b"])
    assert cache.get_many(["a", "b"]) == {}
    assert cache.delete("first")
    assert not cache.delete("first")
    assert cache.get_or_set("made", lambda: "now") == "now"
    assert cache.get_or_set("made", "later") == "now"


def counters_of_many_threads_lose_nothing() -> None:
    cache.set("visits", 0, timeout=100)
    threads = [
        threading.Thread(target=lambda: [cache.incr("visits") for _ in range(25)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert cache.get("visits") == 100
    assert cache.decr("visits", 40) == 60
    clock.advance(seconds=101)  # an increment does not make a value live longer
    with pytest.raises(ValueError, match="visits"):
        cache.incr("visits")


def a_cache_is_cleared_alone() -> None:
    cache.set("kept", 1, None)
    caches["other"].set("gone", 1)
    caches["other"].clear()

    assert (cache.get("kept"), caches["other"].get("gone")) == (1, None)


def a_session_ends_by_itself_and_one_that_was_deleted_stays_so() -> None:
    from holdfast.contrib.django.sessions import SessionStore

    session = SessionStore()
    session["customer"] = "ann"
    session.set_expiry(60)
    session.save()
    key = session.session_key
    assert key is not None
    assert SessionStore(key)["customer"] == "ann"
    assert session.exists(key)

    clock.advance(seconds=61)
    assert SessionStore(key).get("customer") is None
    with pytest.raises(UpdateError):
        session.save()
    other = SessionStore()
    other.create()
    other.delete()
    assert not other.exists(str(other.session_key))


def a_task_that_raises_has_failed_with_its_exception() -> None:
    from examples.django_shop.shop.tasks import charge

    good, bad = charge.enqueue(5), charge.enqueue(-1)
    assert good.status.value == "READY"
    call_command("holdfast_worker", "--burst", stdout=io.StringIO())
    open_store()
    good.refresh()
    bad.refresh()

    assert (good.status.value, good.return_value, good.attempts) == ("SUCCESSFUL", 5, 1)
    assert bad.status.value == "FAILED"
    assert bad.errors[0].exception_class is ValueError
    assert "negative amount" in bad.errors[0].traceback
    assert bad.finished_at is not None


def a_task_runs_after_its_time_and_by_its_priority() -> None:
    from examples.django_shop.shop.tasks import charge

    now = datetime.fromtimestamp(clock(), UTC)
    later = charge.using(run_after=now + timedelta(minutes=5), priority=7).enqueue(1)
    job = open_store().jobs.get(later.id)

    assert job is not None
    assert (job.state, job.priority) == ("scheduled", 7.0)


def only_tasks_of_installed_applications_are_run() -> None:
    from examples.django_shop.shop.tasks import charge

    backend: Any = charge.get_backend()
    for path in ("os.system", "examples.django_shop.shop.views.order"):
        with pytest.raises(Exception, match=r"installed application|not a task"):
            backend.find(path)
    with pytest.raises(Exception, match="nobody"):
        charge.get_result("nobody")


def views_beyond_their_limit_are_refused_also_async_ones() -> None:
    @rate_limit({"calls": "1/hour"}, key=lambda request: {"calls": request.GET["user"]})
    async def view(request: Any) -> HttpResponse:
        return HttpResponse("hello")

    async def visit(user: str) -> Any:
        return await view(RequestFactory().get(f"/?user={user}"))

    answers = [asyncio.run(visit(user)) for user in ("ann", "ann", "bob")]
    assert [answer.status_code for answer in answers] == [200, 429, 200]
    assert int(answers[1]["Retry-After"]) > 0


def a_project_without_a_store_is_told_so() -> None:
    close_store()
    place = settings.HOLDFAST
    del settings.HOLDFAST
    with pytest.raises(ImproperlyConfigured, match="HOLDFAST"):
        open_store()
    settings.HOLDFAST = place


CHECKS: list[Callable[[], None]] = [
    a_cached_value_lives_as_long_as_it_was_given,
    a_value_is_added_once_and_several_are_put_together,
    counters_of_many_threads_lose_nothing,
    a_cache_is_cleared_alone,
    a_session_ends_by_itself_and_one_that_was_deleted_stays_so,
    a_task_that_raises_has_failed_with_its_exception,
    a_task_runs_after_its_time_and_by_its_priority,
    only_tasks_of_installed_applications_are_run,
    views_beyond_their_limit_are_refused_also_async_ones,
    a_project_without_a_store_is_told_so,
]


@contextmanager
def project() -> Iterator[None]:
    """A project whose store is in a folder of its own, on a clock that stays still."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "examples.django_shop.settings"
    with tempfile.TemporaryDirectory() as folder:
        settings.HOLDFAST = Path(folder) / "data"
        settings.HOLDFAST_OPTIONS = {"clock": clock, "durability": "interval"}
        backend = settings.CACHES["default"]
        settings.CACHES = {"default": backend, "other": {**backend, "LOCATION": "other"}}
        django.setup()
        yield
        close_store()


def main() -> None:
    with project():
        for check in CHECKS:
            check()
            print(check.__name__.replace("_", " "))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
