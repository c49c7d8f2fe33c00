"""The directory of spaces: names, numbers, and what is being dropped.

Space 0 is the directory. All others are numbered from 1 as they are created, so that a name of any
length costs two or three bytes in each key.

(0, "space", name)    -> number    the spaces that can be opened
(0, "last")           -> counter   the last number given; none is used twice
(0, "dropped", number)-> name      spaces that are being emptied
(0, "copying")        -> text      an unfinished copy; see store_copy.py
"""

from typing import TYPE_CHECKING, Final

from holdfast import expiry
from holdfast.engine.contract import Engine, Notice, Transaction, read_counter
from holdfast.errors import BadInput, CopyUnfinished
from holdfast.keys import after as after_key
from holdfast.keys import pack, prefix_range
from holdfast.limits import CLEARED_PER_STEP, MAX_SPACE_NAME_BYTES

DIRECTORY: Final = pack(0)
_LAST: Final = pack(0, "last")
COPYING: Final = pack(0, "copying")
SPACE_CREATED: Final = "spaces.created"  # a notice in the directory, with the name as its payload
SPACE_DROPPED: Final = "spaces.dropped"  # also with the name
NO_SPACE: Final = pack(2**62)  # the prefix of spaces that do not exist: no space has this number


class ShownInRepl:
    """Shows a store as `<holdfast.Store 'data'>`, and a space as
    `<holdfast.Space 'shop' of 'data'>`."""

    if TYPE_CHECKING:
        name: str
        _engine: Engine

    def __repr__(self) -> str:
        remote = getattr(self._engine, "backend", None)
        # The name of a server's store has no password.
        place = getattr(self._engine, "path", None) or getattr(remote, "name", None)
        of = f"{str(place)!r}" if place is not None else f"a {type(self._engine).__name__}"
        if hasattr(self, "engine"):
            return f"<holdfast.Store {of}>"
        return f"<holdfast.Space {self.name!r} of {of}>"


def refuse_bad_name(name: str) -> None:
    try:
        size = len(name.encode()) if isinstance(name, str) else 0
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_SPACE_NAME_BYTES:
        raise BadInput(
            f"{name!r} can't name a space",
            hint=f"Use a string of 1 to {MAX_SPACE_NAME_BYTES} bytes of UTF-8.",
        )


def refuse_unfinished_copy(engine: Engine) -> None:
    """Raises `CopyUnfinished` if the store is an unfinished copy. Reads 1 key."""
    with engine.view(space=DIRECTORY) as view:
        source = view.get(COPYING)
    if source is not None:
        raise CopyUnfinished(f"a copy from {source.decode()} into this store is not finished")


def find_or_create(engine: Engine, name: str) -> bytes:
    number = find_number(engine, name)
    if number is None:
        number = engine.transact(lambda tx: _create(tx, name), space=DIRECTORY)
    return pack(number)


def prefix_of(engine: Engine, name: str) -> bytes | None:
    number = find_number(engine, name)
    return None if number is None else pack(number)


def find_number(engine: Engine, name: str) -> int | None:
    with engine.view(space=DIRECTORY) as view:
        value = view.get(pack(0, "space", name))
    return None if value is None else int(value)


def _create(tx: Transaction, name: str) -> int:
    found = tx.get(pack(0, "space", name))
    if found is not None:
        return int(found)
    tx.add(_LAST, 1)
    number = read_counter(tx.get(_LAST))
    tx.put(pack(0, "space", name), b"%d" % number)
    tx.after_commit(Notice(SPACE_CREATED, name.encode()))
    return number


def move_to_dropped(tx: Transaction, name: str) -> int | None:
    """Removes the name before any data, so that a crash leaves no space half empty."""
    found = tx.get(pack(0, "space", name))
    if found is None:
        return None
    tx.delete(pack(0, "space", name))
    tx.put(pack(0, "dropped", int(found)), name.encode())
    tx.after_commit(Notice(SPACE_DROPPED, name.encode()))
    return int(found)


def clear_dropped(tx: Transaction) -> int:
    """Clears a bounded number of keys of a dropped space, except its marker, which it puts in the
    same transaction: a full store accepts what frees more than it adds."""
    if not expiry.is_dropped(tx):
        expiry.mark_dropped(tx)
    begin, end = after_key(expiry.dropped_key(tx.space)), prefix_range(tx.space)[1]
    keys = [key for key, _ in tx.scan(begin, end, limit=CLEARED_PER_STEP)]
    if keys:
        tx.clear(begin, after_key(keys[-1]))
    return len(keys)
