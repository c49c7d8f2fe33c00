"""Engines of other packages: a URL scheme finds them by an entry point."""

import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast.engine import GROUP, OWN_ENGINES
from holdfast.errors import BadInput

ROOT = Path(__file__).parent.parent.parent

MODULE = """
from holdfast.engine.contract import EngineOptions
from holdfast.engine.remote import RemoteEngine
from tests.engine.memory_backend import MemoryBackend

opened = []
BACKENDS = {}


def open_memory(url: str, options: EngineOptions) -> RemoteEngine:
    opened.append((url, options.durability))
    return RemoteEngine(BACKENDS.setdefault(url, MemoryBackend()), clock=options.clock)
"""


def install(folder: Path, name: str, scheme: str, target: str) -> None:
    """Writes what pip would: the metadata of a distribution that declares an engine."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{scheme} = {target}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that Python looks for packages in."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_store_opens_on_the_engine_of_an_installed_package(site: Path) -> None:
    (site / "memory_engine_for_a_test.py").write_text(MODULE)
    install(site, "memory-engine", "memory", "memory_engine_for_a_test:open_memory")

    with holdfast.open("memory://one", durability="interval") as store:
        store.jobs.put("emails", "Email", {}, id="welcome")
    with holdfast.open("memory://one") as store:
        [job] = store.jobs.pop("emails", "worker")

    import memory_engine_for_a_test as installed  # type: ignore[import-not-found]  # written above

    assert job.id == "welcome"
    assert installed.opened == [("memory://one", "interval"), ("memory://one", "commit")]


def test_two_packages_that_serve_one_scheme_are_refused(site: Path) -> None:
    install(site, "one-engine", "twice", "one:open")
    install(site, "two-engine", "twice", "two:open")

    with pytest.raises(BadInput, match="two packages serve the URL scheme 'twice': one:open and"):
        holdfast.open("twice://host")


def test_no_package_replaces_an_engine_of_ours(site: Path, tmp_path: Path) -> None:
    install(site, "other-engine", "lmdb", "no_such_module:open")

    with holdfast.open(f"lmdb:{tmp_path / 'data'}") as store:
        assert store.jobs.length("emails") == 0


def test_our_engines_are_declared_in_the_same_way() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]

    assert declared[GROUP] == OWN_ENGINES


def test_an_unknown_scheme_names_what_there_is() -> None:
    with pytest.raises(BadInput, match="no engine serves the URL scheme 'nosuch'"):
        holdfast.open("nosuch://host")
