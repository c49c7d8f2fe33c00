"""Encrypted connections: one certificate for RESP and HTTP, reloaded on SIGHUP."""

import ssl
from pathlib import Path

from holdfast.errors import CannotServe


class Certificate:
    """A certificate with its key, and the context that connections are made with."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = self._read()

    def reload(self) -> None:
        """Reloads the files for new connections; if they are invalid, nothing changes."""
        self._read()
        self.context.load_cert_chain(self._certificate, self._key)

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
