"""The server's log: lines for people on a terminal, JSON for machines otherwise.

What clients send is never logged, neither values nor credentials.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

import msgspec


def start_logging(stream: TextIO = sys.stderr) -> None:
    """Sends all that Holdfast logs to `stream`."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_ForPeople() if stream.isatty() else _ForMachines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("holdfast").setLevel(logging.INFO)
    # It would log exceptions with their messages, which may contain values of requests.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


class _ForPeople(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")


class _ForMachines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return msgspec.json.encode(line).decode()
