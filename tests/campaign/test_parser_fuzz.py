"""A few seconds of the differential fuzz of the parsers."""

import random

from tests.campaign import parser_fuzz


def test_bytes_are_read_the_same_whole_and_in_pieces() -> None:
    result = parser_fuzz.run(random.Random(17), seconds=3)

    assert result.broken == []
    assert result.tried["inputs of commands"] > 50
