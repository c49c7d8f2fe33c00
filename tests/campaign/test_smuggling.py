"""Request smuggling through a proxy of ours: nginx and HAProxy are not needed by the tests."""

import random
import shutil
from pathlib import Path

import pytest

from tests.campaign import smuggling


def test_requests_through_a_proxy_get_their_own_answers_and_missing_proxies_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    probes = random.Random(17).sample(list(smuggling._probes()), 20)
    monkeypatch.setattr(smuggling, "_probes", lambda: probes)

    result = smuggling.run(random.Random(17), seconds=1)

    assert result.broken == []
    assert result.tried == {"probes": 20, "answers": 40, "busy": 0}
    assert result.left == [name for name in smuggling.PROXIES if name != smuggling._OURS]


def test_a_server_that_smuggles_is_found(tmp_path: Path) -> None:
    assert smuggling.finds_a_server_that_smuggles(smuggling._OURS, tmp_path)


def test_probes_differ_from_each_other() -> None:
    probes = list(smuggling._probes())

    assert len(set(probes)) == len(probes) > 400
