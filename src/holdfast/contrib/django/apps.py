"""The Django application that adds `manage.py holdfast_worker`."""

from django.apps import AppConfig


class HoldfastConfig(AppConfig):
    """Holdfast in `INSTALLED_APPS`."""

    name = "holdfast.contrib.django"
    label = "holdfast"
    verbose_name = "Holdfast"
