"""The probes of request smuggling need proxies, which are not among the tests' dependencies."""

import random
import shutil

import pytest

from tests.campaign import smuggling


def test_proxies_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)

    result = smuggling.run(random.Random(17), seconds=1)

    assert result.left == list(smuggling.PROXIES)
    assert result.tried == {"probes": 0, "answers": 0, "busy": 0}
    assert result.broken == []


def test_probes_differ_from_each_other() -> None:
    probes = list(smuggling._probes())

    assert len(set(probes)) == len(probes) > 400
