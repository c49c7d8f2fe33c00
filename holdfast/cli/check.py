"""`holdfast check`: damage in a store, and in the indexes, lists and counts of its layers."""

import sys

import click

from holdfast.cli.output import FOUND, Output, many
from holdfast.cli.place import Opened, Place, place_options


@click.command("check")
@place_options
def command(place: Place, out: Output) -> None:
    """Look for damage in a store and in its indexes.

    Reads every page that the engine stores, then compares, in every space (or in the one that
    --space names), indexes, lists and counts with what they stand for. Others may go on working.
    Exits with 3 if anything is wrong; damaged indexes of entities are set right by the operation
    entities.repair.

    Example: holdfast check --data data
    """
    with place.open() as opened:
        names = [place.space] if place.names_space else opened.space.admin.spaces().spaces
        checked, found = problems_of(opened, names, out, engine=not place.names_space)

    def show() -> None:
        for each in found:
            out.say(f"{each['space'] or 'the engine'}: {each['problem']}")
        if found:
            out.say(f"{many(len(found), 'problem')} in {many(checked, 'key')}")
        else:
            out.say(f"{many(checked, 'key')} in {many(len(names), 'space')}, nothing wrong")

    out.result({"keys": checked, "spaces": names, "problems": found}, show)
    if found:
        sys.exit(FOUND)


def problems_of(
    opened: Opened, spaces: list[str], out: Output, *, engine: bool = True
) -> tuple[int, list[dict[str, str | None]]]:
    """How many keys were looked at, and what is wrong with which space (None: the engine)."""
    found: list[dict[str, str | None]] = []
    if engine:
        with out.progress("engine"):
            listed = opened.space.admin.check_engine()
        found += [{"space": None, "problem": problem} for problem in listed]
    checked = 0
    for name in spaces:
        count, listed = _check(opened, name, out)
        checked += count
        found += [{"space": name, "problem": problem} for problem in listed]
    return checked, found


def _check(opened: Opened, name: str, out: Output) -> tuple[int, list[str]]:
    admin = opened.at(name).admin
    problems: list[str] = []
    checked, after, is_done = 0, None, False
    with out.progress(name, total=1.0) as tell:
        while not is_done:
            step = admin.check(after=after)
            checked += step.checked
            problems += step.problems
            after, is_done = step.next, step.next is None
            tell(step.done)
    return checked, problems
