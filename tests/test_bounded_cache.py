"""A cache bounds the bytes of what callers choose, not only the number of entries."""

from holdfast.bounded_cache import BoundedCache, bounded_cache
from holdfast.limits import MAX_CACHED_BYTES, MAX_CACHED_KEY_BYTES


def test_what_was_made_is_made_once() -> None:
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key.upper()

    cache = BoundedCache(make, entries=10)

    assert [cache["a"], cache["a"], cache["b"]] == ["A", "A", "B"]
    assert made == ["a", "b"]


def test_a_full_cache_begins_again() -> None:
    cache = BoundedCache(len, entries=2)

    for key in ("a", "bb", "ccc"):
        cache[key]

    assert cache == {"ccc": 3}


def test_long_texts_are_not_kept_wherever_they_are_in_a_key() -> None:
    cache = BoundedCache(hash, entries=10)
    long = "x" * MAX_CACHED_KEY_BYTES

    for key in (long, long.encode(), ("a", long), ("a", ("b", long))):
        cache[key]

    assert not cache


def test_many_texts_take_no_more_than_the_bytes_of_a_cache() -> None:
    cache = BoundedCache(len, entries=1_000_000)

    for number in range(5_000):
        cache[f"{number:04096}"]

    assert 0 < len(cache) * 4_096 <= MAX_CACHED_BYTES


def test_what_is_raised_is_not_kept() -> None:
    cache = BoundedCache(int, entries=10)

    for _ in range(2):
        try:
            cache["no number"]
        except ValueError:
            continue

    assert not cache


def test_a_function_of_several_arguments_remembers_what_it_returned() -> None:
    calls: list[tuple[str, int]] = []

    @bounded_cache(10)
    def repeated(text: str, times: int) -> str:
        calls.append((text, times))
        return text * times

    assert [repeated("a", 2), repeated("a", 2), repeated("a", 3)] == ["aa", "aa", "aaa"]
    assert calls == [("a", 2), ("a", 3)]
