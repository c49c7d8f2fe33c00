"""Holdfast in process: objects written, read and selected per second, every write synced."""

import random

from timing import arguments, per_second, say

import holdfast
from holdfast.entities import Model, column
from holdfast.entities.schema import Index, Schema


class User(Model, schema="bench", table="Users", indexes=[Index(columns=("name", "last"))]):
    name: str = column(required=True)
    last: str = column(required=True)
    email: str = column(default="")
    score: int = column(default=0)
    rank: float = column(default=0.0)


def main() -> None:
    folder, count = arguments()
    ids: list[str] = []
    with holdfast.open(folder) as store:
        entities = store.entities
        entities.deploy(Schema(name="bench", tables=(User.__shape__.table,)))

        def user(number: int) -> User:
            group = number // 10
            return User(
                name=f"Name {group // 10}",
                last=f"Last {group % 10}",
                email=f"someone.{number}@example.org",
                score=number % 1000,
                rank=number / 7,
            )

        def put() -> None:
            for number in range(count):
                ids.extend(entities.put(user(number)))

        def get() -> None:
            for id in random.Random(1).choices(ids, k=count):
                assert entities.get_one(User, id).name

        def select() -> None:
            for number in random.Random(2).choices(range(count), k=100):
                wanted = user(number)
                assert entities.select(
                    User, User.name == wanted.name, User.last == wanted.last
                ).items

        written, read = per_second(put, count), per_second(get, count)
        say("holdfast", put=written, get=read, select=per_second(select, 100))


main()
