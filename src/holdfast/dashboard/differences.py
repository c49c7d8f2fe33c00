"""The differences between two rows, attribute by attribute and word by word."""

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from holdfast.dashboard.templates import cut, pretty
from holdfast.limits import MAX_COMPARED_WORDS

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class Difference(NamedTuple):
    """One attribute in both rows."""

    name: str
    old: Markup
    new: Markup
    is_changed: bool


def compare(old: Mapping[str, Any], new: Mapping[str, Any], names: list[str]) -> list[Difference]:
    """Returns all attributes that one of the rows has, in order."""
    found = []
    for name in names:
        before, now = old.get(name), new.get(name)
        if before is None and now is None:
            continue
        marked = _marked(_text(before), _text(now)) if before != now else None
        both = marked or (escape(_text(before)), escape(_text(now)))
        found.append(Difference(name, *both, is_changed=before != now))
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    return cut(value) if isinstance(value, str) else pretty(value)


def _marked(old: str, new: str) -> tuple[Markup, Markup]:
    """Returns both texts with removed and added words marked.

    >>> _marked("a big <b>", "a small <b>")
    (Markup('a <del>big</del> &lt;b&gt;'), Markup('a <ins>small</ins> &lt;b&gt;'))
    """
    before, now = _WORDS.findall(old), _WORDS.findall(new)
    if len(before) + len(now) > MAX_COMPARED_WORDS:
        return Markup("<del>{}</del>").format(old), Markup("<ins>{}</ins>").format(new)
    steps = SequenceMatcher(None, before, now, autojunk=False).get_opcodes()
    left = _pieces("del", [(kind, "".join(before[a:b])) for kind, a, b, _, _ in steps])
    right = _pieces("ins", [(kind, "".join(now[a:b])) for kind, _, _, a, b in steps])
    return Markup("").join(left), Markup("").join(right)


def _pieces(mark: str, steps: list[tuple[str, str]]) -> Iterator[Markup]:
    for kind, text in steps:
        if kind == "equal":
            yield Markup("{}").format(text)
        elif text:
            yield Markup(f"<{mark}>{{}}</{mark}>").format(text)
