"""Which registries `holdfast worker` loads."""

from pathlib import Path

import pytest

from holdfast.errors import BadTask
from holdfast.tasks.loading import WorkerSource, load_registry
from tests.tasks import sample


def test_a_registry_is_found_by_its_name() -> None:
    assert load_registry("tests.tasks.sample:tasks") is sample.tasks


def test_several_registries_are_served_as_one() -> None:
    source = WorkerSource(targets=("tests.tasks.sample:tasks", "tests.tasks.sample:others"))

    assert source.tasks().queues == ["sample", "others"]


def test_a_module_with_one_registry_needs_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app_of_one.py").write_text(
        "from holdfast.tasks import Tasks\nbilling = Tasks('billing')\n"
        "app = Tasks('app')\napp.include(billing)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert load_registry("app_of_one").name == "app"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("tests.tasks.sample", "the registries tasks, others"),
        ("tests.tasks.sample:taks", "no registry 'taks'"),
        ("tests.tasks.waiting", "no registry"),
        ("tests.tasks.nowhere", "there is no module 'tests.tasks.nowhere'"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(target: str, message: str) -> None:
    with pytest.raises(BadTask, match=message):
        load_registry(target)


def test_a_module_that_breaks_says_why_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_app.py").write_text("import nothing_of_that_name\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="nothing_of_that_name"):
        load_registry("broken_app")


def test_a_password_is_not_shown() -> None:
    assert "secret" not in WorkerSource(targets=(), server="holdfast://u:secret@host:1").describe()
    assert (
        "secret" not in WorkerSource(targets=(), store="postgresql://u:secret@host/db").describe()
    )
