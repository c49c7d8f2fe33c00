"""Two models, for the tests of models."""

from datetime import datetime
from typing import Any, ClassVar, Literal

from holdfast.entities import Col, Model, column, index, now


class User(
    Model, schema="test", table="Users", primary=("email",), indexes=[index("name", "email")]
):
    """People"""

    name: Col[str] = column(required=True)
    email: Col[str] = column(default="")
    registered: Col[datetime] = column("time", default=now)
    groups: Col[set[str] | None] = column()
    score: Col[int] = column(default=0)


class Plain(Model, schema="test", table="Plain", indexes=[index("rank"), index("name", "rank")]):
    name: str
    rank: int = 0
    ratio: float | None = None
    currency: Literal["usd", "nis"] | None = column()
    tags: set[str] = column(default=set)
    notes: list[str] = column("remarks", default=list, max_len=3)
    extra: dict[str, int] | None = column()
    raw: bytes | None = column()
    hits: int = column(type="Uint", default=0)
    anything: Any = column(type="List")
    shared: ClassVar[int] = 7
