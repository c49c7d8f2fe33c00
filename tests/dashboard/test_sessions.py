"""The signed cookie of a session: it ends in time, whatever the clock was when it was made."""

import time

import pytest

from holdfast.dashboard.sessions import Ticket, _read_ticket, _signed
from holdfast.limits import SESSION_SECONDS
from holdfast.server.auth import Authenticator
from holdfast.store import Store
from holdfast.users import add_user, parse_grants


@pytest.mark.parametrize(
    ("left", "is_accepted"),
    [
        (SESSION_SECONDS, True),
        (60, True),
        (-1, False),
        (10 * 365 * 86_400, False),  # made by a clock that was ahead, and set back
    ],
)
def test_a_session_never_lasts_longer_than_its_time(
    store: Store, left: int, is_accepted: bool
) -> None:
    add_user(store.engine, "ann", None, parse_grants(["read"]))
    authenticator = Authenticator(store.engine)
    key = authenticator.session_key("ann")
    assert key is not None
    ticket = Ticket("ann", int(time.time()) + left, "nonce")

    found = _read_ticket(authenticator, _signed(ticket, key))

    assert found == (ticket if is_accepted else None)
