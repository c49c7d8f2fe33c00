"""The form of an example call; `examples.py` has all of them."""

import time
from typing import Any, NamedTuple

NOW = float(int(time.time()))  # a real time: what is older than the store keeps is not kept
MS = int(NOW * 1000)


class Call(NamedTuple):
    operation: str
    arguments: dict[str, Any]
    apart_from: frozenset[str] = frozenset()  # fields that depend on the server's clock or on luck


def calls_of(layer: str, *calls: tuple[Any, ...]) -> list[Call]:
    always = {"lock"} if layer == "jobs" else set()  # the number of a lock is a time
    return [
        Call(f"{layer}.{name}", arguments, frozenset(rest) | always)
        for name, arguments, *rest in calls
    ]
