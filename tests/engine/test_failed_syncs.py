"""Pages that a failed sync may have left in memory only are written again."""

import resource
from pathlib import Path

import pytest

from holdfast.engine.lmdb import failed_syncs


def test_a_file_that_is_written_again_by_half_is_an_error(tmp_path: Path) -> None:
    content = bytes(range(256)) * 32
    (tmp_path / "data").write_bytes(content)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    with (tmp_path / "data").open("r+b") as file:
        # Linux writes what is below the limit, and says how much that was.
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) // 2, limits[1]))
        try:
            with pytest.raises(OSError, match="Input/output error"):
                failed_syncs.write_again(file.fileno())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

        failed_syncs.write_again(file.fileno())

    assert (tmp_path / "data").read_bytes() == content
