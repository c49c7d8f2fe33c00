"""A layer of plain keys, for the tests of what is beneath all layers."""

from holdfast.store import Space, Store, Tx, View


def put(tx: Tx, key: bytes, value: bytes = b"") -> None:
    tx._tx.put(tx._tx.space + key, value)


def get(view: View, key: bytes) -> bytes | None:
    return view._tx.get(view._tx.space + key)


def put_in(space: Space, key: bytes, value: bytes = b"") -> None:
    space.transact(lambda tx: put(tx, key, value))


def get_from(space: Space, key: bytes) -> bytes | None:
    with space.view() as view:
        return get(view, key)


def put_many(space: Space, count: int) -> None:
    def work(tx: Tx) -> None:
        for number in range(count):
            put(tx, b"%06d" % number)

    space.transact(work)


def keys_below(store: Store, space: Space) -> int:
    """Returns the number of keys in a space, which may be dropped."""
    with store.engine.view(space=space.prefix) as view:
        return sum(1 for _ in view.scan(space.prefix, space.prefix + b"\xff"))


def drop_large(store: Store) -> None:
    """What a child does that crashes. It is here because the child imports the module: that of the
    test would load pytest and every driver."""
    store.drop_space("large")
