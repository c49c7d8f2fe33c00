"""Data of jobs is checked before it is sent: on the wire a set would look like a list."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import NewJob
from tests.jobs.test_json_data import UNFIT


@pytest.mark.parametrize(("value", "advice"), UNFIT, ids=[repr(each[0]) for each in UNFIT])
def test_a_client_refuses_what_the_store_refuses(client: Any, value: Any, advice: str) -> None:
    with pytest.raises(BadArgument, match="JSON can't represent"):
        client.jobs.put("q", data=value)
    with pytest.raises(BadArgument, match=advice):
        client.jobs.put("q", data={"deep": [value]})

    assert client.jobs.length("q") == 0


def test_a_client_names_the_place_as_the_store_does(client: Any) -> None:
    unfit = {"seen": [Decimal("1.5")]}
    client.jobs.put("q", id="a")
    client.jobs.pop("q", "w")

    calls: list[Any] = [
        lambda: client.jobs.put("q", data=unfit),
        lambda: client.jobs.put_many([NewJob(queue="q", data=unfit)]),
        lambda: client.jobs.recur("q", id="r", data=unfit, interval=60),
        lambda: client.jobs.heartbeat("a", "w", data=unfit),
        lambda: client.jobs.complete("a", "w", data=unfit),
        lambda: client.jobs.fail("a", "w", "group", "message", data=unfit),
    ]
    for call in calls:
        with pytest.raises(BadArgument) as refused:
            call()
        assert refused.value.message == (
            'data["seen"][0] is a Decimal, which JSON can\'t represent'
        )
    with pytest.raises(BadArgument, match=r"data\[\"seen"):
        client.jobs.log("a", "note", unfit)


def test_a_batch_refuses_it_when_it_is_recorded(client: Any) -> None:
    with pytest.raises(BadArgument, match="isoformat"), client.batch() as batch:
        batch.jobs.put("q", id="a")
        batch.jobs.put("q", data={"at": datetime(2026, 1, 2)})

    assert client.jobs.get("a") is None


def test_what_json_has_travels_as_it_is(client: Any) -> None:
    data = {"a": [None, True, 1, 1.0, "x", {"b": []}], "big": 2**70, "pair": (1, 2)}

    id = client.jobs.put("q", data=data)

    assert client.jobs.get(id).data == {**data, "pair": [1, 2]}
