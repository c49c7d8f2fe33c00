"""One event on its way through its handlers."""

import gc

import pytest

from holdfast.errors import InvalidEvent
from holdfast.events.event_run import EventRun
from holdfast.store import Store
from tests.events.conftest import Send


def test_an_event_is_freed_at_once_and_not_by_the_collector(store: Store, send: Send) -> None:
    store.events.deploy({"seen": [{"targets": ["[@day]"], "add": "v"}]})
    gc.collect()
    gc.disable()
    try:
        send("seen", v="large")
        with pytest.raises(InvalidEvent):
            send("seen:" * 100)
        left = [each for each in gc.get_objects() if type(each) is EventRun]
    finally:
        gc.enable()

    assert left == []
