"""Rewrites job records for another space: a record holds the whole key of its place in a list."""

from typing import Final

import msgspec

from holdfast.jobs.layout import LAYER, Code
from holdfast.jobs.ledger import encode
from holdfast.jobs.records import JobRecord
from holdfast.keys import pack_int

_JOBS: Final = pack_int(LAYER) + pack_int(Code.JOB)  # after the space
_decode: Final = msgspec.msgpack.Decoder(JobRecord).decode


def without_space(key: bytes, value: bytes, space: bytes) -> bytes:
    """Returns a stored value as it is dumped; `key` is its key after the space."""
    return _moved(key, value, space, b"")


def within_space(key: bytes, value: bytes, space: bytes) -> bytes:
    """Returns a dumped value as it is stored in `space`."""
    return _moved(key, value, b"", space)


def _moved(key: bytes, value: bytes, old: bytes, new: bytes) -> bytes:
    if not key.startswith(_JOBS):
        return value
    job = _decode(value)
    if not job.place:
        return value
    job.place = new + job.place[len(old) :]
    return encode(job)
