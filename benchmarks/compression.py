"""Does lz4 pay for rows of HTML? Prints the table of docs/howto/tables.md.

A row's body is the page that pydoc makes of `difflib`, cut to size: HTML that any Python can make.
The figures are what compression adds to a row: `compress` when it is written, `expand` when it is
read. The rest of a put or a get is the same with and without it. Not part of `make bench`.

Run: python -m benchmarks.compression
"""

import difflib
import pydoc
import time
from collections.abc import Callable
from typing import Final

from holdfast.tables.compression import LZ4, compress, expand

SIZES: Final = (256, 512, 2_000, 30_000)
ROUNDS: Final = 60
CALLS: Final = 500


def main() -> None:
    page = pydoc.HTMLDoc().document(difflib).encode()
    print("| HTML of | is stored in | writing takes longer by | reading by |")
    print("|---|---|---|---|")
    for size in SIZES:
        print(table_row(page[:size]))


def table_row(body: bytes) -> str:
    code, stored = compress(LZ4, body)
    writing = microseconds(lambda: compress(LZ4, body))
    reading = microseconds(lambda: expand(code, stored))
    return f"| {len(body):,} B | {len(stored):,} B | {writing:.2g} µs | {reading:.2g} µs |"


def microseconds(call: Callable[[], object]) -> float:
    """Returns the time of one call in the fastest round: other programs can only slow it down."""
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        taken.append(time.perf_counter() - begin)
    return min(taken) / CALLS * 1e6


if __name__ == "__main__":
    main()
