"""Credentials of Flux's API: the users of the server, and Flux's answers to all others."""

from pathlib import Path

import holdfast
from tests.compat.flux.conftest import ADD, Flux
from tests.server.running import serving


def test_readers_may_read_and_are_told_that_flux_is_read_only(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "data") as store:
        writer = store.admin.add_user("writer", ["write"]).token
        reader = store.admin.add_user("reader", ["read"]).token
    with serving(tmp_path / "data") as server:
        flux = Flux(f"{server.http_url}/default/flux")
        may_write = {"Authorization": f"Bearer {writer}"}
        may_read = {"Authorization": f"Bearer {reader}"}
        id = flux.call("POST", "/schema", ADD, **may_write)[1]["id"]
        events = f"/schema/{id}/events"
        sent = flux.call("POST", events, [["add", {"k": "s", "v": "a"}]], **may_write)

        refused = flux.call("POST", events, [["add", {"k": "s", "v": "b"}]], **may_read)
        kept = flux.call("POST", "/distinct?keys[]=s", **may_read)

        assert sent == (200, None)
        assert refused == (501, {"error": "This Flux server is read-only"})
        assert flux.call("POST", "/schema", ADD, **may_read)[0] == 403
        assert flux.call("GET", "/query?keys[]=s", **may_read) == (200, {"results": ["a"]})
        assert kept[0] == 200
        assert flux.call("GET", "/query?keys[]=s")[0] == 401
