"""Ignores the wish of an HTTP client to continue in another protocol, as RFC 9110 allows.

The parser ends at such a head: it takes all that follows for the other protocol, and so the body of
the request, or the next request. Clients that prefer HTTP/2, such as Java's, send `Upgrade: h2c`
with their first request, whatever it is. So that head is parsed again, without the header.
"""

from typing import Any

from holdfast.errors import MissingDriver

try:
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingDriver.of_server(error) from error


class IgnoredUpgrades(HttpToolsProtocol):
    """uvicorn's protocol, for a server that knows no other protocol.

    A subclass refuses CONNECT: that method asks for another protocol without a header.
    """

    parser: Any

    def data_received(self, data: bytes) -> None:
        """Like uvicorn's, which forgets what follows a head that asks for another protocol."""
        self._unset_keepalive_if_required()
        try:
            while data:
                data = self._parsed(data)
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("")

    def _parsed(self, data: bytes) -> bytes:
        """Parses the data, and returns what is left of it: another form of a head, and the rest."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as end:
            [at] = end.args
            head = self._head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            return head + data[at:]
        return b""

    def _head_without_upgrade(self) -> bytes:
        method, version = self.parser.get_method(), self.parser.get_http_version()
        first = b"%b %b HTTP/%b" % (method, self.url, version.encode())
        lines = [b"%b: %b" % each for each in self.headers if each[0] != b"upgrade"]
        return b"\r\n".join([first, *lines, b"", b""])

    @property
    def is_parsed_again(self) -> bool:
        """Returns whether the head that was parsed is about to be parsed in its other form."""
        return bool(self.parser.should_upgrade())
