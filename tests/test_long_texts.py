"""A long text, wherever a caller puts one, is neither kept nor quoted nor slow.

Every example call is made again with a long text in place of each of its texts and names.
"""

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.errors import HoldfastError
from holdfast.errors.base import MAX_ERROR_CHARACTERS
from holdfast.limits import MAX_CACHED_KEY_BYTES
from holdfast.operations import OPERATIONS
from tests.server.example_calls import Call
from tests.server.examples import EXAMPLES

LENGTH = MAX_CACHED_KEY_BYTES + 1
MOST_SECONDS = 1.0  # of the processor, for one call: most take a few milliseconds


def long_text() -> str:
    """A text of its own each time, so that it is seen who keeps it."""
    return "x" * MAX_CACHED_KEY_BYTES + "\N{GRINNING FACE}"


def with_long_texts(given: Any, *, is_outer: bool = True) -> Iterator[Any]:
    """The arguments of a call, each time with one text or name of them replaced."""
    if isinstance(given, str):
        yield long_text()
    elif isinstance(given, dict):
        for name, value in given.items():
            for changed in with_long_texts(value, is_outer=False):
                yield {**given, name: changed}
            if not is_outer:
                yield {long_text() if each == name else each: given[each] for each in given}
    elif isinstance(given, list):
        for place, value in enumerate(given[:3]):
            for changed in with_long_texts(value, is_outer=False):
                yield [*given[:place], changed, *given[place + 1 :]]


def kept_texts() -> dict[int, str]:
    """The long texts that are referred to, each with the type of an object that does so."""
    gc.collect()
    return {
        id(text): f"{type(each).__qualname__} {each!r:.50}"
        for each in gc.get_objects()
        for text in gc.get_referents(each)
        if type(text) in (str, bytes) and len(text) >= LENGTH
    }


def called(store: holdfast.Store, call: Call, arguments: dict[str, Any]) -> HoldfastError | None:
    operation = OPERATIONS[call.operation]
    try:
        operation.call(
            getattr(store, operation.layer), msgspec.convert(arguments, operation.arguments)
        )
    except msgspec.ValidationError:
        return None
    except HoldfastError as error:
        return error.with_traceback(None)
    return None


@pytest.mark.parametrize("layer", EXAMPLES)
def test_no_operation_keeps_or_quotes_a_long_text(tmp_path: Path, layer: str) -> None:
    calls = [
        each
        for each in EXAMPLES[layer]
        if OPERATIONS[each.operation].kind != "wait" and "backup" not in each.operation
    ]
    slow, wordy = [], []

    with holdfast.open(tmp_path / "data", durability="interval") as store:
        before = kept_texts()
        for call in calls:
            for arguments in with_long_texts(call.arguments):
                begin = time.thread_time()
                error = called(store, call, arguments)
                if time.thread_time() - begin > MOST_SECONDS:
                    slow.append(call.operation)
                if error is not None and len(str(error)) > 2 * MAX_ERROR_CHARACTERS + 100:
                    wordy.append(call.operation)
            called(store, call, call.arguments)

    del arguments, error  # which are this test's own
    kept = [what for text, what in kept_texts().items() if text not in before]
    assert (kept, slow, wordy) == ([], [], [])
