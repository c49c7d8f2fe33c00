"""The settings of the shop; the store is the folder `data`."""

import importlib.util

SECRET_KEY = "only for the example"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "examples.django_shop.shop.urls"
USE_TZ = True
TIME_ZONE = "UTC"
DATABASES: dict[str, object] = {}
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware"]

HAS_DJANGO_TASKS = importlib.util.find_spec("django.tasks") is not None  # from Django 6 on
INSTALLED_APPS = [
    *([] if HAS_DJANGO_TASKS else ["django_tasks"]),
    "holdfast.contrib.django",
    "examples.django_shop.shop",
]

HOLDFAST = "data"
TASKS = {"default": {"BACKEND": "holdfast.contrib.django.tasks.HoldfastBackend"}}
CACHES = {"default": {"BACKEND": "holdfast.contrib.django.cache.HoldfastCache"}}
SESSION_ENGINE = "holdfast.contrib.django.sessions"
