"""pyrate-limiter: hits per second on fifty keys, in memory and on Redis."""

import redis
from pyrate_limiter import InMemoryBucket, Limiter, Rate, RedisBucket
from timing import arguments, per_second, say

RATES = [Rate(1_000_000, 60_000)]


def hitting(make_bucket, count):
    """Fifty limiters: a limiter of this package is for one key."""
    limiters = [Limiter(make_bucket(number)) for number in range(50)]

    def run() -> None:
        for number in range(count):
            limiters[number % 50].try_acquire("key", blocking=False)

    return per_second(run, count)


def main() -> None:
    url, count = arguments()
    connection = redis.Redis.from_url(url)
    memory = hitting(lambda number: InMemoryBucket(RATES), count * 10)
    on_redis = hitting(lambda number: RedisBucket.init(RATES, connection, f"b{number}"), count)
    say("pyrate-limiter", memory=memory, redis=on_redis)


main()
