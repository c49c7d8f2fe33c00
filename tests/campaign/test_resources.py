"""Every attack of the resource oracle once, in small: memory bounded, the server alive, all back.

The 100 ms of `/livez` are for a machine that has time, so the long form asks for them. Here the
work of the loop is measured that comes before an answer, which a busy machine does not change.
"""

import random

from tests.campaign import resources
from tests.campaign.attacks import ATTACKS


def test_no_attack_takes_the_servers_memory_or_its_answers() -> None:
    with resources.servers() as (server, alone):
        result = resources.oracle(
            server,
            alone,
            random.Random(17),
            seconds=1,
            scale=0.05,
            measure="most_work",
            livez_seconds=0.5,
        )

    assert result.broken == []
    assert result.tried["attacks"] == len(ATTACKS)


def test_attacks_that_there_was_no_time_for_are_named() -> None:
    with resources.servers() as (server, alone):
        result = resources.oracle(
            server,
            alone,
            random.Random(17),
            seconds=0,
            scale=0.01,
            names=["lines without end", "large heads", "compressed bodies"],
            most_seconds=0,
            livez_seconds=60,
        )

    assert result.tried["attacks"] == 1
    assert len(result.left) == 2
