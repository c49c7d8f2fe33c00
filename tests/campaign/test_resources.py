"""Every attack of the resource oracle once, in small: memory bounded, the server alive, all back.

The 100 ms of `/livez` are for a machine that has time, so the long form asks for them.
"""

import random

from tests.campaign import resources


def test_no_attack_takes_the_servers_memory_or_its_answers() -> None:
    result = resources.oracle(random.Random(17), seconds=1, scale=0.05, livez_seconds=10.0)

    assert result.broken == []
    assert result.tried["attacks"] > 0
