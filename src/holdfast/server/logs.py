"""The server's log: lines for people on a terminal, JSON for machines otherwise.

Nothing that clients send is logged, neither values nor credentials; only the id of a request, which
its client gets back as `X-Request-Id`, or the number of a connection, which `CLIENT ID` answers.
"""

import logging
import sys
from typing import TextIO

from holdfast.json_logs import JsonFormatter


def start_logging(stream: TextIO = sys.stderr) -> None:
    """Sends everything that Holdfast logs to `stream`."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        _TerminalFormatter() if stream.isatty() else JsonFormatter(exceptions=False)
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("holdfast").setLevel(logging.INFO)
    # It would log exceptions with their messages, which may contain values of requests.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


class _TerminalFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        ids = [
            f"{name.replace('_id', '')} {vars(record)[name]}"
            for name in ("request_id", "connection")
            if name in vars(record)
        ]
        return super().format(record) + (f" ({', '.join(ids)})" if ids else "")
