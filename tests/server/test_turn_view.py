"""The view that all reads of one turn of the server's event loop share."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

import holdfast
from holdfast.server.turn_view import TurnView

PUT_A_JOB = """
import sys, holdfast
with holdfast.open(sys.argv[1], durability=sys.argv[2]) as store:
    store.jobs.put("emails")
"""


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_reads_of_one_turn_share_a_view_until_someone_commits(
    tmp_path: Path, durability: Literal["commit", "interval"]
) -> None:
    async def main() -> None:
        with holdfast.open(tmp_path, durability=durability) as store:
            store.jobs.put("emails")
            turn_view = TurnView(asyncio.get_running_loop())
            first = turn_view.of(store)

            assert turn_view.of(store) is first
            assert first.jobs.length("emails") == 1

            store.jobs.put("emails")
            second = turn_view.of(store)
            assert second is not first
            assert second.jobs.length("emails") == 2

            subprocess.run([sys.executable, "-c", PUT_A_JOB, tmp_path, durability], check=True)
            assert turn_view.of(store).jobs.length("emails") == 3

            other = store.space("other")
            assert turn_view.of(other).jobs.length("emails") == 0
            turn_view.end()

    asyncio.run(main())


def test_the_view_is_closed_at_the_end_of_its_turn(tmp_path: Path) -> None:
    async def main() -> None:
        with holdfast.open(tmp_path) as store:
            turn_view = TurnView(asyncio.get_running_loop())
            first = turn_view.of(store)
            await asyncio.sleep(0)

            second = turn_view.of(store)
            assert second is not first
            turn_view.end()

    asyncio.run(main())
