"""Runs the commands of this project: `python -m examples.django_shop.manage holdfast_worker`."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_shop.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
