"""Celery on Redis, results ignored: tasks sent and executed per second, eight threads."""

import os
import subprocess
import sys
import time
from pathlib import Path

import redis
from celery import Celery
from timing import THREADS, arguments, in_threads, say

URL = os.environ.get("PEER_URL") or sys.argv[1]  # the worker's own arguments are Celery's
app = Celery("jobs_celery", broker=URL, task_ignore_result=True)
done = redis.Redis.from_url(URL)


@app.task(name="count")
def count_one() -> None:
    done.incr("done")


def main() -> None:
    url, count = arguments()
    begin = time.perf_counter()
    in_threads(count_one.delay, count)()
    enqueued = count / (time.perf_counter() - begin)
    command = [sys.executable, "-m", "celery", "--workdir", str(Path(__file__).parent)]
    command += ["-A", "jobs_celery", "worker", "-P", "threads", "-c", str(THREADS)]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "CRITICAL"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, "PEER_URL": url}
    ) as worker:
        while int(done.get("done") or 0) < THREADS:  # its start is not counted
            time.sleep(0.001)
        first, begin = int(done.get("done")), time.perf_counter()
        while (finished := int(done.get("done"))) < count:
            time.sleep(0.001)
        completed = (finished - first) / (time.perf_counter() - begin)
        worker.terminate()
    say("celery", enqueued=enqueued, completed=completed)


if __name__ == "__main__":
    main()
