"""A server introduces itself at its start and on its first page: real ports, scheme, warnings."""

import shlex
from pathlib import Path

import pytest

from holdfast.cli.serve import commands_to_try
from holdfast.server.addresses import Address
from holdfast.server.start_page import start_page
from tests.server.serving import run_command, serving


def test_the_start_page_names_the_ports_that_the_server_has(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-ui") as server:
        page = server.get("/", Accept="text/html").body.decode()

        assert f"curl http://127.0.0.1:{server.http_port}/default/jobs/put" in page
        assert f"redis-cli -p {server.resp_port} JOBS.POP" in page
        assert "9977" not in page


@pytest.mark.parametrize(
    ("host", "scheme", "resp", "said"),
    [
        ("localhost:1", "http", Address("127.0.0.1", 5), "redis-cli -p 5 JOBS.POP"),
        ("data.example.com", "https", Address("0.0.0.0", 5), "--tls -h data.example.com -p 5 "),
        ("[::1]:1", "http", Address("::", 5), "redis-cli -h ::1 -p 5 "),
        ("data.example.com", "http", Address("127.0.0.1", 5), "redis-cli -p 5 "),
        ("[", "http", Address("0.0.0.0", 5), "redis-cli -p 5 "),
    ],
)
def test_the_start_page_says_how_to_connect_from_where_it_is_read(
    host: str, scheme: str, resp: Address, said: str
) -> None:
    page = start_page(host, "/below", scheme=scheme, resp=resp).decode()

    assert said in page
    assert f"curl {scheme}://{host}/below/default/" in page


def test_a_mounted_store_speaks_of_no_redis_client() -> None:
    assert b"redis-cli" not in start_page("example.com", "/store")


def test_a_proxy_that_is_trusted_may_say_that_it_ended_tls(tmp_path: Path) -> None:
    headers = {"X-Forwarded-Proto": "https"}
    with serving(tmp_path / "plain") as server:
        told = server.request("GET", "/", headers=headers).json
        assert told["http"] == f"http://127.0.0.1:{server.http_port}"
    with serving(tmp_path / "behind", "--trusted-proxies", "127.0.0.1") as server:
        told = server.request("GET", "/", headers=headers).json
        assert told["http"] == f"https://127.0.0.1:{server.http_port}"


def test_commands_to_try_fit_the_server() -> None:
    everywhere = Address("0.0.0.0", 9), Address("::", 8)

    redis, call, document = commands_to_try(*everywhere, secure=True, has_users=True)

    assert shlex.split(redis)[:6] == ["redis-cli", "--tls", "--insecure", "-p", "9", "--pass"]
    assert call.startswith("curl -k https://[::1]:8/default/jobs/queues -d '{}' -H ")
    assert document == "curl -k https://[::1]:8/openapi.json"


def test_plain_text_for_other_machines_is_warned_of(tmp_path: Path) -> None:
    words = ("user", "add", "--data", str(tmp_path / "data"), "web", "--grant", "admin")
    assert run_command(*words).exit_code == 0
    logs = {"127.0.0.1:0": tmp_path / "quiet", "0.0.0.0:0": tmp_path / "warned"}
    for resp, log in logs.items():
        with serving(tmp_path / "data", "--resp", resp, log=log) as server:
            server.get("/livez")
            server.stop()

    said = f"0.0.0.0:{server.resp_port} can be reached from other machines in plain text"
    assert "plain text" not in logs["127.0.0.1:0"].read_text()
    assert said in logs["0.0.0.0:0"].read_text()
