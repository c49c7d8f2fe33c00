"""Reads the URL of a store by hand: it may name several hosts, which the standard library
rejects."""

import re
from typing import Final

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def scheme_of(url: str) -> str:
    """Returns the scheme in lower case, or "" if `url` is a path.

    >>> scheme_of("Valkey://[::1]:7000,two"), scheme_of("backups/monday")
    ('valkey', '')
    """
    found = _SCHEME.match(url)
    return "" if found is None else found[1].lower()


def without_password(url: str) -> str:
    """Returns the name of a store for messages: without login and options.

    >>> without_password("postgresql://ann:s3cret@db:5432/shop?sslmode=require")
    'postgresql://db:5432/shop'
    >>> without_password("valkey://ann:s3/cret@one,two"), without_password("valkey://ann:s3?cret@one")
    ('valkey://one,two', 'valkey://...')
    >>> without_password("backups/monday")
    'backups/monday'
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place, _, options = rest.partition("?")
    # A `/` or `?` may belong to a password that was not encoded: it ends at the last `@`.
    return f"{scheme}://{'...' if '@' in options else place.rpartition('@')[2]}"
