"""The client itself: URLs, spaces, threads, forks, TLS, and all that is not an operation."""

import asyncio
import gc
import os
import pydoc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme

import holdfast
from holdfast.client.async_connection import AsyncConnection
from holdfast.client.batches import Batch
from holdfast.client.generated.async_jobs import AsyncJobs
from holdfast.client.generated.jobs import RecordedJobs
from holdfast.client.jobs import ClientJobs
from holdfast.client.pool import PIPELINE_STEP
from holdfast.client.urls import ServerTarget
from holdfast.entities import Model, column, schema_yaml, select
from holdfast.errors import BadInput, ServerBusy, UnknownSpace, Unreachable, VersionMismatch
from tests.client.both_clients import connected
from tests.client.scripted import HANG, scripted, well
from tests.server.running import Server, serving

ROOT = Path(__file__).parent.parent.parent


class User(Model, schema="shop", table="Users"):
    name: str = column(required=True)
    tags: set[str] = column()


# --- URLs ----------------------------------------------------------------------------------------


def test_a_url_says_it_all() -> None:
    target = ServerTarget.parse(
        "holdfasts://ann:a%40b@db.example:9000/shop?timeout=5&connections=3&retries=0&ca=/ca.pem"
    )

    assert (target.host, target.port, target.space) == ("db.example", 9000, "shop")
    assert (target.user, target.password, target.ca) == ("ann", "a@b", "/ca.pem")
    assert (target.timeout, target.connections, target.retries) == (5.0, 3, 0)
    assert target.is_encrypted
    assert target.place == "holdfasts://db.example:9000"


def test_most_of_a_url_may_be_left_out_and_arguments_go_first() -> None:
    target = ServerTarget.parse("holdfast://[::1]?timeout=5", timeout=2)

    assert (target.host, target.port, target.space, target.timeout) == ("::1", 9977, "default", 2)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("127.0.0.1:9977", "127.0.0.1", 9977),
        ("db-1.example:9000", "db-1.example", 9000),
        ("[::1]:9000", "::1", 9000),
    ],
)
def test_a_host_and_its_port_are_enough(url: str, host: str, port: int) -> None:
    target = ServerTarget.parse(url)

    assert (target.host, target.port, target.is_encrypted) == (host, port, False)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:9966",
        "localhost",
        "user@localhost:9977",
        "holdfast://",
        "holdfast://host:port",
        "holdfast://host/a/b",
        "holdfast://host?timout=5",
        "holdfast://host?timeout=never",
        "holdfast://host?timeout=0",
        "holdfast://host?timeout=1e12",
        "holdfast://host?connect_timeout=1e12",
        "holdfast://host?long_timeout=3000000",
        "holdfast://host?connections=0",
        "",
    ],
)
def test_a_bad_url_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(BadInput):
        holdfast.connect(url)


def test_an_error_about_a_url_does_not_show_the_password() -> None:
    with pytest.raises(BadInput) as refused:
        holdfast.connect("redis://ann:secret@host")

    assert "secret" not in str(refused.value)


# --- models --------------------------------------------------------------------------------------


def test_models_work_as_they_do_on_a_store(client: Any) -> None:
    client.entities.deploy(schema_yaml(User))
    ann, ben = User(name="ann", tags={"a"}), User(name="ben")
    client.entities.put(ann, ben)

    page = client.entities.select(select(User).limit(5))
    found = client.entities.get_one(User, ann.id)
    found.tags = {"b"}
    client.entities.put(found)
    stale = client.entities.get_one(User, ann.id)
    client.entities.put(found)
    with pytest.raises(VersionMismatch):
        client.entities.put(stale)

    assert {user.name for user in page} == {"ann", "ben"}
    assert client.entities.get(User, ann.id, "nobody")[0].tags == {"b"}
    assert client.entities.count(User) == 2
    assert client.entities.update(User, User.id == ben.id, name="benny") == 1
    assert client.entities.delete(User, User.id == ben.id) == 1


# --- spaces --------------------------------------------------------------------------------------


def test_spaces_are_apart(client: Any) -> None:
    one, two = client.space(f"{client.name}-1"), client.space(f"{client.name}-2")

    one.jobs.put("q", id="a")

    assert (one.jobs.length("q"), two.jobs.length("q"), client.jobs.length("q")) == (1, 0, 0)


def test_a_space_that_can_not_be_named_so_is_refused(client: Any) -> None:
    with pytest.raises(BadInput, match="can't name a space"):
        client.space("x" * 300).jobs.length("q")


def test_connections_change_spaces_when_there_are_too_few(url: str) -> None:
    with holdfast.connect(url, connections=1) as client:
        spaces = [client, client.space(f"{client.name}-other")]
        for number in range(3):
            for space in spaces:
                space.jobs.put("q", id=f"{number}")

        assert [space.jobs.length("q") for space in spaces] == [3, 3]


def test_a_call_in_a_dropped_space_is_refused_and_the_space_can_be_created_again(
    tmp_path: Path, mode: str
) -> None:
    with serving(tmp_path / "data", "--allow-flush") as server:
        url = f"holdfast://127.0.0.1:{server.resp_port}"
        with connected(mode, url) as client, holdfast.open(tmp_path / "data") as store:
            space = client.space("gone")
            space.jobs.put("q", id="a")
            store.drop_space("gone")

            with pytest.raises(UnknownSpace):
                space.jobs.get("a")
            assert space.jobs.get("a") is None
            assert space.jobs.put("q", id="b") == "b"


# --- threads and processes -----------------------------------------------------------------------


def test_threads_share_a_client(url: str) -> None:
    with holdfast.connect(url, connections=4) as client:

        def work(number: int) -> None:
            for each in range(25):
                client.jobs.put(f"q{number}", id=f"{number}-{each}")
                assert client.jobs.get(f"{number}-{each}") is not None

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [client.jobs.length(f"q{number}") for number in range(12)] == [25] * 12


def test_a_client_has_no_more_connections_than_it_may() -> None:
    def hangs(command: list[bytes]) -> bytes:
        return HANG if b"." in command[0] else well(command)

    with (
        scripted(hangs) as server,
        holdfast.connect(server.url, connections=1, timeout=0.3) as client,
    ):
        entered = threading.Event()

        def hang() -> None:
            entered.set()
            with pytest.raises(holdfast.errors.NoAnswer):
                client.jobs.get("a")

        thread = threading.Thread(target=hang)
        thread.start()
        entered.wait()
        while not server.came:
            pass
        with pytest.raises(ServerBusy, match="all 1 connections"):
            client.space("other")._pool.take("default", 0.0)
        thread.join()


def test_an_async_client_keeps_no_more_connections_than_it_may_however_many_spaces_it_uses(
    url: str,
) -> None:
    def count() -> int:
        # Not isinstance, which asks lazy objects of Django for their class.
        connections = [each for each in gc.get_objects() if type(each) is AsyncConnection]
        return sum(connection.is_open for connection in connections)

    async def visit(client: Any, number: int) -> None:
        space = client.space(f"{client.name}-{number}")
        await space.jobs.put("q", id=f"{number}")
        async with space.pipeline() as pipeline:
            jobs = [pipeline.jobs.get(f"{number}") for _ in range(PIPELINE_STEP + 1)]
        assert {job.result().id for job in jobs} == {f"{number}"}
        assert len(await space.jobs.pop_wait("q", "w", timeout=10)) == 1

    async def visit_all() -> None:
        async with holdfast.aio.connect(url, connections=3) as client:
            for number in range(6):
                await visit(client, number)
            await asyncio.sleep(0)
            assert count() <= 6  # for quick calls, and for those that wait

            await asyncio.gather(*(visit(client, number) for number in range(6, 26)))
            await visit(client, 26)
            await asyncio.sleep(0)
            assert count() <= 6

    asyncio.run(visit_all())


def test_a_client_may_be_used_on_both_sides_of_a_fork(url: str) -> None:
    program = f"""
import os, holdfast
client = holdfast.connect({url!r})
client.jobs.put("q", id="before")
child = os.fork()
client.jobs.put("q", id="child" if child == 0 else "parent")
assert client.jobs.get("before").id == "before"
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(client.jobs.length("q"))
client.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout == "3\n"


def test_many_awaits_at_once_share_a_connection(server: Server, url: str) -> None:
    import asyncio

    async def program() -> tuple[int, int]:
        async with holdfast.aio.connect(url) as client:
            before = server.resident_bytes
            await asyncio.gather(*(client.jobs.put("q", id=f"{n}") for n in range(300)))
            return await client.jobs.length("q"), before

    assert asyncio.run(program())[0] == 300


def test_a_cancelled_await_takes_no_answer_from_others(url: str) -> None:
    import asyncio

    async def program() -> list[Any]:
        async with holdfast.aio.connect(url) as client:
            await client.jobs.put("q", id="a")
            doomed = asyncio.ensure_future(client.jobs.length("q"))
            kept = asyncio.ensure_future(client.jobs.get("a"))
            await asyncio.sleep(0)
            doomed.cancel()
            return [await kept, await client.jobs.length("q")]

    job, length = asyncio.run(program())
    assert (job.id, length) == ("a", 1)


def test_a_closed_client_leaves_no_socket_behind(url: str, mode: str) -> None:
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        with connected(mode, url) as client:
            client.jobs.length("q")
            client.space("other").jobs.length("q")

    assert len(os.listdir("/proc/self/fd")) <= before + 1


# --- TLS -----------------------------------------------------------------------------------------


def test_an_encrypted_connection_trusts_the_named_certificate_only(
    tmp_path: Path, mode: str
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    files = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with serving(tmp_path / "data", *files) as server:
        url = f"holdfasts://localhost:{server.resp_port}"

        with connected(mode, f"{url}?ca={tmp_path}/ca.pem") as client:
            client.jobs.put("q", id="a", data="x" * 200_000)
            assert len(client.jobs.get("a").data) == 200_000
            with client.subscribe() as notices:
                client.jobs.put("q")
                assert notices.poll()
        with pytest.raises(Unreachable, match="certificate"), connected(mode, url, retries=0):
            pass


# --- what is generated ---------------------------------------------------------------------------


def test_the_generated_modules_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy

    folder = ROOT / ".ci" / "client_generator"
    monkeypatch.syspath_prepend(folder)  # where its other module is
    made = runpy.run_path(str(folder / "generate.py"))["modules"]()

    committed = {path: (ROOT / path).read_text() for path in made}
    assert committed == made, "run `make client`"


def test_help_shows_signature_and_text_of_a_call_however_it_is_made() -> None:
    methods = ClientJobs.tagged, AsyncJobs.tagged, RecordedJobs.tagged

    shown = [pydoc.plain(pydoc.render_doc(each)) for each in methods]

    head = "tagged(self, tag: str | int | float, *, offset: int = 0, count: int = 25) -> "
    assert [head in each for each in shown] == [True] * 3
    assert ["Returns the jobs that have `tag`" in each for each in shown] == [True] * 3
    assert "Handle[holdfast.jobs.records.JobPage]" in shown[2]


def test_a_call_sends_no_argument_that_is_as_its_default() -> None:
    batch = Batch()

    batch.jobs.put("emails")
    batch.jobs.put("emails", priority=7)
    batch.events.series("['views', '2015']", "size", from_="2015-01-01", to="2015-01-02")

    sent = [
        msgspec.msgpack.decode(command.split(b"\r\n", 4)[4][:-2]) for command in batch._commands
    ]
    assert sent[:2] == [{"queue": "emails"}, {"queue": "emails", "priority": 7}]
    assert sorted(sent[2]) == ["by", "from", "template", "to"]


def test_importing_holdfast_does_not_load_the_client() -> None:
    program = "import sys, holdfast; print(*(m for m in sys.modules if 'holdfast.client.' in m))"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == ""
