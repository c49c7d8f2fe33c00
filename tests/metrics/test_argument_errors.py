"""Whatever comes, an operation answers, or refuses with an error of ours and changes nothing."""

import inspect
import math
import random
from typing import Any

import pytest

from holdfast.errors import HoldfastError
from holdfast.metrics import Metrics
from holdfast.store import Store

OPERATIONS = [name for name in dir(Metrics) if not name.startswith("_")]
SPECS: Any = {"m": {}, "g": {"type": "gauge"}, "d": {"type": "distribution"}}
RUBBISH: list[Any] = [
    None, True, False, 0, 1, -1, 1.5, -0.5, math.nan, math.inf, 1e308, 1e-300, 2**53, 2**70,
    10**400, "", "m", "g", "d", "c", "10/minute", "p50", b"x", [], ["a"], [1], [1.5], [None], {},
    {"a": 1}, {"global": True, "components": ["x"]}, {"c": "10/minute"}, {"c": {"limit": 1}},
    [{"metric": "m"}], [{"condition": "c"}], [{"metric": "m", "latest": 60}], [{}], "gcra", "log",
    "strict", "extrapolate", "discard", 60, 1000, object(), "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_rubbish_is_refused_with_an_error_of_ours(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    store.metrics.define(SPECS)
    for _ in range(400):
        name = chance.choice(OPERATIONS)
        given = {}
        for parameter in list(inspect.signature(getattr(Metrics, name)).parameters.values())[1:]:
            if parameter.default is parameter.empty or chance.random() < 0.35:
                given[parameter.name] = chance.choice(RUBBISH)
        if chance.random() < 0.5 and "metric" in given:
            given["metric"] = chance.choice(list(SPECS))
        try:
            getattr(store.metrics, name)(**given)
        except HoldfastError:
            continue
