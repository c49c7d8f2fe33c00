"""The family of errors."""

import holdfast.errors
from holdfast.errors import HoldfastError


def family_tree(error: type[HoldfastError], indent: str = "") -> list[str]:
    """The names of an error and of all that derive from it, one line each."""
    children = [child for child in error.__subclasses__() if child.__module__ == error.__module__]
    lines = []
    for number, child in enumerate(children, 1):
        last = number == len(children)
        lines.append(f"{indent}{'└── ' if last else '├── '}{child.__name__}")
        lines += family_tree(child, indent + ("    " if last else "│   "))
    return lines


def test_the_family_tree_is_what_the_file_begins_with() -> None:
    tree = "\n".join([HoldfastError.__name__, *family_tree(HoldfastError)])

    assert holdfast.errors.__doc__ is not None
    assert tree in holdfast.errors.__doc__


def test_every_error_says_its_code_its_status_and_its_hint() -> None:
    error = holdfast.errors.KeyTooLong("a key has 5 bytes")

    assert (error.code, error.status, error.message) == ("key_too_long", 413, "a key has 5 bytes")
    assert (
        str(error)
        == "a key has 5 bytes. Use shorter names, or a digest of parts that need no order."
    )


def test_a_hint_can_be_given_for_one_occasion() -> None:
    assert str(HoldfastError("it broke", hint="Mend it.")) == "it broke. Mend it."
    assert str(HoldfastError("did you?", hint="Mend it.")) == "did you? Mend it."
