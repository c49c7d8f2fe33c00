"""The redo log: records that are whole count, and others never do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import folder
from holdfast.engine.lmdb.redo_log import RedoLog


@pytest.fixture(scope="module", params=["mapped", "synced"])
def log(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedoLog]:
    log = RedoLog(tmp_path_factory.mktemp("log"), synced=request.param == "synced")
    yield log
    log.close()


writes = st.dictionaries(st.binary(min_size=1, max_size=9), st.none() | st.binary(max_size=9))


@settings(deadline=None)
@given(st.lists(writes, max_size=6), st.lists(writes, max_size=6), st.data())
def test_of_a_log_that_was_cut_anywhere_whole_records_are_left(
    log: RedoLog,
    older: list[dict[bytes, bytes | None]],
    newer: list[dict[bytes, bytes | None]],
    data: st.DataObject,
) -> None:
    log.begin()
    log.restart(7)
    for each in older:
        log.write(log.record(each), log.position)
    assert list(log.records(7)) == older
    log.restart(8)
    begin = log.position
    places = []
    for each in newer:
        record = log.record(each)
        places.append((log.position, record))
        log.write(record, log.position)

    cut = data.draw(st.integers(begin, log.position))
    with log.path.open("r+b") as file:
        file.seek(cut)
        file.write(data.draw(st.binary(min_size=16, max_size=16)))
    found = list(log.records(8))

    content = log.path.read_bytes()
    whole = [
        content.startswith(record[: 16 + int.from_bytes(record[:4], "little")], place)
        for place, record in places
    ]
    assert found == newer[: [*whole, False].index(False)]


@pytest.mark.parametrize("synced", [False, True])
def test_of_another_boot_only_a_log_that_was_synced_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: bool
) -> None:
    log = RedoLog(tmp_path, synced=synced)
    assert not log.is_valid()
    log.begin()
    assert log.is_valid()

    monkeypatch.setattr(folder, "boot_id", lambda: "another one")

    assert log.is_valid() is synced
    log.close()
