"""Pages of other sites can't use a server through a browser: Host, Origin and their relatives."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.running import RawClient
from tests.server.serving import Server, run_command, serving

PATHS = ["/", "/metrics", "/openapi.json", "/default/metrics/prometheus", "/default/sys/table"]
PATHS += ["/status", "/dump?schema=a&table=b", "/default/events/pixel.gif?name=x", "/readyz"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ("--pixel", "--allowed-host", "Store.example.com, other.example.com")
    with serving(tmp_path_factory.mktemp("data"), *options) as server:
        yield server


def ask(server: Server, method: str, path: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = "{}" if method == "POST" else None
    return server.request(method, path, body, named).status


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:9966",
        "EVIL.example.",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "127.0.0.1@evil.example",
        "evil.example#@127.0.0.1",
        "[::1",
        "",
        "a b",
        "store.example.com.evil",
        "127.1.example",
        "%6cocalhost.example",
    ],
)
def test_a_server_without_users_does_not_answer_to_the_name_of_a_site(
    server: Server, host: str
) -> None:
    for path in PATHS:
        assert ask(server, "GET", path, Host=host) == 403, path
    assert ask(server, "POST", "/default/jobs/queues", Host=host) == 403
    assert ask(server, "PUT", "/default/sys/table/t", Host=host) == 403
    assert ask(server, "GET", "/livez", Host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        "LOCALHOST:80",
        "localhost.",
        "app.localhost",
        "[::1]",
        "[::1]:9966",
        "10.1.2.3:9966",
        "holdfast:9966",
        "store.example.com",
        "STORE.example.com:443",
        "other.example.com",
    ],
)
def test_a_server_answers_to_addresses_local_names_and_names_that_it_was_given(
    server: Server, host: str
) -> None:
    assert ask(server, "GET", "/metrics", Host=host) == 200
    assert ask(server, "POST", "/default/jobs/queues", Host=host) == 200


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/metrics",
        "http://evil.example:9966/metrics",
        "HTTP://EVIL.example/metrics",
        "https://evil.example/metrics",
        "http://127.0.0.1.evil.example/metrics",
        "http://evil.example?/metrics",
        "http://evil.example",
    ],
)
def test_the_host_of_a_whole_url_counts_and_not_the_host_header(server: Server, url: str) -> None:
    assert ask(server, "GET", url, Host="localhost") == 403


def test_it_counts_for_calls_that_are_answered_without_a_task(server: Server) -> None:
    path = "/default/jobs/queues"

    assert ask(server, "POST", f"http://evil.example{path}", Host="localhost") == 403
    assert ask(server, "POST", f"http://localhost{path}", Host="evil.example") == 200


def test_a_page_of_the_host_that_a_whole_url_names_is_no_other_site(server: Server) -> None:
    url, origin = "http://127.0.0.1:5/metrics", "http://127.0.0.1:5"

    assert ask(server, "GET", url, Host="localhost", Origin=origin) == 200
    assert ask(server, "GET", url, Host="localhost:1", Origin="http://localhost:1") == 403


@pytest.mark.parametrize("url", ["http://localhost/metrics", "http://[::1]:1/metrics?a=b"])
def test_a_whole_url_of_a_host_that_the_server_answers_to_is_a_path(
    server: Server, url: str
) -> None:
    assert ask(server, "GET", url, Host="evil.example") == 200


@pytest.mark.parametrize(
    "url", ["ftp://localhost/livez", "http://localhost@evil.example/livez", "localhost:9966", "*"]
)
def test_what_is_neither_a_path_nor_a_url_of_http_is_refused(server: Server, url: str) -> None:
    assert ask(server, "GET", url) == 400


def test_the_refusal_says_what_to_do(server: Server) -> None:
    refused = server.request("GET", "/metrics", headers={"Host": "evil.example"}).error

    assert (refused["code"], "--allowed-host" in refused["hint"]) == ("forbidden", True)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "page",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # another port of this machine
        {"Origin": "http://["},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
    ],
)
def test_a_page_of_another_site_may_do_nothing(
    server: Server, method: str, page: dict[str, str]
) -> None:
    paths = {"GET": "/metrics", "HEAD": "/metrics", "POST": "/default/jobs/queues"}

    assert ask(server, method, paths.get(method, "/default/sys/table/t"), **page) == 403


@pytest.mark.parametrize(
    "page",
    [
        {"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "cors"},
        {"Sec_Fetch_Site": "none", "Sec_Fetch_Mode": "navigate"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"},  # a link to it
        {"Origin": "http://127.0.0.1:5", "Host": "127.0.0.1:5"},
        {"Origin": "https://store.example.com", "Host": "127.0.0.1:5"},  # behind a proxy
    ],
)
def test_its_own_pages_and_links_to_it_work(server: Server, page: dict[str, str]) -> None:
    assert ask(server, "GET", "/metrics", **page) == 200


def test_a_form_on_another_site_may_not_navigate_into_a_write(server: Server) -> None:
    page = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}

    assert ask(server, "POST", "/default/jobs/queues", **page) == 403


def test_the_pixel_may_be_on_any_page_and_counts_in_known_spaces_only(server: Server) -> None:
    page = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}

    assert ask(server, "GET", "/default/events/pixel.gif?name=x", **page) == 200
    assert ask(server, "GET", "/unknown/events/pixel.gif?name=x", **page) == 404
    assert server.call("admin.spaces").result["spaces"] == ["default"]


def test_a_server_with_users_answers_to_any_name_but_to_no_foreign_page(tmp_path: Path) -> None:
    words = ("user", "add", "--data", str(tmp_path), "web", "--grant", "admin")
    token = run_command(*words).stdout.split()[0]
    with serving(tmp_path) as server:
        known = {"Authorization": f"Bearer {token}", "Host": "data.example.com"}

        assert ask(server, "GET", "/metrics", **known) == 200
        assert ask(server, "GET", "/metrics", Host="data.example.com") == 401
        assert ask(server, "GET", "/metrics", Origin="http://evil.example", **known) == 403


def test_any_name_is_answered_on_request(tmp_path: Path) -> None:
    with serving(tmp_path, "--allowed-host", "*") as server:
        assert ask(server, "GET", "/metrics", Host="any.example") == 200


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"PUT / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    ],
)
def test_http_that_a_page_sends_to_the_resp_port_runs_no_command(
    server: Server, head: bytes
) -> None:
    with RawClient(server.resp_port) as client:
        client.socket.sendall(head + b"JOBS.PUT smuggled\r\n" * 3)
        with contextlib.suppress(ConnectionError):
            client.rest()

    assert server.call("jobs.length", queue="smuggled").result == 0
