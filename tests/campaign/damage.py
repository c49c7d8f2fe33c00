"""Damaged files.

Bits are flipped, pages zeroed, files cut and removed: every file of a store and of a backup.
Whatever was done to a file, `holdfast.open` and every command give the right answer or an error of
Holdfast. Each try runs in a process of its own, so that one which is ended by a signal is seen.

The stores are one that was closed, one that was killed in each durability, with commits in its
log, and a backup. While a store is open nothing but the structure of its data file can be compared
with anything, and values carry no checksums: so of stores that were killed, that file is cut,
removed and loses whole pages, and no bits of it are turned.
"""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import holdfast
from holdfast.engine.lmdb import flusher, overlay, redo_log
from holdfast.errors import HoldfastError
from tests.campaign.frame import Result
from tests.cli.running import holdfast as run_command
from tests.processes import start

PAGE = 4096
JOBS = 60
FEWEST = 20  # tries, however slow the machine is
COMMANDS: dict[str, tuple[str, ...]] = {
    "status": ("status", "--data", "{store}"),
    "check": ("check", "--data", "{store}"),
    "inspect": ("inspect", "--data", "{store}"),
    "jobs": ("jobs", "list", "--data", "{store}"),
    "space": ("space", "list", "--data", "{store}"),
    "space drop": ("space", "drop", "nothing", "--yes", "--data", "{store}"),
    "user": ("user", "list", "--data", "{store}"),
    "user add": ("user", "add", "ann", "--grant", "read", "--data", "{store}"),
    "dump": ("dump", "all", "--data", "{store}", "-o", "/dev/null"),
    "call": ("call", "jobs.queues", "--data", "{store}"),
    "events": ("events", "keys", "--data", "{store}"),
    "metrics": ("metrics", "list", "--data", "{store}"),
    "backup": ("backup", "--data", "{store}", "{other}"),
    "restore": ("restore", "{store}", "--data", "{other}"),
    "copy": ("copy", "{store}", "{other}"),
    "recover": ("recover", "{store}"),
    "recover, accepting loss": ("recover", "{store}", "--accept-loss"),
}
MAKES_A_STORE = ("backup", "restore", "copy")


class Sample(NamedTuple):
    """A store, and what is in it."""

    name: str
    path: Path
    content: dict[bytes, bytes]


# --- samples -------------------------------------------------------------------------------------


def fill_and_wait(path: str, durability: str, connection: Connection) -> None:
    """Fills a store, and says what is in it while its last commits are in the log only."""
    overlay.COMMITS_BEFORE_LOG = 20  # type: ignore[attr-defined]
    overlay.MAX_WAITING_SECONDS = 3600.0  # type: ignore[attr-defined]
    flusher.FLUSH_SECONDS = 0.02  # type: ignore[attr-defined]
    store = holdfast.open(path, durability=durability)  # type: ignore[arg-type]
    _fill(store)
    content = _content(store)
    if durability == "interval":
        store.engine.transact(lambda tx: tx.put(b"\x20last", b"of all"))
        content[b"\x20last"] = b"of all"
    log = Path(path) / redo_log.FILE_NAME
    while not any(log.read_bytes()[PAGE + 64 : PAGE + 80]):
        time.sleep(0.001)  # until the end of the log has been noted
    connection.send(content)
    connection.recv()


def _fill(store: holdfast.Store) -> None:
    for number in range(JOBS):
        store.jobs.put("emails", id=f"job-{number}", data={"number": number, "text": "x" * 300})


def _content(store: holdfast.Store) -> dict[bytes, bytes]:
    with store.engine.view() as view:
        return dict(view.scan(b"", b"\xff"))


def samples(folder: Path) -> list[Sample]:
    """The stores that are damaged."""
    closed = folder / "closed"
    with holdfast.open(closed) as store:
        _fill(store)
        content = _content(store)
        store.backup(folder / "backup")
    made = [Sample("closed", closed, content), Sample("backup", folder / "backup", content)]
    for durability in ("commit", "interval"):
        path = folder / durability
        child = start(fill_and_wait, str(path), durability)
        content = child.receive()
        child.kill()
        made.append(Sample(f"killed in mode {durability}", path, content))
    return made


# --- damage --------------------------------------------------------------------------------------


def flip(file: Path, chance: random.Random) -> str:
    with file.open("r+b") as opened:
        place = chance.randrange(file.stat().st_size)
        opened.seek(place)
        byte = opened.read(1)[0] ^ 1 << chance.randrange(8)
        opened.seek(place)
        opened.write(bytes([byte]))
    return f"flips a bit of byte {place}"


def zero(file: Path, chance: random.Random) -> str:
    place = chance.randrange(-(-file.stat().st_size // PAGE)) * PAGE
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(bytes(min(PAGE, file.stat().st_size - place)))
    return f"zeroes the page at {place}"


def spoil(file: Path, chance: random.Random) -> str:
    place = chance.randrange(file.stat().st_size)
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(chance.randbytes(min(100, file.stat().st_size - place)))
    return f"writes noise at {place}"


def truncate(file: Path, chance: random.Random) -> str:
    size = chance.choice([0, 1, PAGE, chance.randrange(file.stat().st_size)])
    os.truncate(file, min(size, file.stat().st_size))
    return f"cuts it to {size} bytes"


def remove(file: Path, chance: random.Random) -> str:
    file.unlink()
    return "removes it"


def replace(file: Path, chance: random.Random) -> str:
    size = min(file.stat().st_size, 20_000)
    file.unlink()
    kind = chance.choice(["noise", "a folder", "a FIFO", "a link to nowhere"])
    if kind == "noise":
        file.write_bytes(chance.randbytes(max(size, 10)))
    elif kind == "a folder":
        file.mkdir()
    elif kind == "a FIFO":
        os.mkfifo(file)
    else:
        file.symlink_to(file.parent / "nowhere" / "at all")
    return f"puts {kind} in its place"


Damage = Callable[[Path, random.Random], str]
DAMAGES: dict[str, Damage] = {
    "bit flip": flip,
    "zeroed page": zero,
    "stretch of noise": spoil,
    "cut": truncate,
    "removal": remove,
    "replacement": replace,
}


def _damages_of(sample: Sample, file: Path) -> list[str]:
    if file.stat().st_size == 0:
        return ["removal"]
    if sample.name.startswith("killed") and file.name == "data.mdb":
        return ["zeroed page", "cut", "removal", "replacement"]
    if sample.name == "backup":
        # An empty folder is a new store.
        return [name for name in DAMAGES if name not in ("removal", "replacement")]
    return list(DAMAGES)


# --- tries ---------------------------------------------------------------------------------------


def open_and_read(path: str, connection: Connection) -> None:
    try:
        with holdfast.open(path) as store:
            content = _content(store)
            problems = store.check()
        connection.send((content, problems))
    except HoldfastError as error:
        connection.send(error.code)


def _try_opening(path: Path, sample: Sample) -> str | None:
    child = start(open_and_read, str(path))
    answers = child.receive_all()
    code = child.join()
    if code != 0 or not answers:
        return f"holdfast.open ends the process with {code}"
    [answer] = answers
    if isinstance(answer, str):
        return None
    content, problems = answer
    if problems:
        return None
    return None if content == sample.content else "holdfast.open gives wrong answers"


def _try_command(name: str, path: Path, other: Path, sample: Sample) -> str | None:
    words = [word.format(store=path, other=other) for word in COMMANDS[name]]
    ran = run_command(*words)
    if ran.code not in (0, 1, 3) or "Traceback" in ran.err:
        return f"`holdfast {name}` ends with {ran.code}: {ran.err[-300:]}"
    if ran.code == 0 and name in MAKES_A_STORE:
        with holdfast.open(other) as store:
            if _content(store) != sample.content:
                return f"`holdfast {name}` writes a wrong copy"
    return None


def cases(chance: random.Random, made: list[Sample]) -> Iterator[tuple[Sample, str, str]]:
    """Every file of every sample with every damage, in a random order, again and again."""
    every = [
        (sample, file.name, damage)
        for sample in made
        for file in sorted(sample.path.iterdir())
        for damage in _damages_of(sample, file)
    ]
    while True:
        yield from chance.sample(every, len(every))


def run(random: random.Random, seconds: float) -> Result:
    """Damages files for so many seconds, and reads what is left of them."""
    tried: dict[str, int] = {}
    rows: dict[str, dict[str, int]] = {}
    broken: list[str] = []
    names = ["open", *COMMANDS]
    with TemporaryDirectory() as folder:
        made = samples(Path(folder))
        until = time.monotonic() + seconds
        path, other = Path(folder) / "damaged", Path(folder) / "other"
        for sample, name, damage in cases(random, made):
            if time.monotonic() > until and sum(tried.values()) >= 2 * FEWEST:
                break
            shutil.copytree(sample.path, path)
            done = DAMAGES[damage](path / name, random)
            way = random.choice(names) if random.random() < 0.4 else "open"
            if way == "open":
                problem = _try_opening(path, sample)
            else:
                problem = _try_command(way, path, other, sample)
            if problem is not None:
                broken.append(f"{sample.name}, {name}: {done}, then {problem}")
            row = rows.setdefault(f"{sample.name}: {name}", dict.fromkeys(DAMAGES, 0))
            row[damage] += 1
            for counted in (damage, f"tries by {'open' if way == 'open' else 'commands'}"):
                tried[counted] = tried.get(counted, 0) + 1
            for each in (path, other):
                with suppress(FileNotFoundError):
                    shutil.rmtree(each)
    ordered = {name: rows[name] for name in sorted(rows)}
    return Result(tried=dict(sorted(tried.items())), broken=broken, rows=ordered)
