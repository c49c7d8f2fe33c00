"""Holdfast in process: hits per second on fifty keys, in interval mode, by GCRA."""

from timing import arguments, per_second, say

import holdfast


def main() -> None:
    folder, count = arguments()
    with holdfast.open(folder, durability="interval") as store:
        limiter = store.metrics.limiter({"c": "1000000/minute"}, algorithm="gcra")

        def run() -> None:
            for number in range(count * 10):
                limiter.try_incr("c", ["user", number % 50])

        rate = per_second(run, count * 10)
    say("holdfast", memory=rate, redis=rate)


main()
