"""A few seconds of interrupted fan-outs."""

import random

from tests.campaign.fan_outs import interrupt


def test_a_fan_out_that_is_killed_ten_times_is_exact_at_the_end() -> None:
    result = interrupt(random.Random(7), keys=6_000, kills=10)

    assert result.broken == []
    assert result.tried["kills"] == 10
