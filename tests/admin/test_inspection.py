"""Keys for people: what is shown can be written, and finds the key again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.admin.inspection import LAYER_CODES, packed_prefix, shown_key, shown_value
from holdfast.defaults import LAYERS
from holdfast.errors import BadInput
from holdfast.keys import pack

# Short enough to be shown whole, were each of its characters escaped.
parts = st.lists(
    st.integers(-(10**9), 10**9) | st.text(max_size=6) | st.booleans() | st.none(), max_size=5
)


@given(st.sampled_from(sorted(LAYER_CODES)), parts)
def test_a_key_that_is_shown_finds_itself(layer: str, rest: list[object]) -> None:
    key = pack(LAYER_CODES[layer], *rest)  # type: ignore[arg-type]

    assert key.startswith(packed_prefix(shown_key(key)))


def test_a_user_and_a_prefix_are_named_by_text(store: holdfast.Store) -> None:
    admin: Any = store.admin
    with pytest.raises(BadInput, match="is not a valid user name"):
        admin.add_user(5)
    with pytest.raises(BadInput, match="a password must be text, not bytes"):
        admin.add_user("ann", password=b"secret")
    with pytest.raises(BadInput, match="a prefix must be text, not 5"):
        admin.inspect(5)

    assert admin.users() == []


@pytest.mark.parametrize("text", ["jbos", "jobs, ((", "jobs, {}", "jobs, __import__('os')", "x"])
def test_what_is_no_prefix_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        packed_prefix(text)


@given(st.binary(max_size=100))
def test_any_value_can_be_shown(value: bytes) -> None:
    assert isinstance(shown_value(value), str)


def test_keys_are_shown_and_found_in_the_words_of_the_layers_map(store: holdfast.Store) -> None:
    store.jobs.put("emails", "Email", {}, id="receipt-1001")

    [entry] = store.admin.inspect("jobs, job").entries
    by_number = store.admin.inspect("jobs, 29, 'receipt'").entries

    assert entry.key == "(jobs, job, 'receipt-1001')"
    assert by_number == [entry]


def test_an_unknown_kind_of_key_is_answered_with_the_nearest(store: holdfast.Store) -> None:
    with pytest.raises(BadInput, match="jobs has no keys of kind 'jbo', did you mean 'job'"):
        store.admin.inspect("jobs, jbo")


def test_every_layer_has_a_code_of_its_own() -> None:
    assert len(set(LAYER_CODES.values())) == len(LAYER_CODES)
    assert LAYER_CODES.keys() == {"expiry", *LAYERS}
