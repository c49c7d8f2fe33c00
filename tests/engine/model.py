"""The model that engines are compared with: a plain dict, and random operations on both."""

from typing import Any

from hypothesis import strategies as st

from holdfast.engine.contract import Reader, Transaction, read_counter
from holdfast.limits import MAX_KEY_BYTES

END = b"\xff" * 8

# Lengths around the native limits of the engines, behind beginnings that many keys share.
LENGTHS = [1, 2, 493, 494, 495, 496, 509, 510, 511, 512, 513, 2048, 2700, 8192, MAX_KEY_BYTES - 2]
keys = st.builds(
    lambda letter, length, tail: letter * length + tail,
    st.sampled_from([b"a", b"b", b"\x00", b"\xfe"]),
    st.sampled_from(LENGTHS),
    st.binary(max_size=2),
)
short_keys = st.binary(min_size=1, max_size=3)
values = st.binary(max_size=12)
operation = st.one_of(
    st.tuples(st.just("put"), keys | short_keys, values),
    st.tuples(st.just("put_all"), st.dictionaries(keys | short_keys, values, max_size=3)),
    st.tuples(st.just("delete"), keys | short_keys),
    st.tuples(st.just("clear"), keys | short_keys, keys | short_keys),
    st.tuples(st.just("add"), st.sampled_from([b"#1", b"#2"]), st.integers(-(2**40), 2**40)),
)
transactions = st.lists(st.tuples(st.lists(operation, max_size=12), st.booleans()), max_size=6)


def apply(tx: Transaction, model: dict[bytes, bytes], operation: tuple[Any, ...]) -> None:
    """Does the same to the transaction and to the model, a plain dict."""
    name, *arguments = operation
    if name == "add":
        key, delta = arguments
        tx.add(key, delta)
        number = read_counter(model.get(key)) + delta
        model[key] = number.to_bytes(8, "big", signed=True)
    elif name == "put":
        key, value = arguments
        if key.startswith(b"#"):  # the counters' own keys
            return
        tx.put(key, value)
        model[key] = value
    elif name == "put_all":
        pairs = {key: value for key, value in arguments[0].items() if not key.startswith(b"#")}
        tx.put_all(pairs)
        model.update(pairs)
    elif name == "delete":
        [key] = arguments
        tx.delete(key)
        model.pop(key, None)
    else:
        begin, end = arguments
        tx.clear(begin, end)
        for key in [key for key in model if begin <= key < end]:
            del model[key]


def compare(reader: Reader, model: dict[bytes, bytes], begin: bytes, end: bytes) -> None:
    """All ways to read give what the model gives."""
    expected = sorted((key, value) for key, value in model.items() if begin <= key < end)
    assert list(reader.scan(begin, end)) == expected
    assert list(reader.scan(begin, end, reverse=True)) == expected[::-1]
    assert list(reader.scan(begin, end, limit=3)) == expected[:3]
    assert list(reader.scan(begin, end, limit=3, reverse=True)) == expected[::-1][:3]
    wanted = [key for key, _ in expected[:5]] + [begin + b"?"]
    assert reader.get_many(wanted) == [model.get(key) for key in wanted]
