"""The expression language and its errors."""

import pytest

from holdfast.events.expressions import (
    BUILT_INS,
    Attribute,
    BuiltIn,
    Expression,
    ExpressionProblem,
    Literal,
    parse_expression,
    parse_value,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("['a']", Expression((Literal("a"),))),
        ("[ 'a' ,user , @day ]", Expression((Literal("a"), Attribute("user"), BuiltIn("day")))),
        ("[user].followers", Expression((Attribute("user"),), ("followers",))),
        ("[user] . friends . feed ", Expression((Attribute("user"),), ("friends", "feed"))),
        (r"['it\'s', 'a\\b']", Expression((Literal("it's"), Literal("a\\b")))),
        ("['a.b,c]']", Expression((Literal("a.b,c]"),))),
        ("['']", Expression((Literal(""),))),
        ("[@ day]", Expression((BuiltIn("day"),))),
        ("[_x-y9]", Expression((Attribute("_x-y9"),))),
        ("['ü']", Expression((Literal("ü"),))),
        ("\t[\n'a'\n]", Expression((Literal("a"),))),
        ("[größe].ürün", Expression((Attribute("größe"),), ("ürün",))),
        ("['a'].2012.08-x", Expression((Literal("a"),), ("2012", "08-x"))),
        (
            '["first name", "@at"]."a b"',
            Expression((Attribute("first name"), Attribute("@at")), ("a b",)),
        ),
        (r'["say \"hi\""]', Expression((Attribute('say "hi"'),))),
    ],
)
def test_an_expression_is_read(text: str, expected: Expression) -> None:
    assert parse_expression(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected '[' at column 1"),
        ("user", "expected '[' at column 1"),
        ("[]", "expected a term at column 2"),
        ("['a', ]", "expected a term at column 7"),
        ("['a' 'b']", "expected ']' at column 6"),
        ("[user.x]", "expected ']' at column 6"),
        ("[follow  ", "expected ']' at column 10"),
        ("['a']x", "expected the end at column 6"),
        ("['a'].", "expected a name after '.' at column 7"),
        ("['a'].-", "expected a name after '.' at column 7"),
        ('[""]', "expected a term at column 2"),
        ("[9a]", "expected a term at column 2"),
        ("[@]", "expected the name of a built-in at column 3"),
        ("[@ 'day']", "expected the name of a built-in at column 4"),
        ("['a", "the literal that begins at column 2 has no end"),
        (r"['a\n']", "the literal that begins at column 2 has no end"),
    ],
)
def test_a_malformed_expression_says_what_was_expected_where(text: str, problem: str) -> None:
    with pytest.raises(ExpressionProblem) as raised:
        parse_expression(text)

    assert str(raised.value).startswith(problem)


def test_an_unknown_built_in_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ExpressionProblem) as raised:
        parse_expression("['a', @dayly]")

    assert "'@dayly' at column 7" in str(raised.value)
    assert all(f"@{name}" in str(raised.value) for name in BUILT_INS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("follower", Expression((Attribute("follower"),), is_list=False)),
        ("@request_ip", Expression((BuiltIn("request_ip"),), is_list=False)),
        ("'artist:345'", Expression((Literal("artist:345"),), is_list=False)),
        ("[user].friends", Expression((Attribute("user"),), ("friends",))),
    ],
)
def test_a_value_is_one_term_or_an_expression_in_brackets(text: str, expected: Expression) -> None:
    assert parse_value(text) == expected


def test_only_a_list_may_start_a_chain() -> None:
    with pytest.raises(ExpressionProblem, match="expected the end at column 5"):
        parse_value("user.friends")


def test_a_list_and_a_chain_have_a_bound() -> None:
    with pytest.raises(ExpressionProblem, match="1001 terms"):
        parse_expression(f"[{','.join(['a'] * 1_001)}]")
    with pytest.raises(ExpressionProblem, match="17 steps"):
        parse_expression(f"[a]{'.b' * 17}")
