"""Compression of rows. The first byte of a stored value names its codec, so values of different
codecs coexist.

`deflate` comes with Python. `lz4` and `snappy` come with the package cramjam (the extra
`compression`); it is imported when a table first needs it.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast.errors import TableUnavailable
from holdfast.limits import MIN_COMPRESSED_BYTES

PLAIN: Final = 0
DEFLATE: Final = 1
LZ4: Final = 2
SNAPPY: Final = 3

CODES: Final = {"deflate": DEFLATE, "lz4": LZ4, "snappy": SNAPPY}
_NAMES: Final = {code: name for name, code in CODES.items()}
_BLOCK_SIZES: Final = (64, 128, 256, 512, 1024)
DEFAULT_ALGORITHM: Final = "lz4"
DEFAULT_BLOCK_SIZE: Final = 256
_EXTRA: Final = "Install it with the extra `compression` (the package cramjam)."


class Codec(msgspec.Struct, frozen=True):
    """One way to make a value smaller, and the way back."""

    compress: Callable[[bytes], bytes]
    expand: Callable[[bytes], bytes]


def choose(options: Mapping[str, Any]) -> tuple[int, list[str]]:
    """The codec of a table's new rows, and a warning for each preference that can't be met."""
    warnings = []
    for preference in options.get("compression") or ():
        algorithm = preference.get("algorithm", DEFAULT_ALGORITHM)
        if preference.get("block_size", DEFAULT_BLOCK_SIZE) not in _BLOCK_SIZES:
            warnings.append(f"compression {algorithm!r} is skipped: its block_size is invalid")
        elif not isinstance(algorithm, str) or algorithm not in CODES:
            warnings.append(f"compression {algorithm!r} is skipped: it is not known")
        elif _find(CODES[algorithm]) is None:
            warnings.append(f"compression {algorithm!r} is skipped: it is not installed")
        else:
            return CODES[algorithm], warnings
    return PLAIN, warnings


def compress(code: int, body: bytes) -> tuple[int, bytes]:
    """The codec that was used and what it made of `body`: plain, if there is little to gain."""
    if code == PLAIN or len(body) < MIN_COMPRESSED_BYTES:
        return PLAIN, body
    codec = _find(code)
    smaller = body if codec is None else codec.compress(body)
    return (code, smaller) if len(smaller) <= len(body) * 7 // 8 else (PLAIN, body)


def expand(code: int, stored: bytes) -> bytes:
    codec = _find(code)
    if codec is None:
        name = _NAMES.get(code, f"number {code}")
        raise TableUnavailable(
            f"a row is compressed with {name}, which is not installed (cramjam)", hint=_EXTRA
        )
    return codec.expand(stored)


def _find(code: int) -> Codec | None:
    if code == DEFLATE:
        return Codec(zlib.compress, zlib.decompress)
    try:
        import cramjam
    except ImportError:
        return None
    if code == LZ4:
        return Codec(
            lambda body: bytes(cramjam.lz4.compress_block(body, store_size=True)),
            lambda stored: bytes(cramjam.lz4.decompress_block(stored)),
        )
    if code == SNAPPY:
        return Codec(
            lambda body: bytes(cramjam.snappy.compress_raw(body)),
            lambda stored: bytes(cramjam.snappy.decompress_raw(stored)),
        )
    return None
