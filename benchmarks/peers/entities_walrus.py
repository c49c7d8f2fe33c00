"""walrus: models on Redis; objects written, read and selected per second."""

import random

from timing import arguments, per_second, say
from walrus import Database, FloatField, IntegerField, Model, TextField


def main() -> None:
    url, count = arguments()

    class User(Model):
        __database__ = Database.from_url(url)
        name = TextField(index=True)
        last = TextField(index=True)
        email = TextField()
        score = IntegerField()
        rank = FloatField()

    users = []

    def put() -> None:
        for number in range(count):
            group = number // 10
            users.append(
                User.create(
                    name=f"Name {group // 10}",
                    last=f"Last {group % 10}",
                    email=f"someone.{number}@example.org",
                    score=number % 1000,
                    rank=number / 7,
                )
            )

    def get() -> None:
        for user in random.Random(1).choices(users, k=count):
            assert User.load(user.get_id()).name

    def select() -> None:
        for user in random.Random(2).choices(users, k=100):
            assert list(User.query((User.name == user.name) & (User.last == user.last)))

    say(
        "walrus",
        put=per_second(put, count),
        get=per_second(get, count),
        select=per_second(select, 100),
    )


main()
