"""A store as a small shop would have it, for the tests of the dashboard and for its pictures."""

import random
import time

from holdfast.client.client import ClientSpace
from holdfast.jobs import NewJob, Report, Step, WorkerProgram, WorkerSlot

NOW_SEED = 7
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)> \u202egnp.exe'
TRACEBACK = """Traceback (most recent call last):
  File "shop/receipts.py", line 41, in send
    server.send_message(message)
  File "/usr/lib/python3.11/smtplib.py", line 398, in getreply
    raise SMTPServerDisconnected("Connection unexpectedly closed")
smtplib.SMTPServerDisconnected: Connection unexpectedly closed"""


def seed_jobs(space: ClientSpace) -> None:
    """Puts jobs of all states into some queues."""
    jobs, choose = space.jobs, random.Random(NOW_SEED)
    for number in range(60):
        data = {"order": 1000 + number, "to": f"customer{number}@example.com"}
        tags = ["vip"] if number % 7 == 0 else []
        jobs.put("receipts", "SendReceipt", data, id=f"receipt-{number}", tags=tags)
    for job in jobs.pop("receipts", "mailer-1", 30):
        if choose.random() < 0.4:
            jobs.fail(job.id, "mailer-1", "SMTPServerDisconnected", TRACEBACK)
        else:
            jobs.complete(job.id, "mailer-1", result={"sent": True})
    for number in range(25):
        jobs.put("search-index", "Index", {"product": number}, priority=number % 3)
    running = jobs.pop("search-index", "indexer-2", 4)
    jobs.heartbeat(running[0].id, "indexer-2", progress=0.4, progress_text="4 of 10 shards")
    jobs.put("thumbnails", "Resize", {"picture": "cat.png", "width": 200})
    jobs.put("imports", "Import", {"file": "prices.csv"}, delay=3600, id="import-prices")
    jobs.pause("imports")
    jobs.put("reports", "Collect", {"month": "may"}, id="collect-may")
    jobs.put("reports", "Collect", {"month": "june"}, id="collect-june")
    parts = ["collect-may", "collect-june"]
    jobs.put("reports", "Merge", {"year": 2026}, id="merge", depends=parts)
    jobs.put("reports", "Mail", {"to": "boss"}, id="mail-report", depends=["merge"])
    jobs.recur("reports", "Nightly", {}, cron="30 2 * * 1-5", tz="Europe/Berlin", id="nightly")
    jobs.recur("receipts", "CleanUp", {"days": 30}, interval=900, id="clean-up")
    jobs.config_set("receipts-max-concurrency", 20)
    jobs.config_set("search-index-rate", "100/60")
    jobs.throttle_set("smtp", 2)
    jobs.put_many(
        [NewJob(queue="receipts", klass="Bulk", data=n, throttles=("smtp",)) for n in (1, 2)]
    )
    jobs.track("receipt-59")
    jobs.announce_worker(
        WorkerProgram(
            name="indexer-2", host="web-2", pid=4711, version="0.1.0", queues=("search-index",),
            slots=(WorkerSlot(name="0", job=running[0].id, task="Index", since=time.time() - 95),),
            memory_bytes=72_000_000, since=time.time() - 90_000,
        )
    )  # fmt: skip
    seed_workflow(space)


def seed_workflow(space: ClientSpace) -> None:
    """Runs a workflow halfway: one step is done, one waits for a signal."""
    space.jobs.put("orders", "FulfilOrder", {"order": 1042}, id="order-1042")
    [job] = space.jobs.pop("orders", "flow-1")
    now = time.time()
    steps = (
        Step(number=0, name="charge", begun=now - 42, ended=now - 40, result={"paid": 30}),
        Step(number=1, name="pack", begun=now - 40, ended=now - 12, attempts=2, result="box 7"),
        Step(number=2, name="courier", begun=now - 12),
    )
    report = Report(id=job.id, worker="flow-1", what="heartbeat", steps=steps)
    space.jobs.report([report])


def seed_hostile(space: ClientSpace) -> None:
    """Puts names and data that try to be more than text."""
    jobs = space.jobs
    jobs.put(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, id=HOSTILE, tags=[HOSTILE])
    jobs.put(HOSTILE, "Long", "x" * 1_000_000, id="long", tags=[f"t{n}" for n in range(1_000)])
    jobs.put(HOSTILE, "Fails", None, id="fails", priority=9)
    [job] = jobs.pop(HOSTILE, HOSTILE)
    jobs.fail(job.id, HOSTILE, HOSTILE, HOSTILE)
    jobs.recur(HOSTILE, HOSTILE, HOSTILE, interval=60, id=f"recurring {HOSTILE}")
