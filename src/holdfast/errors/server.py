"""Errors of the server, of its users, and of clients that get no answer."""

from collections.abc import Iterable
from typing import ClassVar

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class BadFrame(BadInput):
    """Bytes came that are not of the protocol; the connection is closed."""

    code = "bad_frame"


class HttpOnRespPort(BadFrame):
    """A client speaks HTTP to the port of Redis clients."""

    hint = "HTTP is on another port of the server: 9966, unless --http says otherwise."


class HeadTooLarge(BadInput):
    """The head of an HTTP request has more bytes, or more headers, than the server takes."""

    code, status = "head_too_large", 431
    hint = "Send fewer and shorter headers; large values belong in the body."


class UrlTooLong(BadInput):
    """A URL has more bytes than the server takes."""

    code, status = "url_too_long", 414
    hint = "Send the arguments as the body of a POST."


class RequestTooLarge(BadInput):
    """A request has more bytes than the server takes."""

    code, status = "request_too_large", 413
    hint = "Send it in several smaller requests."


class AnswerTooLarge(BadInput):
    """The result has more bytes than one answer may have; nothing was changed."""

    code, status = "answer_too_large", 413
    hint = "Ask for fewer at once: a smaller page, fewer ids, or several batches."


class BatchTooLong(BadInput):
    """The steps of a batch took longer than others should wait for it; nothing was changed."""

    code, status = "batch_too_long", 413
    hint = "Split the batch: each part is its own transaction."


class ClientGone(BadInput):
    """A request ended before it was complete."""

    code = "client_gone"


class UnsupportedContent(BadInput):
    """A body has a form that the path does not take."""

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
    """The path is there, for another method."""

    code, status = "method_not_allowed", 405

    def __init__(
        self, message: str = "", *, allowed: Iterable[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.allowed = tuple(allowed)


class CannotServe(HoldfastError):
    """A server can't be started as it was asked to."""

    code = "cannot_serve"


class NotAuthenticated(HoldfastError):
    """The client has not authenticated, or could not."""

    code, status = "noauth", 401
    hint = "Log in: AUTH user password on RESP, `Authorization: Bearer TOKEN` on HTTP."


class TooManyLogins(HoldfastError):
    """Too many wrong passwords came from one address, so it has to wait before the next try."""

    code, status = "too_many_logins", 429
    facts: ClassVar = {"retry_after": float}
    hint = "Wait for that time. Logins with a token never wait: `holdfast user token NAME`."

    retry_after = 1.0  # seconds until the next try is checked


class Forbidden(HoldfastError):
    """A user may not do this."""

    code, status = "forbidden", 403
    hint = "Ask for a grant: holdfast user grant NAME --grant ROLE:SPACE:LAYER."


class UserExists(HoldfastError):
    """A user of this name is there already, and would lose its grants and its token."""

    code, status = "user_exists", 409
    hint = (
        "Give `--replace` (replace=true) to replace it, `holdfast user grant NAME` to change its "
        "grants, or `holdfast user token NAME` for a new token."
    )


class LastAdmin(HoldfastError):
    """A change over the network would leave nobody who could undo it."""

    code, status = "last_admin", 409
    hint = (
        "Add another user with the grant `admin` first, or make the change on the store itself: "
        "`holdfast user ... --data FOLDER`."
    )


class ServerBusy(HoldfastError):
    """More is waiting than the server lets wait."""

    code, status = "busy", 503
    hint = "Try again shortly, with fewer requests at a time."


class ServerFailed(HoldfastError):
    """A server failed internally, or gave an answer that can't be read."""

    code = "internal"
    hint = "The server's log says more."


class Unanswered(HoldfastError):
    """A server gave no answer: a server of ours to its client, or an engine's to us."""

    code, status = "unanswered", 504


class Unreachable(Unanswered):
    """No server could be reached: what was asked was not done."""

    code, status = "unreachable", 503
    hint = "Nothing was changed. Check the address, and that the server runs; then try again."


class NoAnswer(Unanswered):
    """The connection broke, or time ran out, before the answer to a read had come."""

    code = "no_answer"
    hint = "Nothing was changed. Try again, or allow it more time (`timeout`)."


class OutcomeUnknown(Unanswered):
    """The connection broke, or time ran out, after a write was sent: it was done once, or never.

    A client never sends such a write again by itself, so that nothing is done twice.
    """

    code = "outcome_unknown"
    hint = "Check whether it was executed, and repeat the call only if it was not."
