"""Compression of rows. The first byte of a stored value names its codec, so values of different
codecs coexist.

`deflate` comes with Python, `lz4` and `snappy` with the package cramjam, which is imported when a
row is first compressed or expanded. A table that names no codec uses lz4.
"""

import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from holdfast.engine.contract import Reader
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import InvalidTableSchema, TableUnavailable
from holdfast.limits import MIN_COMPRESSED_BYTES

PLAIN: Final = 0
DEFLATE: Final = 1
LZ4: Final = 2
SNAPPY: Final = 3

CODES: Final = {"lz4": LZ4, "deflate": DEFLATE, "snappy": SNAPPY}
_NAMES: Final = {code: name for name, code in CODES.items()}
_BLOCK_SIZES: Final = (64, 128, 256, 512, 1024)
DEFAULT_ALGORITHM: Final = "lz4"
DEFAULT_BLOCK_SIZE: Final = 256
_INSTALL: Final = "Install the package cramjam, a dependency of Holdfast."


class Codec(msgspec.Struct, frozen=True):
    """Compresses and expands values."""

    compress: Callable[[bytes], bytes]
    expand: Callable[[bytes], bytes]


def choose(options: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Returns the codec of a table's new rows, and a warning for each skipped preference."""
    preferences = options.get("compression")
    if preferences is None:
        return CODES[DEFAULT_ALGORITHM], []
    warnings: list[str] = []
    for preference in preferences:
        problem = _problem(preference)
        if problem is None:
            return CODES[preference.get("algorithm", DEFAULT_ALGORITHM)], warnings
        warnings.append(f"a preference of compression is skipped: {problem}")
    return PLAIN, warnings


def check_compression(options: Mapping[str, Any]) -> None:
    """Raises if the option can't be met: rows would be stored differently. `[]` is allowed."""
    preferences = options.get("compression")
    if not preferences:
        return
    for preference in preferences:
        for name in preference:
            if name not in ("algorithm", "block_size"):
                near = did_you_mean(name, ("algorithm", "block_size"))
                raise InvalidTableSchema(
                    f"Invalid option value for compression: unknown member {shown(name)}{near}"
                )
    code, _ = choose(options)
    if code == PLAIN:
        raise InvalidTableSchema(
            f"Invalid option value for compression: {_problem(preferences[0])}",
            hint="Use lz4, deflate or snappy, or an empty array for no compression.",
        )
    if _find(code) is None:
        raise _missing(code)


def compress(code: int, body: bytes) -> tuple[int, bytes]:
    """Returns the codec and the compressed body; plain if compression saves too little."""
    if code == PLAIN or len(body) < MIN_COMPRESSED_BYTES:
        return PLAIN, body
    codec = _find(code)
    if codec is None:
        raise _missing(code)
    smaller = codec.compress(body)
    return (code, smaller) if len(smaller) <= len(body) * 7 // 8 else (PLAIN, body)


def expand(code: int, stored: bytes) -> bytes:
    codec = _find(code)
    if codec is None:
        raise _missing(code)
    return codec.expand(stored)


def count_expanded(reader: Reader, size: int) -> None:
    """Counts the bytes of an expanded value, if `reader` limits the bytes that are read: a few
    stored kilobytes may expand to megabytes."""
    spend = getattr(reader, "spend", None)
    if spend is not None:
        spend(size)


def _problem(preference: Mapping[str, Any]) -> str | None:
    """Returns why a preference can't be met; None if it can."""
    algorithm = preference.get("algorithm", DEFAULT_ALGORITHM)
    if not isinstance(algorithm, str) or algorithm not in CODES:
        return f"the algorithm {shown(algorithm)} is not known{did_you_mean(algorithm, CODES)}"
    block_size = preference.get("block_size", DEFAULT_BLOCK_SIZE)
    if isinstance(block_size, bool) or block_size not in _BLOCK_SIZES:
        return (
            f"the block_size of {algorithm} must be one of {_BLOCK_SIZES}, not {shown(block_size)}"
        )
    return None


def _missing(code: int) -> TableUnavailable:
    name = _NAMES.get(code, f"number {code}")
    return TableUnavailable(f"the codec {name} is not installed (cramjam)", hint=_INSTALL)


@cache
def _find(code: int) -> Codec | None:
    if code == DEFLATE:
        return Codec(zlib.compress, zlib.decompress)
    try:
        import cramjam
    except ImportError:
        return None
    if code == LZ4:
        return Codec(
            _with_size(cramjam.lz4.compress_block), _returning_bytes(cramjam.lz4.decompress_block)
        )
    if code == SNAPPY:
        return Codec(
            _returning_bytes(cramjam.snappy.compress_raw),
            _returning_bytes(cramjam.snappy.decompress_raw),
        )
    return None


def _with_size(compress_block: Callable[..., Any]) -> Callable[[bytes], bytes]:
    return lambda body: bytes(compress_block(body, store_size=True))


def _returning_bytes(convert: Callable[[bytes], Any]) -> Callable[[bytes], bytes]:
    return lambda data: bytes(convert(data))
