"""A store in a Django project (extra `django`): tasks, cache, sessions and limits.

    INSTALLED_APPS = [..., "holdfast.contrib.django"]
    HOLDFAST = BASE_DIR / "data"
    TASKS = {"default": {"BACKEND": "holdfast.contrib.django.tasks.HoldfastBackend"}}
    CACHES = {"default": {"BACKEND": "holdfast.contrib.django.cache.HoldfastCache"}}
    SESSION_ENGINE = "holdfast.contrib.django.sessions"

`manage.py holdfast_worker` runs the tasks.
"""

from holdfast.contrib.django.limits import rate_limit
from holdfast.contrib.django.stores import close_store, open_store

__all__ = ["close_store", "open_store", "rate_limit"]
