"""A session store: `SESSION_ENGINE = "holdfast.contrib.django.sessions"`.

Sessions are signed JSON, as Django's other stores keep them, and disappear when they have expired.
"""

from typing import Any

from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError

from holdfast.contrib.django.rows import RowsTx, ValueTable

__all__ = ["SessionStore"]


class SessionStore(SessionBase):
    """A session in the project's store."""

    _rows = ValueTable("django-sessions", "sessions")

    def load(self) -> dict[str, Any]:
        """Returns the session's data; if there is none, removes the session's key."""
        key = self.session_key
        found = {} if key is None else self._rows.read([key])
        if key is None or key not in found:
            self._session_key = None
            return {}
        loaded: dict[str, Any] = self.decode(found[key].decode())
        return loaded

    def exists(self, session_key: str) -> bool:
        """Returns whether there is a session of that key."""
        return session_key in self._rows.read([session_key])

    def create(self) -> None:
        """Makes a new session with its own key."""
        while True:
            self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]  # no stub
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        """Saves it in one transaction; one that was deleted meanwhile is not saved again."""
        key = self.session_key
        if key is None:
            self.create()
            return
        data = self.encode(self._get_session(no_load=must_create)).encode()  # type: ignore[attr-defined]  # no stub
        seconds = float(self.get_expiry_age())

        def work(rows: RowsTx) -> None:
            exists = rows.get(key) is not None
            if must_create and exists:
                raise CreateError
            if not must_create and not exists:
                raise UpdateError
            rows.put(key, data, seconds)

        self._rows.transact(work)

    def delete(self, session_key: str | None = None) -> None:
        """Deletes a session, this one if none is named."""
        key = session_key or self.session_key
        if key is not None:
            self._rows.transact(lambda rows: rows.delete(key))

    @classmethod
    def clear_expired(cls) -> None:
        """Does nothing: what has expired disappears by itself."""
