"""Answers small reads over HTTP without a task.

uvicorn creates a task for each request, and passes messages between it and the connection. That
takes longer than most reads. So a complete request, on a connection where nothing else is in
progress, is first offered to `HttpApi.answer_at_once`; uvicorn handles the ones that it declines.

Most clients send the same head again and again. So a head is parsed, and its headers are read,
only if it differs from that of the last request by more than the length of the body.
"""

import re
import time
from typing import Any, Final, NamedTuple, Self

from holdfast.limits import MAX_SMALL_REQUEST_BYTES
from holdfast.server.http import App, AtOnce, HttpApi
from holdfast.server.http_exchange import HttpRequest
from holdfast.server.ignored_upgrades import IgnoredUpgrades

_KNOWN_HEAD_BYTES: Final = 1_024  # longer heads are not kept
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d{1,4})\r\n", re.IGNORECASE)


class KnownHead(NamedTuple):
    """The head of a request that was answered at once, to recognise it in later requests."""

    begin: bytes  # up to the length of the body
    end: bytes  # after it
    at_once: AtOnce
    request: HttpRequest

    @classmethod
    def of(cls, head: bytes, at_once: AtOnce, request: HttpRequest) -> Self | None:
        """Returns None for a long head, or one without the length of its body."""
        lengths = list(_LENGTH.finditer(head))
        if len(lengths) != 1 or len(head) > _KNOWN_HEAD_BYTES:
            return None
        begin, end = lengths[0].span(1)
        return cls(head[:begin], head[end:], at_once, request)

    def body_of(self, data: bytes) -> bytes | None:
        """Returns the body if `data` is one complete request with this head, otherwise None."""
        begin, end, _, _ = self
        if not data.startswith(begin):
            return None
        at = data.find(b"\r", len(begin), len(begin) + 5)
        length = data[len(begin) : at]
        if at < 0 or not length.isdigit() or not data.startswith(end, at):
            return None
        body = data[at + len(end) :]
        return body if len(body) == int(length) else None


class DirectAnswers(IgnoredUpgrades):
    """uvicorn's protocol, which creates a task only for requests that can't be answered at once."""

    api: HttpApi
    _at_once: AtOnce | None = (
        None  # may answer the request whose head was parsed, once it is complete
    )
    _body = b""  # of that request, as far as it has arrived
    _prepared: App | None = None  # sends the answer to the request that is about to be parsed
    _is_parsing = False
    _is_between = True  # the parser is between two requests
    _ended = 0  # requests that ended in the data being parsed
    _body_bytes = 0  # of the last request
    _answered_now: tuple[AtOnce, HttpRequest] | None = None  # in the data being parsed
    _known_head: KnownHead | None = None
    _answered_at = 0.0  # when a request was last answered without a task, in monotonic time

    def answer_known(self, data: bytes) -> bool:
        """Answers a request with the head of an earlier one. Returns False if `data` is anything
        else, or if a task has to send the answer: then it is parsed."""
        known = self._known_head
        if known is None or not (self._is_between and self.is_idle):
            return False
        if len(data) > MAX_SMALL_REQUEST_BYTES or self.flow.write_paused:
            return False
        body = known.body_of(data)
        if body is None:
            return False
        request = self.api.request_like(known.request)
        answer = self.api.answer_at_once(known.at_once, request, body, self._more_headers())
        if isinstance(answer, bytes):
            self._send_answer(answer)
            return True
        self._prepared = answer
        return False

    def parse(self, data: bytes) -> None:
        """Parses the data, and answers or starts a task for each request in it."""
        was_between, self._is_between = self._is_between, False
        self._ended, self._answered_now = 0, None
        self._is_parsing = True
        super().data_received(data)
        self._is_parsing = False
        self._prepared = None
        if self.transport.is_closing():
            return
        if self._at_once is not None:  # the request is not complete
            self._begin_task(self.app)
        head_bytes = data.find(b"\r\n\r\n") + 4
        if was_between and self._ended == 1 and head_bytes + self._body_bytes == len(data):
            self._is_between = True
            if self._answered_now is not None:
                self._known_head = KnownHead.of(data[:head_bytes], *self._answered_now)

    # --- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._body_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self.is_parsed_again:
            return
        if self._may_be_answered_at_once():
            self._at_once = self.api.at_once(self.url)
        if self._at_once is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._at_once is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        if self.is_parsed_again:
            return
        self._ended += 1
        if self._at_once is None or not self._answer_at_once(self._at_once):
            super().on_message_complete()

    # --- answers ---------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Returns whether every request with a parsed head is answered."""
        return self.cycle is None or self.cycle.response_complete

    def _may_be_answered_at_once(self) -> bool:
        """Returns whether nothing is in progress, and the connection stays open."""
        parser = self.parser
        return (
            self.is_idle
            and parser.get_method() == b"POST"
            and parser.should_keep_alive()
            and parser.get_http_version() == "1.1"
            and not (self.expect_100_continue or self.access_log)
            and not self.flow.write_paused
        )

    def _answer_at_once(self, at_once: AtOnce) -> bool:
        """Answers a complete request and returns True; otherwise starts a task for it."""
        answer: bytes | App | None
        answer, self._prepared = self._prepared, None
        if answer is None and len(self._body) <= MAX_SMALL_REQUEST_BYTES:
            scope: Any = self.scope
            scope |= {"method": "POST", "raw_path": self.url, "query_string": b""}
            request = self.api.whole_request(scope)
            self._answered_now = (at_once, request)
            answer = self.api.answer_at_once(at_once, request, self._body, self._more_headers())
        if not isinstance(answer, bytes):
            self._answered_now = None
            self._begin_task(answer or self.app)
            return False
        self._at_once, self._body = None, b""
        self._send_answer(answer)
        return True

    def _more_headers(self) -> bytes:
        return b"".join([b"%b: %b\r\n" % each for each in self.server_state.default_headers])

    def _send_answer(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.server_state.total_requests += 1
        self._answered_at = time.monotonic()
        if self.timeout_keep_alive_task is None:
            self._keep_alive_for(self.timeout_keep_alive)

    def _begin_task(self, app: Any) -> None:
        """Starts a task for the request whose head was parsed, with as much of its body as has
        arrived."""
        body, self._body, self._at_once = self._body, b"", None
        usual, self.app = self.app, app
        super().on_headers_complete()
        self.app = usual
        if body:
            super().on_body(body)

    # --- keep-alive of idle connections ----------------------------------------------------------

    # uvicorn stops a timer when data arrives and starts it with each answer, which takes as long
    # as parsing. Here it keeps running, and checks at its end whether there was an answer.

    def _unset_keepalive_if_required(self) -> None:
        if not self._is_parsing:
            super()._unset_keepalive_if_required()

    def _keep_alive_for(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """Closes a connection that was idle for too long. The next answer restarts the timer."""
        self.timeout_keep_alive_task = None
        if not self.is_idle or self.has_part_of_a_head:
            return
        rest = self._answered_at + self.timeout_keep_alive - time.monotonic()
        if rest > 0:
            self._keep_alive_for(rest)
        else:
            super().timeout_keep_alive_handler()

    @property
    def has_part_of_a_head(self) -> bool:
        """Returns whether the next request has begun to arrive."""
        raise NotImplementedError
