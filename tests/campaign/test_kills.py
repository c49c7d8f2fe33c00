"""A few seconds of the kill matrix: every setup, each with another durability and action."""

import random
from collections import Counter

import pytest

from tests.campaign import kills
from tests.campaign.kills import MATRIX, Cell, run_cells

SECONDS = 2.0  # of kills; to start, to look back and to check comes on top


def attack(setup: str, durability: str, action: str) -> None:
    result = run_cells([Cell(setup, durability, action)], random.Random(17), SECONDS)

    assert result.broken == []
    assert result.tried["kills"] > 0
    assert result.tried["acknowledged"] > 0


def test_the_matrix_has_a_cell_for_each_setup_durability_and_action() -> None:
    assert len(set(MATRIX)) == 5 * 2 * 6


def test_cells_that_there_was_no_time_for_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell("3 processes", "commit", action) for action in ("load", "copy", "backup")]
    monkeypatch.setattr(kills, "attack", lambda *_: (Counter(kills=1), []))

    result = run_cells(cells, random.Random(17), seconds=0.0)
    rest = kills.run_rest(result.left, random.Random(17), seconds=600.0)

    assert result.tried["cells"] == 1
    assert result.left == ["3 processes, commit, copy", "3 processes, commit, backup"]
    assert (rest.tried["cells"], rest.left) == (2, [])


def test_a_killed_server_keeps_what_it_acknowledged_while_it_backs_up() -> None:
    attack("server", "interval", "backup")


def test_killed_processes_on_one_folder_keep_what_was_acknowledged_while_an_index_is_built() -> (
    None
):
    attack("3 processes", "commit", "index build")


@pytest.mark.only_on("postgres")
def test_a_postgresql_server_that_crashes_loses_nothing_and_its_clients_go_on() -> None:
    attack("PostgreSQL", "commit", "load")


@pytest.mark.only_on("valkey")
def test_a_valkey_server_that_crashes_loses_nothing_and_its_clients_go_on() -> None:
    attack("Valkey", "commit", "space drop")


@pytest.mark.only_on("cluster")
def test_a_primary_that_crashes_is_replaced_and_nothing_that_its_replica_had_is_lost() -> None:
    attack("cluster", "interval", "load")
