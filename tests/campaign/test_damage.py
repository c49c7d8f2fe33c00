"""The short form of the damage corpus."""

import random

from tests.campaign.damage import run


def test_a_damaged_file_gives_right_answers_or_an_error() -> None:
    result = run(random.Random(17), 3.0)

    assert result.broken == []
    assert sum(result.tried.values()) >= 40  # each counts as a damage and as a way
