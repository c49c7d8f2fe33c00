"""One client of a database, as a process of its own: for each number of seconds on its standard
input it works for as long, and prints how often it did.

Run: python remote_client.py CONTENDER WORK URL SPACE
"""

import itertools
import sys
import time
from collections.abc import Callable

QUEUE = "mail"
FIELDS = {"name": "Ann", "last": "Lee", "age": 41, "city": "Bern", "mail": "ann@example.org"}
SCHEMA = """
schema: bench
tables:
  Users:
    columns:
      name: {type: Text}
      last: {type: Text}
      age: {type: Int}
      city: {type: Text}
      mail: {type: Text}
"""
KEPT = 100  # entities of each client, put and read in turn


def holdfast_work(work: str, url: str, space_name: str) -> Callable[[], object]:
    import holdfast

    store = holdfast.open(url)
    space = store.space(space_name)
    client = f"worker-{time.monotonic_ns()}"
    numbers = itertools.count()
    if work == "cycle":

        def cycle() -> None:
            space.jobs.put(QUEUE, data={"to": "ann@example.org"})
            for job in space.jobs.pop(QUEUE, worker=client):
                space.jobs.complete(job.id, worker=client, lock=job.lock)

        return cycle
    space.entities.deploy(SCHEMA)
    entities = space.entities

    def put() -> None:
        entities.put_raw("bench.Users", [{"id": f"{client}-{next(numbers) % KEPT}", **FIELDS}])

    def get() -> None:
        found = entities.get_raw("bench.Users", [f"{client}-{next(numbers) % KEPT}"])
        assert found

    for _ in range(KEPT):
        put()
    return put if work == "put" else get


def psycopg_work(work: str, url: str, space: str) -> Callable[[], object]:
    import psycopg
    from psycopg.types.json import Jsonb

    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SELECT pg_advisory_lock(1)")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS jobs (id bigserial PRIMARY KEY, queue text NOT NULL, "
        "state text NOT NULL, priority int NOT NULL, data jsonb, worker text, "
        "put_at timestamptz DEFAULT now(), done_at timestamptz)"
    )
    connection.execute(
        "CREATE INDEX IF NOT EXISTS waiting ON jobs (queue, priority DESC, id) "
        "WHERE state = 'waiting'"
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS users (id text PRIMARY KEY, name text, last text, age int, "
        "city text, mail text)"
    )
    connection.execute("SELECT pg_advisory_unlock(1)")
    client = f"worker-{time.monotonic_ns()}"
    numbers = itertools.count()
    execute = connection.execute

    def cycle() -> None:
        data = Jsonb({"to": "ann@example.org"})
        execute(
            "INSERT INTO jobs (queue, state, priority, data) VALUES (%s, 'waiting', 0, %s) "
            "RETURNING id",
            (QUEUE, data),
        ).fetchone()
        row = execute(
            "UPDATE jobs SET state = 'running', worker = %s WHERE id = (SELECT id FROM jobs "
            "WHERE queue = %s AND state = 'waiting' ORDER BY priority DESC, id LIMIT 1 "
            "FOR UPDATE SKIP LOCKED) RETURNING id, data",
            (client, QUEUE),
        ).fetchone()
        if row is not None:
            execute("UPDATE jobs SET state = 'done', done_at = now() WHERE id = %s", (row[0],))

    def put() -> None:
        execute(
            "INSERT INTO users VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET "
            "name = EXCLUDED.name, last = EXCLUDED.last, age = EXCLUDED.age, "
            "city = EXCLUDED.city, mail = EXCLUDED.mail",
            (f"{client}-{next(numbers) % KEPT}", *FIELDS.values()),
        )

    def get() -> None:
        id = f"{client}-{next(numbers) % KEPT}"
        assert execute("SELECT * FROM users WHERE id = %s", (id,)).fetchone()

    for _ in range(KEPT if work != "cycle" else 0):
        put()
    return {"cycle": cycle, "put": put, "get": get}[work]


def redis_work(work: str, url: str, space: str) -> Callable[[], object]:
    import redis

    link = redis.Redis.from_url(url.partition("?")[0].replace("valkey://", "redis://"))
    client = f"worker-{time.monotonic_ns()}"
    numbers = itertools.count()

    def put() -> None:
        link.hset(f"user:{client}-{next(numbers) % KEPT}", mapping=FIELDS)

    def get() -> None:
        assert link.hgetall(f"user:{client}-{next(numbers) % KEPT}")

    for _ in range(KEPT):
        put()
    return put if work == "put" else get


def main(contender: str, work: str, url: str, space: str) -> None:
    makers = {"holdfast": holdfast_work, "psycopg": psycopg_work, "redis": redis_work}
    call = makers[contender](work, url, space)
    for _ in range(10):
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        done, end = 0, time.perf_counter() + float(line)
        while time.perf_counter() < end:
            call()
            done += 1
        print(done, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
