"""How an error message shows a value: as the caller wrote it, not as Python holds it."""

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from holdfast.limits import MAX_SHOWN_VALUE


def shown(value: Any) -> str:
    """The text of a value in an error message, cut where it is long.

    >>> from decimal import Decimal
    >>> shown(Decimal("1.5")), shown("a"), shown(None), shown({"gt": Decimal("1.5")})
    ('1.5', "'a'", 'null', '{"gt": 1.5}')
    """
    try:
        text = repr(value) if isinstance(value, str) else _text(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or endless nesting
        return f"a value of type {type(value).__name__}"
    if len(text) <= MAX_SHOWN_VALUE:
        return text
    return f"{text[:MAX_SHOWN_VALUE]}… ({len(text)} characters)"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(name)}: {_text(each)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bytes | bytearray | memoryview):
        return f'"{b64encode(value).decode()}"'
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | float):
        return str(value)
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
