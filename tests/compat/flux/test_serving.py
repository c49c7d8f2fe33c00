"""Flux's API on an address of its own: `holdfast serve --flux`."""

from pathlib import Path

from tests.compat.flux.conftest import ADD, Flux
from tests.server.serving import Server, run_command, serving


def flux_url(server: Server) -> str:
    """The URL that the server announces for Flux clients."""
    for line in server.process.stdout:
        if line.startswith("Flux clients connect to "):
            return line.split()[-1]
    raise AssertionError("no address for Flux clients was announced")


def test_flux_clients_without_a_path_in_their_url_have_a_port_of_one_space(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--flux", "shop@127.0.0.1:0") as server:
        flux = Flux(flux_url(server))
        below = Flux(f"{server.url}/shop/flux")
        id = flux.deploy(ADD)
        uri = flux.get("/schemas")[0]["uri"]

        sent = flux.call("POST", f"{uri}/events", [["add", {"k": "s", "v": "a"}]])

        assert (uri, sent) == (f"/schema/{id}", (200, None))
        assert flux.results("s") == below.results("s") == ["a"]
        assert Flux(f"{server.url}/default/flux").results("s") == []
        assert flux.get("/up") == {"redis": True}
        for path in ("/", "/default/flux/up", "/livez", "/shop/events/send", "/openapi.json"):
            assert flux.call("GET", path) == (404, {"error": "Not Found"}), path
        assert flux.call("GET", "/up", Host="evil.example")[0] == 403
        assert server.stop() == 0


def test_a_read_only_server_refuses_events_and_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--flux-read-only", "--flux-ttl", "60") as server:
        flux = Flux(f"{server.url}/default/flux")
        id = flux.deploy(ADD)
        refused = {"error": "This Flux server is read-only"}

        sent = flux.call("POST", f"/schema/{id}/events", [["add", {"k": "s", "v": "a"}]])
        kept = flux.call("POST", "/distinct?keys[]=s")

        assert sent == (501, refused)
        assert flux.call("GET", "/event/add?k=s&v=a") == (501, refused)
        assert kept[1]["ttl"] == 60
        assert flux.results("s") == []


def test_an_address_for_flux_that_is_none_is_refused(tmp_path: Path) -> None:
    words = ("serve", "--data", str(tmp_path / "data"), "--resp", "127.0.0.1:0")

    nowhere = run_command(*words, "--http", "127.0.0.1:0", "--flux", "@127.0.0.1:0")
    never = run_command(*words, "--http", "127.0.0.1:0", "--flux-ttl", "0")
    open_to_all = run_command(*words, "--http", "127.0.0.1:0", "--flux", "0.0.0.0:0")

    assert "names no space" in nowhere.output
    assert "--flux-ttl" in never.output
    assert "the store has no users" in open_to_all.output
