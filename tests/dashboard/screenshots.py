"""Makes the pictures of the dashboard for README and docs/howto/dashboard.md: `make screenshots`.

Run: python -m tests.dashboard.screenshots [FOLDER]
"""

import math
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal, NamedTuple

import holdfast
from holdfast.client.client import Client
from holdfast.server.recorder import SPACE, SPECS
from tests.dashboard.browser import chromium
from tests.dashboard.data_seeding import seed_entities, seed_events, seed_metrics, seed_tables
from tests.dashboard.seeding import seed_jobs
from tests.server.serving import serving

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
MINUTES = 60
QUEUES = {"receipts": 420, "search-index": 700, "reports": 60}  # jobs a minute


class Picture(NamedTuple):
    """A page to be shown in the docs."""

    name: str
    path: str
    schemes: tuple[Literal["light", "dark"], ...] = ("light",)
    height: int = 760


PICTURES = (
    Picture("overview", "shop/", ("light", "dark"), 1000),
    Picture("job", "shop/jobs/receipt-1", ("light", "dark"), 680),
    Picture("workflow", "shop/jobs/order-1042", height=760),
    Picture("queues", "shop/queues", height=460),
    Picture("queue", "shop/queues/receipts?state=failed", height=600),
    Picture("failures", "shop/failures", height=320),
    Picture("workers", "shop/workers", height=460),
    Picture("schedules", "shop/schedules", height=320),
    Picture("entities", "shop/entities/shop.Users?c0=country&v0=de", height=460),
    Picture("tables", "shop/tables/revisions", height=560),
    Picture("revisions", "shop/tables/revisions/rows/Page_003%2F2", height=400),
    Picture("events", "shop/events/keys/popular", height=520),
    Picture("metrics", "shop/metrics/visits", height=560),
    Picture("limits", "shop/limits?condition=logins&limit=3", height=420),
    Picture("spaces", "shop/spaces", height=400),
    Picture("settings", "shop/settings", height=560),
)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    options = ("--no-record", "--backups", "backups")  # its past is written here
    with tempfile.TemporaryDirectory() as data, serving(Path(data) / "data", *options) as server:
        with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
            for seed in (seed_jobs, seed_entities, seed_tables, seed_events, seed_metrics):
                seed(client.space("shop"))
            write_past(client)
        with chromium() as browser:
            for picture in PICTURES:
                for scheme in picture.schemes:
                    page = browser.new_page(
                        viewport={"width": 1280, "height": picture.height}, color_scheme=scheme
                    )
                    page.goto(f"{server.url}/ui/{picture.path}")
                    page.wait_for_load_state("load")
                    page.locator(".scripted").wait_for()
                    behind = f"-{scheme}" if len(picture.schemes) > 1 else ""
                    page.screenshot(path=folder / f"dashboard-{picture.name}{behind}.png")
                    page.close()


def write_past(client: Client) -> None:
    """Writes an hour of figures, as a recorder would have."""
    system, chance, now = client.space(SPACE).metrics, random.Random(7), time.time()
    system.define(SPECS)
    totals = dict.fromkeys(QUEUES, 0)
    failed = dict.fromkeys(QUEUES, 0)
    for minute in range(MINUTES + 1):
        at = now - 60 * (MINUTES - minute)
        wave = 1 + 0.35 * math.sin(minute / 8) + chance.uniform(-0.08, 0.08)
        writes: list[dict[str, Any]] = []
        for queue, usual in QUEUES.items():
            totals[queue] += int(usual * wave)
            failed[queue] += int(usual * 0.03) if queue == "receipts" and minute > 45 else 0
            entity = ["space", "shop", "queue", queue]
            writes += _jobs(entity, totals[queue], failed[queue])
        writes += _jobs(["space", "shop"], sum(totals.values()), sum(failed.values()))
        requests = int(sum(QUEUES.values()) * 3 * wave)
        writes += [
            {"metric": "requests", "entity": ["protocol", "resp"], "value": requests},
            {"metric": "requests", "entity": ["protocol", "http"], "value": requests // 4},
            {"metric": "commits", "value": requests},
        ]
        for spent in (0.6, 0.9, 1.4, 4.1 * wave):
            writes.append({"metric": "commit_ms", "value": spent, "count": 9, "op": "record"})
        system.write([{**each, "at": at} for each in writes])


def _jobs(entity: list[str], total: int, failed: int) -> list[dict[str, Any]]:
    values = {"jobs_put": total + total // 50, "jobs_completed": total, "jobs_failed": failed}
    return [
        {"metric": name, "entity": entity, "value": value, "op": "set"}
        for name, value in values.items()
    ]


if __name__ == "__main__":
    main()
