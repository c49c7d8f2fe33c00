"""The log of the worker program: lines for people on a terminal, JSON for machines otherwise.

Tasks are the user's own code, so their loggers are shown from INFO on, with tracebacks.
"""

import logging
import sys
from typing import Final, TextIO

from holdfast.json_logs import JsonFormatter

__all__ = ["start_logging"]

# Packages that Holdfast itself uses, and that log each of their connections or polls.
_NOISY: Final = ("asyncio", "libvalkey", "psycopg", "uvicorn", "valkey")


def start_logging(stream: TextIO = sys.stderr) -> None:
    """Sends the logs of tasks and worker to `stream`; users may reconfigure logging afterwards."""
    handler = logging.StreamHandler(stream)
    people = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(people if stream.isatty() else JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
