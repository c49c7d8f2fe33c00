"""Encrypted connections: one certificate for RESP and HTTP, reloaded on SIGHUP."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from holdfast.errors import CannotServe

CurrentContext: TypeAlias = Callable[[], ssl.SSLContext]  # for the next connection


class Certificate:
    """A certificate with its key, and the context that connections are made with."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._context = self._read()

    def context(self) -> ssl.SSLContext:
        """Returns the context for a new connection."""
        return self._context

    def reload(self) -> None:
        """Reloads the files for new connections; if they are invalid, nothing changes."""
        # A new context: one that loads another certificate keeps the old one if its key has another
        # type (RSA and ECDSA), and shows it to all clients that prefer that type.
        self._context = self._read()

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self._certificate, self._key, _refuse_passphrase)
        except OSError as error:  # ssl.SSLError is one too
            reason = error.strerror or type(error).__name__
            raise CannotServe(
                f"{self._certificate} and {self._key} can't be used for TLS: {reason.lower()}",
                hint="--tls-cert names a PEM certificate, --tls-key its key without a passphrase.",
            ) from None
        return context


def _refuse_passphrase() -> str:
    return ""  # otherwise OpenSSL would ask on the terminal
