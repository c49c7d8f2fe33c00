"""Full disks.

A store on a small disk (tmpfs, and ext4 where the machine allows to mount it) is filled until a
commit is refused, and the rest of the disk is filled by somebody else. The writer is killed in the
middle, the store is opened again on the full disk, things are deleted and spaces dropped, and then
it goes on. Nothing that was acknowledged may be lost, what frees space must succeed, and no process
may die of it. Where nothing can be mounted, files may not grow beyond a limit instead.
"""

import random
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import holdfast
from holdfast.errors import HoldfastError, StoreFull
from tests.campaign.frame import Result
from tests.processes import Child, start

DISK_BYTES = 32 * 2**20
LIMIT_BYTES = 12 * 2**20
WHOLE_SECONDS = 10.0  # a run of so long has every disk at least once
MOST_AT_ONCE = 1_700  # writes of one size, or deletes, before something else is done
FEW_AT_ONCE = 150  # of a short run
VALUE_BYTES = (200, 3_000, 30_000)


# --- disks ---------------------------------------------------------------------------------------


@contextmanager
def disk(kind: str, folder: Path) -> Iterator[Path | None]:
    """A small file system; None if it can't be had here."""
    point = folder / kind
    point.mkdir()
    if kind == "limit":
        yield point
        return
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(point)]
    else:
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(DISK_BYTES)
        if _fails(["mkfs.ext4", "-q", "-F", str(image)]):
            yield None
            return
        command = ["mount", "-o", "loop", str(image), str(point)]
    if _fails(command):
        yield None
        return
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=False)


def _fails(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        return True


def fill_rest(point: Path) -> None:
    """Somebody else takes all that is left."""
    with suppress(OSError), (point / "somebody-else").open("ab", buffering=0) as file:
        for size in (2**20, 4096, 1):
            with suppress(OSError):
                while file.write(b"x" * size) == size:
                    pass


# --- the writer ----------------------------------------------------------------------------------


def serve(path: str, durability: str, limited: bool, connection: Connection) -> None:
    """Opens the store, and does what it is told; every acknowledgement is sent at once."""
    try:
        store = holdfast.open(path, durability=durability)  # type: ignore[arg-type]
    except HoldfastError as error:
        connection.send(("refused", str(error)))
        return
    connection.send(("open", ""))
    if limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, resource.RLIM_INFINITY))
    while (order := connection.recv()) is not None:
        try:
            connection.send(("done", _obey(store, connection, *order)))
        except HoldfastError as error:
            connection.send(("error", error.code))
    store.close()
    connection.send(("closed", ""))


def _obey(store: holdfast.Store, connection: Connection, what: str, *given: Any) -> Any:
    space = store.space("work")
    if what == "put":
        number, size = given
        space.transact(lambda tx: tx.raw.put(tx.raw.space + b"k%d" % number, bytes(size)))
    elif what == "fill":
        number, size, limit = given
        try:
            while number < limit:
                _obey(store, connection, "put", number, size)
                connection.send(("put", number))
                number += 1
        except StoreFull:
            return "full"
    elif what == "delete":
        [number] = given
        space.transact(lambda tx: tx.raw.delete(tx.raw.space + b"k%d" % number))
    elif what == "drop":
        store.drop_space("other")
    elif what == "fill other":
        other = store.space("other")
        for number in range(200):
            other.transact(lambda tx, n=number: tx.raw.put(tx.raw.space + b"%d" % n, bytes(5_000)))  # type: ignore[misc]
    elif what == "keys":
        with space.view() as view:
            prefix = view.raw.space
            pairs = view.raw.scan(prefix + b"k", prefix + b"l")
            return sorted(int(key[len(prefix) + 1 :]) for key, _ in pairs)
    elif what == "check":
        return store.check()
    return ""


class Round:
    """One disk, from the first commit to the last."""

    def __init__(
        self, point: Path, kind: str, durability: str, chance: random.Random, most: int
    ) -> None:
        self.point = point
        self.most = most
        self.chance = chance
        self.kind = kind
        self.durability = durability
        self.broken: list[str] = []
        self.acknowledged: set[int] = set()
        self.next = 0
        self.kills = self.deletes = 0
        self.child: Child | None = None

    def run(self) -> None:
        self._open("on an empty disk")
        self._ask("fill other")
        for _ in range(2):
            self._fill(kill=self.chance.random() < 0.5)
            self._make_room()
            self._go_on()
        self._verify()
        self._close()

    def _say(self, problem: str) -> None:
        self.broken.append(f"{self.kind}, {self.durability}: {problem}")

    def _open(self, when: str) -> None:
        arguments = (str(self.point / "store"), self.durability, self.kind == "limit")
        self.child = start(serve, *arguments)
        try:
            word, why = self.child.receive()
        except (EOFError, ConnectionResetError):
            word, why = "dead", f"its process ended with {self.child.join()}"
        if word != "open":
            self._say(f"the store does not open {when}: {why}")
            raise EOFError

    def _ask(self, *order: Any) -> Any:
        assert self.child is not None
        self.child.send(order)
        while True:
            try:
                word, result = self.child.receive()
            except (EOFError, ConnectionResetError):
                self._say(f"the process died of {order[0]!r}: {self.child.join()}")
                raise EOFError from None
            if word == "put":
                self.acknowledged.add(result)
                self.next = max(self.next, result + 1)
            else:
                return result if word == "done" else f"error {result}"

    def _fill(self, *, kill: bool) -> None:
        for size in self.chance.sample(VALUE_BYTES, len(VALUE_BYTES)):
            # The largest values fill the disk, however few of the others there are.
            count = DISK_BYTES // size if size == max(VALUE_BYTES) else self.most
            self._ask("fill", self.next, size, self.next + count)
        if self.kind != "limit":
            fill_rest(self.point)
            self._ask("fill", self.next, 50, self.next + 300)
        if kill:
            assert self.child is not None
            self.child.kill()
            self.kills += 1
            self._open("again on the full disk")

    def _make_room(self) -> None:
        if self.chance.random() < 0.3:
            if self._ask("drop") != "":
                self._say("a space can't be dropped on the full disk")
            self.deletes += 1
        count = min(self.most, len(self.acknowledged) // 2)
        doomed = self.chance.sample(sorted(self.acknowledged), count)
        for number in sorted(doomed):
            answer = self._ask("delete", number)
            if answer != "":
                self._say(f"nothing can be deleted on the full disk: {answer}")
                return
            self.acknowledged.discard(number)
            self.deletes += 1

    def _go_on(self) -> None:
        if self.acknowledged and self._ask("put", self.next, 100) != "":
            self._say("nothing can be written after much of it was deleted")
            return
        self.acknowledged.add(self.next)
        self.next += 1

    def _verify(self) -> None:
        # A put that was refused, or not answered before a kill, may be there or not.
        found = set(self._ask("keys"))
        if lost := self.acknowledged - found:
            self._say(f"{len(lost)} acknowledged keys are lost")
        if problems := self._ask("check"):
            self._say(f"the check says {problems[:1]}")

    def _close(self) -> None:
        (self.point / "somebody-else").unlink(missing_ok=True)
        assert self.child is not None
        self.child.send(None)
        word, _ = self.child.receive()
        if word != "closed" or self.child.join() != 0:
            self._say("the store does not close")


def run(random: random.Random, seconds: float) -> Result:
    """Fills disks for so many seconds."""
    until = time.monotonic() + seconds
    tried: Counter[str] = Counter()
    rows: dict[str, Counter[str]] = {}
    broken: list[str] = []
    rounds = [(kind, mode) for kind in ("tmpfs", "ext4") for mode in ("commit", "interval")]
    is_whole = seconds >= WHOLE_SECONDS
    least = len(rounds) if is_whole else 1
    while tried["disks"] < least or time.monotonic() < until:
        for kind, durability in random.sample(rounds, len(rounds)):
            if tried["disks"] >= least and time.monotonic() > until:
                break
            with TemporaryDirectory() as folder, disk(kind, Path(folder)) as point:
                if point is None:
                    least = 1
                    rounds = [each for each in rounds if each[0] != kind]
                    rounds = rounds or [("limit", "commit"), ("limit", "interval")]
                    continue
                one = Round(
                    point, kind, durability, random, MOST_AT_ONCE if is_whole else FEW_AT_ONCE
                )
                with suppress(EOFError):  # a process that died has been noted
                    one.run()
                if one.child is not None:
                    with suppress(ProcessLookupError, AssertionError):
                        one.child.kill()
            figures = {
                "disks": 1,
                "acknowledged": one.next,
                "deletes on a full disk": one.deletes,
                "kills": one.kills,
            }
            tried.update(figures)
            rows.setdefault(f"{kind}, {durability}", Counter()).update(figures)
            broken += one.broken
    ordered = {name: dict(rows[name]) for name in sorted(rows)}
    return Result(tried=dict(tried), broken=broken, rows=ordered)
