"""Interrupted fan-outs.

An event is fanned out to many keys in background steps, by a process that is killed again and again
at any moment, while another one changes the set that is fanned out. At the end every member that
the set had at the event must have the value once, with a gross count of 1, and nobody else.

    python -m tests.campaign.fan_outs --keys 1000000 --kills 10
"""

import argparse
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import holdfast
from holdfast.store import Store
from tests.campaign.frame import Result
from tests.processes import start

KEYS_PER_SECOND = 1_500  # that a part of the campaign writes, checks included
BATCH = 10_000
SCHEMA = {
    "follow": [{"targets": ["[user].followers"], "add": "follower"}],
    "unfollow": [{"targets": ["[user].followers"], "remove": "follower"}],
    "post": [{"targets": ["[user].followers.feed"], "add": "post", "fan_out": "background"}],
}


def run(random: random.Random, seconds: float) -> Result:
    return interrupt(random, keys=max(3_000, int(seconds * KEYS_PER_SECOND)), kills=10)


def interrupt(random: random.Random, *, keys: int, kills: int) -> Result:
    """Fans out to `keys` keys, with `kills` kills spread over the time that it takes."""
    with TemporaryDirectory(prefix="holdfast-") as name:
        folder = Path(name) / "data"
        with holdfast.open(folder, durability="interval") as store:
            prepare(store, keys)
            for killed in range(kills):
                goal = keys / kills * (killed + random.random())
                child = start(_continue, folder)
                while _done(store) < goal:
                    time.sleep(0.005)
                child.kill()
                _change(store, random, keys)
            steps = store.events.continue_fan_outs()
            broken = problems(store, keys)
    return Result(tried={"keys": keys, "kills": kills, "last steps": steps}, broken=broken)


def prepare(store: Store, keys: int) -> None:
    store.events.deploy(SCHEMA)
    for begin in range(0, keys, BATCH):
        followers = [f"u{number}" for number in range(begin, min(begin + BATCH, keys))]
        attributes = {"user": "ann", "follower": followers}
        store.events.send({"name": "follow", "attributes": attributes})
    store.events.configure(looked_up_members=1_000)
    store.events.send({"name": "post", "attributes": {"user": "ann", "post": "p"}})


def _continue(folder: Path, connection: Connection) -> None:
    with holdfast.open(folder, durability="interval") as store:
        store.events.continue_fan_outs()


def _done(store: Store) -> int:
    [report] = store.events.fan_outs()
    return report.done


def _change(store: Store, random: random.Random, keys: int) -> None:
    """Followers leave, come back and are new: none of it concerns the post."""
    gone = [f"u{random.randrange(keys)}" for _ in range(50)]
    new = [f"u{keys + random.randrange(1_000)}" for _ in range(50)]
    for name, followers in (("unfollow", gone), ("follow", gone[:20]), ("follow", new)):
        store.events.send({"name": name, "attributes": {"user": "ann", "follower": followers}})


def problems(store: Store, keys: int) -> list[str]:
    """Reads every feed, a page of keys at a time."""
    found = 0
    broken: list[str] = []
    after: str | None = None
    while True:
        page = store.events.keys("u", 1_000, after)
        names = [info.key for info in page.keys]
        sizes = store.events.read([{"op": "gross", "key": name} for name in names])
        for name, gross in zip(names, sizes, strict=True):
            number = int(name.removeprefix("u").removesuffix(":feed"))
            if number >= keys or gross != 1:
                broken.append(f"{name} has {gross} adds, expected {int(number < keys)}")
        found += len(names)
        after = page.next
        if after is None:
            break
    if found != keys:
        broken.append(f"{found} keys were written, expected {keys}")
    return broken[:20]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begin = time.monotonic()
    result = interrupt(random.Random(options.seed), keys=options.keys, kills=options.kills)
    print(f"{result.tried}, {time.monotonic() - begin:.0f} s")
    print("\n".join(result.broken) or "exact")


if __name__ == "__main__":
    main()
