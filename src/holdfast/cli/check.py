"""`holdfast check`: finds damage in a store, and in the indexes, lists and counts of its layers."""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from holdfast.cli.location import Location, Opened, any_space_options
from holdfast.cli.output import FOUND, Output, counted

if TYPE_CHECKING:
    from holdfast.admin.records import CheckStep


@click.command("check")
@any_space_options
def command(location: Location, out: Output) -> None:
    """Check a store and its indexes for damage.

    Reads every page that the engine stores, then compares, in every space (or in the one that
    --space names), indexes, lists and counts with the records. Others may read and write during the
    check. Exits with 3 if anything is wrong. `holdfast call entities.repair` rebuilds damaged
    indexes of entities.

    Example: holdfast check --data data
    """
    from holdfast.errors import StoreDamaged

    names: list[str] = []
    try:
        with location.open() as opened:
            names = [location.space] if location.names_space else opened.space.admin.spaces().spaces
            checked, found = problems_of(opened, names, out, engine=not location.names_space)
    except StoreDamaged as error:
        checked, found = 0, [{"space": None, "problem": str(error)}]

    def show() -> None:
        for each in found:
            out.say(f"{each['space'] or 'the engine'}: {each['problem']}")
        if found:
            out.say(f"{counted(len(found), 'problem')} in {counted(checked, 'key')}")
        else:
            out.say(f"{counted(checked, 'key')} in {counted(len(names), 'space')}, nothing wrong")

    out.result({"keys": checked, "spaces": names, "problems": found}, show)
    if found:
        sys.exit(FOUND)


def problems_of(
    opened: Opened, spaces: list[str], out: Output, *, engine: bool = True
) -> tuple[int, list[dict[str, str | None]]]:
    """Returns how many keys were checked, and the problems by space (None: the engine)."""
    found: list[dict[str, str | None]] = []
    if engine:
        with out.progress("engine"):
            listed = opened.space.admin.check_engine()
        found += [{"space": None, "problem": problem} for problem in listed]
        if found:
            return 0, found  # reading more of a damaged file may crash the process
    checked = 0
    total = _total(opened, spaces, engine=engine) if out.has_bar() else None
    with out.progress("check", total, "key") as tell:
        for name in [*spaces, *([None] if engine else [])]:
            admin = opened.space.admin
            look = admin.check_directory if name is None else opened.at(name).admin.check
            for step in _steps(look):
                checked += step.checked
                found += [{"space": name, "problem": problem} for problem in step.problems]
                tell(checked)
    return checked, found


def _total(opened: Opened, spaces: list[str], *, engine: bool) -> int | None:
    """Counts the keys to check: of the whole store, or of the space that was named."""
    if engine:
        return opened.space.admin.status().store.get("keys")
    return opened.at(spaces[0]).admin.count_keys()


def _steps(look: "Callable[..., CheckStep]") -> "Iterator[CheckStep]":
    after, is_done = None, False
    while not is_done:
        step = look(after=after)
        yield step
        after, is_done = step.next, step.next is None
