"""The server's root: addresses for programs, and a page if there is no dashboard."""

from typing import Final
from urllib.parse import urlsplit

import msgspec

from holdfast.operations import LAYER_CLASSES, OPERATIONS
from holdfast.server.addresses import Address
from holdfast.version import VERSION


def _table(layer: str) -> str:
    rows = "".join(
        f"<tr><td><code>{operation.name}</code><td>{_escape(operation.summary)}"
        for operation in OPERATIONS.values()
        if operation.layer == layer
    )
    return f"<details><summary>{layer}</summary><table>{rows}</table></details>"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


_PAGE: Final = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Holdfast</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 1rem }}
pre {{ background: #f3f4f1; padding: 1rem; overflow-x: auto }}
td {{ padding: .15rem .75rem .15rem 0; vertical-align: top }} summary {{ cursor: pointer }}
</style>
<h1>Holdfast {VERSION}</h1>
<p>One durable store, five data models, one transaction. This server is running.</p>
<pre>curl {{URL}}/default/jobs/put -d '{{"queue": "emails", "data": {{"to": "ann"}}}}'
curl {{URL}}/default/jobs/queues -d '{{}}'{{REDIS}}</pre>
<p><a href="{{ROOT}}/openapi.json">/openapi.json</a> describes every operation,
<a href="{{ROOT}}/metrics">/metrics</a> is for Prometheus,
<a href="{{ROOT}}/readyz">/readyz</a> for balancers.</p>
<h2>What you can call</h2>
{"".join(map(_table, LAYER_CLASSES))}
"""


def start_page(host: str, root: str, *, scheme: str = "http", resp: Address | None = None) -> bytes:
    """Returns the page for a server with that host name, mounted below that path.

    `resp` is the address for Redis clients, if there is one.
    """
    redis = "" if resp is None else f"\n{_redis_cli(host, scheme, resp)} {_POP}"
    shown = _PAGE.replace("{URL}", _escape(f"{scheme}://{host}{root}"))
    shown = shown.replace("{REDIS}", _escape(redis))
    return shown.replace("{ROOT}", _escape(root)).encode(errors="replace")


def start_facts(
    host: str, root: str, *, scheme: str = "http", resp: Address | None = None, ui: bool = True
) -> bytes:
    """Returns the addresses of this server as JSON, as its caller reaches them."""
    url = f"{scheme}://{host}{root}"
    facts = {
        "holdfast": VERSION,
        "http": url,
        "operations": f"{url}/{{space}}/{{layer}}/{{operation}}",
        "openapi": f"{url}/openapi.json",
        "metrics": f"{url}/metrics",
        "ready": f"{url}/readyz",
        "dashboard": f"{url}/ui/" if ui else None,
        "resp": None if resp is None else _reached(host, scheme, resp),
        "redis_cli": None if resp is None else f"{_redis_cli(host, scheme, resp)} {_POP}",
    }
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


_POP: Final = """JOBS.POP '{"queue": "emails", "worker": "me"}'"""


def _redis_cli(host: str, scheme: str, resp: Address) -> str:
    """Returns the redis-cli command that reaches the RESP port from the reader's machine."""
    where = _resp_host(host, resp)
    options = " --tls" if scheme == "https" else ""
    options += "" if where in ("127.0.0.1", "localhost") else f" -h {where}"
    return f"redis-cli{options} -p {resp.port}"


def _reached(host: str, scheme: str, resp: Address) -> str:
    """Returns the URL of the RESP port as seen from the reader's machine."""
    where = Address(_resp_host(host, resp), resp.port)
    return f"{'rediss' if scheme == 'https' else 'redis'}://{where}"


def _resp_host(host: str, resp: Address) -> str:
    try:
        name = urlsplit(f"//{host}").hostname or "127.0.0.1"
    except ValueError:  # brackets that are not around an address
        name = "127.0.0.1"
    return resp.host if resp.host in ("127.0.0.1", "::1", "localhost") else name
