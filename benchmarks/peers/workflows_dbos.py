"""DBOS on sqlite3 or PostgreSQL: durable steps per second, in one workflow and in eight at once."""

import logging

from dbos import DBOS
from timing import THREADS, arguments, per_second, say

STEPS = 50  # of each workflow


def main() -> None:
    url, count = arguments()
    logging.disable()
    DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False})

    @DBOS.step()
    def double(number: int) -> int:
        return 2 * number

    @DBOS.workflow()
    def steps() -> int:
        return sum(double(number) for number in range(STEPS))

    DBOS.launch()
    steps()  # a first one, that nobody measures

    def alone() -> None:
        for _ in range(count // STEPS):
            steps()

    def crowd() -> None:
        for _ in range(count // STEPS // THREADS):
            for each in [DBOS.start_workflow(steps) for _ in range(THREADS)]:
                each.get_result(polling_interval_sec=0.01)

    figures = {"alone": per_second(alone, count), "crowd": per_second(crowd, count)}
    DBOS.destroy()
    say("dbos", **figures)


main()
