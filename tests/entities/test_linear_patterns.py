"""Regular expressions of schemas: Python's meaning, in linear time."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.entities.linear_patterns import LinearPattern, NotLinear
from holdfast.entities.messages import PutEntity
from holdfast.errors import BadValue, InvalidEntitySchema

SAME = [
    "",
    "a",
    "a|b|",
    "[a-c]+",
    "[^a-c]*",
    "(a|b)*abb",
    "(?:ab){2,3}c?",
    "a{0}b{,2}c{2,}",
    "(a*)*",
    "(a|ab)(c|bcd)*",
    "a.c",
    "(?s)a.c",
    "(?i)aB[c-d]",
    r"\w+@\w+\.(com|org)",
    r"\d{2}\s\D",
    "^ab$",
    "^^a$\n?",
    r"\Aab\Z",
    "(^a|b)+",
    r"\bab\b( \bb\B.)?",
    "(?x) a b # words",
    "a+?b*?",
]


@pytest.mark.parametrize("expression", SAME)
@settings(deadline=None)
@given(text=st.text(alphabet="abcdABD @.\n1é_", max_size=8))
def test_it_means_what_python_means(expression: str, text: str) -> None:
    expected = re.fullmatch(expression, text) is not None

    assert LinearPattern(expression).fullmatch(text) is expected


@pytest.mark.parametrize(
    "expression",
    ["(a+)+b", "(a|a)*b", "(a|aa)+b", "a*a*a*a*a*b", "(.*)*b", "(a{1,9}){1,9}b", "(?i)(A+)+b"],
)
def test_what_takes_others_ages_takes_a_moment(expression: str) -> None:
    pattern = LinearPattern(expression)
    text = "a" * min(10_000, pattern.max_letters)

    begin = time.thread_time()
    assert not pattern.fullmatch(text)

    assert time.thread_time() - begin < 5.0


@pytest.mark.parametrize(
    "expression",
    [
        r"(a)\1",
        "(?=a)b",
        "(?<!a)b",
        "(?>a*)b",
        "a*+b",
        "(a)?(?(1)b|c)",
        "(?i:a)b",
        "(?m)^a$",
        "a{1000}",
        "(a{100}){100}",
        "(){4000000000}",
        "a" * 2_000,
    ],
)
def test_what_it_can_not_match_is_refused(expression: str) -> None:
    with pytest.raises(NotLinear):
        LinearPattern(expression)


SCHEMA = """
schema: shop
tables:
  Codes:
    strict: true
    primary: {{type: random}}
    columns: {{code: {{type: Text, options: {{must_match: "{expression}"}}}}}}
"""


def test_a_schema_whose_pattern_would_backtrack_holds_nobody_up(store: holdfast.Store) -> None:
    store.entities.deploy(SCHEMA.format(expression="(a+)+b"))

    with pytest.raises(BadValue, match="does not match"):
        store.entities.put_raw("shop.Codes", [PutEntity({"code": "a" * 5_000})])
    with pytest.raises(BadValue, match="can be compared"):
        store.entities.put_raw("shop.Codes", [PutEntity({"code": "a" * 5_000_000})])


def test_a_schema_with_a_reference_back_is_refused_with_its_line(store: holdfast.Store) -> None:
    with pytest.raises(InvalidEntitySchema, match="must_match"):
        store.entities.deploy(SCHEMA.format(expression=r"(a)\\1"))
