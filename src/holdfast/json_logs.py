"""Logs as JSON: one object a line, for programs that collect and search them.

    handler.setFormatter(JsonFormatter())

The server and the worker use it when their logs do not go to a terminal.
"""

import logging
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

__all__ = ["JsonFormatter"]

# The attributes of every record; others come from `extra` or a filter.
_USUAL: Final = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), "message", "asctime", "taskName"}
)


class JsonFormatter(logging.Formatter):
    """Writes each record as one line of JSON: time, level, logger, message and extra fields.

    A message with quotes or newlines is still one string on one line. Extra fields are those that
    were passed with `extra` or added by a filter, such as `request_id` or `trace_id`; empty ones
    are left out. Without `exceptions`, tracebacks and stacks are left out too.

    >>> record = logging.LogRecord("shop", logging.INFO, "", 1, 'sold "%s"', ("tea",), None)
    >>> record.created, record.request_id = 0, "r-1"
    >>> print(JsonFormatter().format(record).replace(',"message', ',\\n "message'))
    {"at":"1970-01-01T00:00:00.000+00:00","level":"info","logger":"shop",
     "message":"sold \\"tea\\"","request_id":"r-1"}
    """

    def __init__(self, *, exceptions: bool = True) -> None:
        super().__init__()
        self._exceptions = exceptions

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as a line, without a trailing newline."""
        at = datetime.fromtimestamp(record.created, UTC)
        line = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._exceptions and record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if self._exceptions and record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        for name, value in vars(record).items():
            if name not in _USUAL and name not in line and value not in ("", None):
                line[name] = value
        return _encoded(line)


def _encoded(line: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        # Half a surrogate pair, a key that is not a string, a number beyond 64 bits: shown as
        # Python would show it.
        return msgspec.json.encode({name: _shown(value) for name, value in line.items()}).decode()


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text.encode(errors="backslashreplace").decode()
