"""Errors of servers, of their users, and of clients that get no answer."""

from collections.abc import Iterable
from typing import ClassVar

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class BadFrame(BadInput):
    """The bytes received do not follow the protocol; the connection is closed."""

    code = "bad_frame"


class HttpOnRespPort(BadFrame):
    """An HTTP request came to the port for Redis clients."""

    hint = "Use the HTTP port of the server: 9966, unless --http says otherwise."


class HeadTooLarge(BadInput):
    """The headers of an HTTP request have more bytes, or are more, than the server accepts."""

    code, status = "head_too_large", 431
    hint = "Send fewer and shorter headers; large values belong in the body."


class UrlTooLong(BadInput):
    """A URL has more bytes than the server accepts."""

    code, status = "url_too_long", 414
    hint = "Send the arguments as the body of a POST."


class RequestTooLarge(BadInput):
    """A request has more bytes than the server accepts."""

    code, status = "request_too_large", 413
    hint = "Send it in several smaller requests."


class AnswerTooLarge(BadInput):
    """The result has more bytes than one answer may have; nothing was changed."""

    code, status = "answer_too_large", 413
    hint = "Ask for fewer at once: a smaller page, fewer ids, or several batches."


class BatchTooLong(BadInput):
    """A batch took so long that other clients would have to wait; nothing was changed."""

    code, status = "batch_too_long", 413
    hint = "Split the batch: each part is its own transaction."


class ClientGone(BadInput):
    """The client disconnected, or stopped sending, before its request was finished."""

    code = "client_gone"


class UnsupportedContent(BadInput):
    """The body has a content type or an encoding that the path does not accept."""

    code, status = "unsupported_media_type", 415
    hint = "Send it as JSON, with the header `Content-Type: application/json`."


class UnknownUser(NotFound):
    """No user has this name."""

    code = "unknown_user"
    hint = "`holdfast user list` shows all."


class UnknownOperation(NotFound):
    """No layer has an operation of that name."""

    code = "unknown_operation"


class MethodNotAllowed(HoldfastError):
    """The path exists, but does not accept this HTTP method."""

    code, status = "method_not_allowed", 405

    def __init__(
        self, message: str = "", *, allowed: Iterable[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.allowed = tuple(allowed)


class CannotServe(HoldfastError):
    """A server can't be started with these settings."""

    code = "cannot_serve"


class NotAuthenticated(HoldfastError):
    """The client has not logged in, or its password or token is wrong."""

    code, status = "noauth", 401
    hint = "Log in: AUTH user password on RESP, `Authorization: Bearer TOKEN` on HTTP."


class TooManyLogins(HoldfastError):
    """Too many wrong passwords came from this address; it has to wait before the next login."""

    code, status = "too_many_logins", 429
    facts: ClassVar = {"retry_after": float}
    hint = "Wait `retry_after` seconds. Logins with a token never wait: `holdfast user token NAME`."

    retry_after = 1.0  # seconds until the next try is checked


class Forbidden(HoldfastError):
    """The user has no grant for this operation, space or layer."""

    code, status = "forbidden", 403
    hint = "Ask an administrator for a grant: `holdfast user grant NAME --grant ROLE:SPACE:LAYER`."


class UserExists(HoldfastError):
    """A user of this name exists already, and would lose its grants and its token."""

    code, status = "user_exists", 409
    hint = (
        "Give `--replace` (replace=true) to replace it, `holdfast user grant NAME` to change its "
        "grants, or `holdfast user token NAME` for a new token."
    )


class LastAdmin(HoldfastError):
    """The change would leave no admin who could undo it over the network."""

    code, status = "last_admin", 409
    hint = (
        "Add another user with the grant `admin` first, or make the change on the store itself: "
        "`holdfast user ... --data FOLDER`."
    )


class ServerBusy(HoldfastError):
    """Too many requests, or too large ones, are already waiting; this one was not started."""

    code, status = "busy", 503
    hint = "Try again shortly, with fewer requests at a time."


class ServerFailed(HoldfastError):
    """The server has failed internally, or its answer can't be read."""

    code = "internal"
    hint = "The server's log says more."


class Unanswered(HoldfastError):
    """A Holdfast server, or the database server of an engine, gave no answer."""

    code, status = "unanswered", 504


class Unreachable(Unanswered):
    """The server could not be reached: the request was not executed."""

    code, status = "unreachable", 503
    hint = "Nothing was changed. Check the address, and that the server runs; then try again."


class NoAnswer(Unanswered):
    """The connection broke, or time ran out, before the answer to a read arrived."""

    code = "no_answer"
    hint = "Nothing was changed. Try again, or allow more time with `timeout`."


class OutcomeUnknown(Unanswered):
    """The connection broke, or time ran out, after a write was sent: it may have been executed.

    A client never repeats such a write by itself, so it was executed once or not at all.
    """

    code = "outcome_unknown"
    hint = "Check whether it was executed, and repeat the call only if it was not."
