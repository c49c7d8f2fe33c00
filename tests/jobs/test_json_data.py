"""Data of jobs comes back as it was given, or is refused with a word on what to do."""

import dataclasses
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import NewJob, arguments
from holdfast.store import Store


class Colour(Enum):
    RED = "red"


class Size(StrEnum):
    LARGE = "large"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Order:
    number: int


class Invoice(msgspec.Struct):
    number: int


class Stranger:
    """An object of no type that JSON knows; its name in a test is the same in every process."""

    def __repr__(self) -> str:
        return "Stranger()"


UNFIT: list[tuple[Any, str]] = [
    (datetime(2026, 1, 2, tzinfo=UTC), "isoformat"),
    (date(2026, 1, 2), "isoformat"),
    (time(12, 30), "isoformat"),
    (timedelta(seconds=5), "total_seconds"),
    ({1, 2}, "sorted"),
    (set(), "sorted"),
    (frozenset({"a"}), "sorted"),
    (b"raw", "b64encode"),
    (b"", "b64encode"),
    (bytearray(b"raw"), "b64encode"),
    (Decimal("1.50"), r"`Decimal\(text\)`"),
    (UUID(int=7), r"`UUID\(text\)`"),
    (float("nan"), "None"),
    (float("inf"), "None"),
    (float("-inf"), "None"),
    (Colour.RED, r"`value\.value`"),
    (Order(1), "asdict"),
    (Invoice(1), "to_builtins"),
    ({1: "one"}, r"str\(key\)"),
    ({None: "one"}, r"str\(key\)"),
    ({(1, 2): "pair"}, r"str\(key\)"),
    (Stranger(), "a dict, a list"),
    (complex(1, 2), "a dict, a list"),
]


@pytest.mark.parametrize(("value", "advice"), UNFIT, ids=[repr(each[0]) for each in UNFIT])
def test_what_json_would_give_back_as_something_else_is_refused(
    store: Store, value: Any, advice: str
) -> None:
    for put in (
        lambda: store.jobs.put("q", data=value),
        lambda: store.jobs.put("q", data={"deep": [1, {"er": value}]}),
        lambda: store.jobs.put("q", id="a", data={"deep": (1, {"er": value})}),
        lambda: store.jobs.put_many([NewJob(queue="q", data={"deep": value})]),
        lambda: store.jobs.recur("q", id="r", data={"deep": value}, interval=60),
    ):
        with pytest.raises(BadArgument, match="JSON can't represent") as refused:
            put()
        assert any(word in refused.value.message for word in ("deep", "data is"))
        with pytest.raises(BadArgument, match=advice):
            put()

    assert store.jobs.length("q") == 0


def test_the_error_says_what_is_where_and_what_to_do(store: Store) -> None:
    data = {"order": [{"when": datetime(2026, 1, 2)}]}

    with pytest.raises(BadArgument) as refused:
        store.jobs.put("q", data=data)

    assert refused.value.message == (
        'data["order"][0]["when"] is a datetime, which JSON can\'t represent'
    )
    assert refused.value.hint.startswith("Put `value.isoformat()` there")


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [],
        "text",
        "",
        0,
        1.5,
        -0.0,
        True,
        {"a": [None, True, 1, 1.0, "x", {"b": []}]},
        {"big": 2**70, "small": -(2**70), "edge": 2**64 - 1},
        {"": {"\u00e9\U0001f600": "\x00"}},
        OrderedDict(b=1, a=2),
        {"size": Size.LARGE},
    ],
)
def test_what_json_has_comes_back_equal(store: Store, data: Any) -> None:
    id = store.jobs.put("q", data=data)

    job = store.jobs.get(id)

    assert job is not None
    assert job.data == data


def test_tuples_come_back_as_lists(store: Store) -> None:
    id = store.jobs.put("q", data={"pair": (1, (2, 3)), "point": Point(1, 2)})

    job = store.jobs.get(id)

    assert job is not None
    assert job.data == {"pair": [1, [2, 3]], "point": [1, 2]}


def test_results_new_data_and_notes_are_held_to_the_same(store: Store) -> None:
    store.jobs.put("q", id="a")
    store.jobs.pop("q", "w")
    unfit: Any = {"seen": {1}}

    for call in (
        lambda: store.jobs.heartbeat("a", "w", data=unfit),
        lambda: store.jobs.complete("a", "w", result=unfit),
        lambda: store.jobs.complete("a", "w", data=unfit),
        lambda: store.jobs.complete_and_pop("a", "w", result=unfit),
        lambda: store.jobs.fail("a", "w", "group", "message", data=unfit),
        lambda: store.jobs.log("a", "note", unfit),
    ):
        with pytest.raises(BadArgument, match=r'\["seen"\] is a set'):
            call()

    job = store.jobs.get("a")
    assert job is not None
    assert (job.state, len(job.history)) == ("running", 2)


def test_a_long_text_is_encoded_in_pieces_as_if_it_were_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arguments, "_TEXT_PIECE_CHARS", 5)
    text = 'ab"\\\n\x00é中😀😀 </x> ' * 5

    encoded = arguments._encoded_text(text)

    assert encoded == msgspec.json.encode(text)


def test_a_long_text_is_the_data_of_a_job_and_half_a_character_is_not(store: Store) -> None:
    text = "😀" + "x" * 600_000
    store.jobs.put("q", data=text, id="a")

    [job] = store.jobs.multiget("a")
    assert job.data == text
    with pytest.raises(BadArgument, match="can't be written as JSON"):
        store.jobs.put("q", data=text + "\ud800")
