"""Actions beside the kills of the kill matrix: backups, index builds, drops, copies, restores.

Each action runs in a process of its own, over and over, until it is killed like everything else.
Afterwards `problems` looks at what is left: an action that was finished has its result, and one
that was not is either as if it had not begun, or can be finished by running it again.
"""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

import holdfast
from holdfast.engine import open_engine
from holdfast.engine.contract import Engine
from holdfast.entities import schema_yaml
from holdfast.errors import BadInput, CopyUnfinished, HoldfastError, StoreUnusable
from holdfast.expiry import dropped_key
from holdfast.keys import pack, prefix_range
from holdfast.spaces import DIRECTORY
from holdfast.store import Store
from holdfast.store_copy import copy
from tests.campaign import orders
from tests.campaign.load import PAUSE_SECONDS, Place
from tests.processes import Connection

TARGETS: Final = 12  # stores made ready for copies and restores into engines
DROPPED_JOBS: Final = 600  # more than one step of a drop
LOOKED_AT: Final = 2  # of the backups and copies of a cell, the newest; each is read as a whole
TABLE_INDEXES: Final = 3


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where an action works."""

    place: Place  # where clients find the store
    url: str  # the store for the library
    durability: str
    folder: Path  # for backups, copies and restores in folders
    targets: list[str]  # empty stores on the same engine, if that is not a folder

    @property
    def is_remote(self) -> bool:
        return not self.url.startswith("lmdb:")

    def engine(self) -> Engine:
        return open_engine(self.url, durability=self.durability)

    def target(self, kind: str, number: int) -> str:
        """A place on the same engine for what an action makes."""
        if self.is_remote:
            return self.targets[number % len(self.targets)]
        return f"lmdb:{self.folder / f'{kind}-{number}'}"


class Done(msgspec.Struct, frozen=True):
    """One finished run of an action."""

    number: int
    begun: float  # monotonic: what was acknowledged before must be in its result


def act_without_end(name: str, site: Site, first: int, ours: Connection) -> None:
    """Runs an action again and again, and reports what was begun and what was finished."""
    for number in itertools.count(first):
        begun = time.monotonic()
        ours.send((number, begun, False))
        try:
            ACTIONS[name].act(site, number)
        except HoldfastError as error:  # the server was killed, or is not back yet
            ours.send((number, begun, repr(error)))
            ours.poll(PAUSE_SECONDS)
        else:
            ours.send((number, begun, True))


class Action(msgspec.Struct, frozen=True):
    """An action, and what must be true of it after kills."""

    act: Callable[[Site, int], None]
    problems: Callable[[Site, list[int], list[Done], dict[str, float]], list[str]]
    prepare: Callable[[Site], None] = lambda site: None


def _nothing(site: Site, number: int) -> None:
    raise AssertionError("load alone has no process of its own")


def _no_problems(
    site: Site, begun: list[int], done: list[Done], acknowledged: dict[str, float]
) -> list[str]:
    return []


# --- backup and copy ------------------------------------------------------------------------------


def _back_up(site: Site, number: int) -> None:
    """Backs up; a store on another machine is copied into a folder."""
    target = site.folder / f"backup-{number}"
    if site.is_remote:
        _copy(site.url, f"lmdb:{target}", site.durability)
    elif site.place.network:
        with site.place.open() as client:
            client.admin.backup(target.name)
    else:
        with holdfast.open(site.url, durability=site.durability) as store:  # type: ignore[arg-type]  # one of two words
            store.backup(target)


def _backup_problems(
    site: Site, begun: list[int], done: list[Done], acknowledged: dict[str, float]
) -> list[str]:
    problems: list[str] = []
    for number in begun[-LOOKED_AT:]:
        target = site.folder / f"backup-{number}"
        finished = next((each for each in done if each.number == number), None)
        if finished is None:
            if _is_nothing_yet(target):
                continue  # as if it had not begun
            if site.is_remote:
                _finish_copy(site, f"lmdb:{target}")
            elif not (target / "data.mdb").exists():
                problems += _opening_problems(target)
                continue
        problems += _copy_problems_at(f"lmdb:{target}", finished, acknowledged)
    return problems


def _is_nothing_yet(folder: Path) -> bool:
    return not folder.exists() or not any(folder.iterdir())


def _opening_problems(unfinished: Path) -> list[str]:
    """Half a backup must not open, be it as an empty store."""
    try:
        holdfast.open(unfinished).close()
    except CopyUnfinished:
        return []
    return [f"{unfinished} opens as a store, though its backup was killed"]


def _copy_store(site: Site, number: int) -> None:
    _copy(site.url, site.target("copy", number), site.durability)


def _copy_problems(
    site: Site, begun: list[int], done: list[Done], acknowledged: dict[str, float]
) -> list[str]:
    problems: list[str] = []
    for number in begun[-LOOKED_AT:]:
        target = site.target("copy", number)
        finished = next((each for each in done if each.number == number), None)
        if finished is None:
            _finish_copy(site, target)
        problems += _copy_problems_at(target, finished, acknowledged)
    return problems


def _copy(source: str, target: str, durability: str) -> None:
    engine = open_engine(source, durability=durability)
    try:
        into = open_engine(target)
        try:
            copy(engine, into, name="the store of the campaign")
        finally:
            into.close()
    finally:
        engine.close()


def _finish_copy(site: Site, target: str) -> None:
    """Runs a copy again that was killed, at a moment nobody knows."""
    try:
        holdfast.open(target).close()
    except CopyUnfinished:
        _copy(site.url, target, site.durability)
    else:  # the copy had ended, or had not begun: then this has made an empty store
        with holdfast.open(target) as store:
            if not store.has_space(orders.space_of(0)):
                orders.prepare(store)


def _copy_problems_at(url: str, finished: Done | None, acknowledged: dict[str, float]) -> list[str]:
    try:
        with holdfast.open(url) as store:
            found = orders.audit(store)
    except HoldfastError as error:
        return [f"{url} can't be opened: {error!r}"]
    problems = [f"{url}: {problem}" for problem in found.problems]
    if finished is not None:
        due = {mark for mark, at in acknowledged.items() if at < finished.begun}
        if missing := due - found.marks:
            problems.append(f"{url} lacks {len(missing)} orders that were acknowledged before it")
    return problems


# --- restore --------------------------------------------------------------------------------------


def _prepare_restore(site: Site) -> None:
    _copy(site.url, f"lmdb:{site.folder / 'source'}", site.durability)


def _restore(site: Site, number: int) -> None:
    source = site.folder / "source"
    if site.is_remote:
        _copy(f"lmdb:{source}", site.target("restored", number), "commit")
        return
    engine = open_engine(f"lmdb:{source}")
    try:
        engine.backup(site.folder / f"restored-{number}")
    finally:
        engine.close()


def _restore_problems(
    site: Site, begun: list[int], done: list[Done], acknowledged: dict[str, float]
) -> list[str]:
    with holdfast.open(f"lmdb:{site.folder / 'source'}") as store:
        expected = orders.audit(store).marks
    problems: list[str] = []
    finished = {each.number for each in done}
    for number in begun[-LOOKED_AT:]:
        target = site.target("restored", number)
        if number not in finished:
            _restore_again(site, number, target)
        try:
            with holdfast.open(target) as store:
                found = orders.audit(store)
        except HoldfastError as error:
            problems.append(f"{target} can't be opened: {error!r}")
            continue
        problems += [f"{target}: {problem}" for problem in found.problems]
        if found.marks != expected:
            problems.append(f"{target} has {len(found.marks)} orders, {len(expected)} were saved")
    return problems


def _restore_again(site: Site, number: int, target: str) -> None:
    """Runs a restore that was killed again, as a user would."""
    try:
        _restore(site, number)
    except (BadInput, StoreUnusable):  # it had ended: a store that is there is not overwritten
        return


# --- index build ----------------------------------------------------------------------------------


def _build_index(site: Site, number: int) -> None:
    model = orders.IndexedOrder if number % 2 == 0 else orders.Order
    with site.place.open() as store:
        for name in map(orders.space_of, range(orders.SPACES)):
            space = store.space(name)
            if number < TABLE_INDEXES:
                by_client = [{"type": "hash", "attribute": "client"}]
                space.tables.add_index("orders", f"by_client_{number}", by_client)
                space.tables.build_index("orders", f"by_client_{number}")
            space.entities.deploy(schema_yaml(model), prune=True)


def _index_problems(
    site: Site, begun: list[int], done: list[Done], acknowledged: dict[str, float]
) -> list[str]:
    """Finishes what was begun; then every index has exactly its entries, by the store's check."""
    problems = []
    with holdfast.open(site.url, durability=site.durability) as store:  # type: ignore[arg-type]  # one of two words
        for name in map(orders.space_of, range(orders.SPACES)):
            space = store.space(name)
            space.entities.deploy(schema_yaml(orders.IndexedOrder), prune=True)
            wrong = space.entities.check("campaign.Orders")
            if wrong.added or wrong.removed or wrong.recounted:
                problems.append(f"{name}: the index of the entities is wrong: {wrong}")
            problems += _table_index_problems(space)
    return problems


def _table_index_problems(space: Any) -> list[str]:
    problems = []
    rows = {str(row["mark"]): row["client"] for row in space.tables.scan("orders")}
    for index in space.tables.schema("orders").get("secondaryIndexes", {}):
        space.tables.build_index("orders", index)
        found = sum(
            space.tables.get("orders", {"client": client}, index=index, count_only=True).count
            for client in set(rows.values())
        )
        if found != len(rows):
            problems.append(f"{space.name}: {index} finds {found} of {len(rows)} rows")
    return problems


# --- space drop -----------------------------------------------------------------------------------


def _drop_space(site: Site, number: int) -> None:
    name = f"dropped {number}"
    with site.place.open() as store:
        space = store.space(name)
        jobs = [{"queue": "q", "id": f"{number}-{each}"} for each in range(DROPPED_JOBS)]
        space.jobs.put_many(jobs)
        if site.place.network:
            store.admin.drop_space(name)
        else:
            store.drop_space(name)


def _drop_problems(
    site: Site, begun: list[int], done: list[Done], acknowledged: dict[str, float]
) -> list[str]:
    problems = []
    with holdfast.open(site.url, durability=site.durability) as store:  # type: ignore[arg-type]  # one of two words
        store.resume_drops()
        there = [name for name in store.spaces() if name.startswith("dropped ")]
        for name in there:
            if (length := store.space(name).jobs.length("q")) not in (0, DROPPED_JOBS):
                problems.append(f"{name} has {length} jobs: half of it is gone")
        for each in done:
            if f"dropped {each.number}" in there and not site.place.network:
                problems.append(f"the space dropped {each.number} is there again")
        problems += _remains(store)
    return problems


def _remains(store: Store) -> list[str]:
    """Returns the keys of spaces that the directory no longer names."""
    with store.engine.view(space=DIRECTORY) as view:
        known = {int(value) for _, value in view.scan(*prefix_range(pack(0, "space")))}
        if any(view.scan(*prefix_range(pack(0, "dropped")))):
            return ["a drop is unfinished after resume_drops"]
    problems = []
    for number in range(1, max(known) + 1):
        if number not in known:
            prefix = pack(number)
            with store.engine.view(space=prefix) as view:
                keys = [key for key, _ in view.scan(*prefix_range(prefix), limit=3)]
            if set(keys) - {dropped_key(prefix)}:
                problems.append(f"keys are left of the dropped space number {number}")
    return problems


ACTIONS: Final = {
    "load": Action(_nothing, _no_problems),
    "backup": Action(_back_up, _backup_problems),
    "index build": Action(_build_index, _index_problems),
    "space drop": Action(_drop_space, _drop_problems),
    "copy": Action(_copy_store, _copy_problems),
    "restore": Action(_restore, _restore_problems, _prepare_restore),
}
