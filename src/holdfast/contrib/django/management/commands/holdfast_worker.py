"""`manage.py holdfast_worker`: runs Django's tasks, and those of the project's registries."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django import conf
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from holdfast.contrib.django.stores import close_store, open_store
from holdfast.tasks import Tasks, Worker


class Command(BaseCommand):
    """The worker program of a Django project."""

    help = "Runs the tasks of this project until SIGTERM or SIGINT."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declares the options."""
        parser.add_argument(
            "--queues", default="", help="names or patterns, such as default,mail-*"
        )
        parser.add_argument("--threads", type=int, default=4, help="tasks that run at a time")
        parser.add_argument("--burst", action="store_true", help="stop when nothing is left")

    def handle(self, *args: Any, **options: Any) -> None:
        """Runs tasks until SIGTERM or SIGINT, or until nothing is left."""
        tasks = registry()
        queues = [name for name in options["queues"].split(",") if name] or task_queues(tasks)
        worker = Worker(open_store(), tasks, threads=options["threads"], queues=queues)
        self.stdout.write(f"runs the tasks of {', '.join(queues)} in {options['threads']} threads")
        if options["burst"]:
            self.stdout.write(f"{worker.run_until_empty()} runs")
        else:
            self._serve(worker)
        close_store()

    def _serve(self, worker: Worker) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        with worker:
            self.stdout.write("ready")
            self.stdout.flush()
            stopped.wait()


def registry() -> Tasks:
    """Returns Django's tasks together with the registries that `HOLDFAST_TASKS` names."""
    from holdfast.contrib.django.tasks import django_tasks_registry

    tasks = django_tasks_registry()
    for path in getattr(conf.settings, "HOLDFAST_TASKS", ()):
        tasks.include(import_string(path))
    return tasks


def task_queues(tasks: Tasks) -> list[str]:
    """Returns the queues of the registries, and those of the backends in `TASKS`."""
    queues = dict.fromkeys(tasks.queues)
    for params in getattr(conf.settings, "TASKS", {}).values():
        queues |= dict.fromkeys(params.get("QUEUES", ["default"]))
    return list(queues)
