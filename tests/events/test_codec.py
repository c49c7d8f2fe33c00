"""The stored form of a key: old records are read, new parts come and go."""

from holdfast.events.codec import (
    DECAYED,
    FANNED_OUT,
    GROSS_OFF,
    KEPT,
    ROWS,
    SCORED,
    UNBOUNDED,
    WINDOWED,
    KeyRecord,
    decode,
)

# As the first version has stored them: a set of one member, and one with lifetime and rows.
PLAIN = bytes.fromhex("00000000000000000003ffffffff00000001000680a7b1b8c9d8") + b"x"
WITH_PARTS = bytes.fromhex(
    "c2020000000000000007000000640000012c0000"
    "000000000000000a00000000000000140000000000000005"
    "0000000000000001000000000000000200000000000000030000000000000004"
    "0000000500000006"
)


def test_a_record_of_the_first_version_is_read_and_written_as_it_was() -> None:
    record = decode(b"k", b"K", PLAIN)

    assert (record.flags, record.bundles, record.gross, record.bound) == (0, 0, 3, UNBOUNDED)
    assert (record.size, record.digests, record.head) == (1, PLAIN[20:26], b"x")
    assert record.encode() == PLAIN


def test_a_record_with_the_parts_of_the_first_version_is_read_and_written_as_it_was() -> None:
    record = decode(b"k", b"K", WITH_PARTS)

    assert (record.flags, record.bundles, record.size) == (ROWS, 2, 300)
    assert (record.expires_ms, record.lifetime_ms, record.scheduled_ms) == (10, 20, 5)
    assert (record.generation, record.sequence, record.floor) == (1, 2, 3)
    assert (record.smallest, record.smallest_listed, record.smallest_used) == (4, 5, 6)
    assert record.encode() == WITH_PARTS


def test_new_flags_and_parts_survive_a_round_trip() -> None:
    flags = GROSS_OFF | FANNED_OUT | WINDOWED | SCORED | KEPT | DECAYED
    record = KeyRecord(b"k", b"K", flags=flags, bundles=9, gross=1, head=b"head", digests=b"digest")
    record.landmark_ms, record.half_life_ms = 123, 456

    again = decode(b"k", b"K", record.encode())

    assert (again.flags, again.bundles, again.gross) == (flags, 9, 1)
    assert (again.landmark_ms, again.half_life_ms) == (123, 456)
    assert (again.head, again.digests) == (b"head", b"digest")
