"""The signed cookie of a session: it ends in time, and nobody but the server can make one."""

import hmac
import time

import pytest

from holdfast.dashboard.sessions import Ticket, _read_ticket, _signed
from holdfast.limits import SESSION_SECONDS
from holdfast.server.auth import Authenticator
from holdfast.store import Store
from holdfast.users import add_user, parse_grants, renew_token


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


def test_nobody_can_make_a_session_of_a_user_without_password_and_token(store: Store) -> None:
    add_user(store.engine, "ann", None, parse_grants(["admin"]))
    renew_token(store.engine, "ann", revoke=True)
    authenticator = Authenticator(store.engine)
    nothing = b"%b %b %b" % (b"", b"", b"")
    ticket = Ticket("ann", int(time.time()) + 60, "nonce")
    forged = _signed(ticket, hmac.digest(b"holdfast session", nothing, "sha256"))

    found = _read_ticket(authenticator, forged)

    assert found is None
