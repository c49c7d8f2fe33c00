"""The C codec of pymongo (extra `meduza`), and the types that it reads and writes.

It is several times as fast as the codec in bson_codec.py, which is used without it."""

from typing import Any, Final

import bson
from bson.binary import Binary
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.errors import BSONError
from bson.int64 import Int64

__all__ = ["BSONError", "Binary", "DatetimeMS", "Int64", "decode", "encode"]

_OPTIONS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    document_class=dict, tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


def decode(body: bytes) -> dict[str, Any]:
    """Decodes the document in `body`; raises `BSONError` and others if it is not one."""
    return bson.decode(body, _OPTIONS)


def encode(document: dict[str, Any]) -> bytes:
    """Returns the document as bytes; raises `OverflowError` for an integer above 2^63 - 1."""
    return bson.encode(document)
