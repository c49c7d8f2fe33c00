"""throttled-py: hits per second on fifty keys, in memory and on Redis, by GCRA."""

from throttled import RateLimiterType, Throttled, per_min, store
from timing import arguments, per_second, say


def hitting(kept_in, count):
    limiter = Throttled(
        using=RateLimiterType.GCRA.value, quota=per_min(1_000_000, burst=1_000_000), store=kept_in
    )

    def run() -> None:
        for number in range(count):
            limiter.limit(f"user{number % 50}")

    return per_second(run, count)


def main() -> None:
    url, count = arguments()
    memory = hitting(store.MemoryStore(), count * 10)
    on_redis = hitting(store.RedisStore(server=url), count)
    say("throttled-py", memory=memory, redis=on_redis)


main()
