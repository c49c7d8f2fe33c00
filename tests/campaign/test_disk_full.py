"""The short form of the loop on full disks."""

import random

from tests.campaign.disk_full import run


def test_a_full_disk_loses_nothing_and_can_be_emptied() -> None:
    result = run(random.Random(7), 1.0)

    assert result.broken == []
    assert result.tried["disks"] >= 1
    assert result.tried["deletes on a full disk"] > 0
