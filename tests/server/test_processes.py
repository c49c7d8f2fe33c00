"""Several processes serve one store on the same ports: `holdfast serve --processes N`."""

import json
import os
import re
import resource
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import trustme

import holdfast
from holdfast.errors import BadInput, CannotServe
from holdfast.server.addresses import Address
from holdfast.server.client_limits import ClientLimits
from holdfast.server.processes import ProcessGroup, ReadinessReport, ReservedPorts
from tests.processes import Command, start
from tests.server.running import DEADLINE, RawClient, Server, serving
from tests.servers import await_true

PROCESSES = 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data", "--processes", str(PROCESSES)) as server:
        yield server


def process_of(client: RawClient) -> int:
    """Returns the process that answers a client."""
    found = re.search(rb"process_id:(\d+)", client.ask("INFO"))
    assert found is not None
    return int(found[1])


def one_client_each(server: Server, stack: ExitStack) -> list[RawClient]:
    """Returns clients that are answered by different processes."""
    found: dict[int, RawClient] = {}
    while len(found) < PROCESSES:  # the system spreads them by chance
        client = stack.enter_context(server.connect())
        found.setdefault(process_of(client), client)
    return list(found.values())


def fails(tmp_path: Path, *options: str) -> str:
    """Returns what a server says that can't serve."""
    log = tmp_path / "failed.log"
    ports = () if "--resp" in options else ("--resp", "127.0.0.1:0")
    command = Command(["serve", *options, *ports, "--http", "127.0.0.1:0"], log=log)
    assert command.wait(DEADLINE) != 0
    command.stdout.close()
    return log.read_text()


def is_there(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_every_process_sees_at_once_what_was_committed_by_another(server: Server) -> None:
    with ExitStack() as stack:
        clients = one_client_each(server, stack)
        for number, client in enumerate(clients * 3):
            client.ask("JOBS.PUT", json.dumps({"queue": "q", "id": str(number)}))

            lengths = {each.ask("JOBS.LENGTH", '{"queue": "q"}') for each in clients}

            assert lengths == {b"%d" % (number + 1)}


def test_a_pop_that_waits_in_one_process_gets_what_is_put_in_another(server: Server) -> None:
    with ExitStack() as stack:
        waiting, putting, _ = one_client_each(server, stack)
        waiting.send("JOBS.POP_WAIT", '{"queues": "q", "worker": "w", "timeout": 20}')
        putting.ask("JOBS.PUT", '{"queue": "q", "id": "awaited"}')

        assert [job["id"] for job in json.loads(waiting.receive())] == ["awaited"]


def test_a_subscriber_of_one_process_hears_what_is_published_in_another(server: Server) -> None:
    with ExitStack() as stack:
        listening, other, _ = one_client_each(server, stack)
        listening.ask("SUBSCRIBE", "ql:q:q")
        other.ask("PUBLISH", "ql:q:q", "heard")

        assert listening.receive() == [b"message", b"ql:q:q", b"heard"]


def test_a_process_that_is_killed_is_replaced_and_has_lost_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--processes", "2")
    with server.connect() as client:
        victim = process_of(client)
        client.ask("JOBS.PUT", '{"queue": "q", "id": "kept"}')
        os.kill(victim, signal.SIGKILL)
        with pytest.raises((EOFError, ConnectionError)):
            client.ask("PING")

    def both_serve() -> bool:
        found: Counter[int] = Counter()
        for _ in range(30):
            with suppress(OSError, EOFError), server.connect() as client:
                found[process_of(client)] += 1
        return len(found) == 2 and victim not in found

    await_true(both_serve, seconds=DEADLINE, what="a new process serves")
    with server.connect() as client:
        assert client.ask("JOBS.LENGTH", '{"queue": "q"}') == b"1"
    server.stop()
    assert f"process {victim} exited with -9; another one replaces it" in server.log


def children_of(process: int) -> list[int]:
    return [
        int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def kill_and_await_the_replacement(server: Server) -> tuple[int, int]:
    """Kills one of two processes; returns the other one, and one that has only begun to start."""
    victim, other = children_of(server.pid)
    os.kill(victim, signal.SIGKILL)

    def replacements() -> list[int]:
        return [each for each in children_of(server.pid) if each not in (victim, other)]

    await_true(lambda: bool(replacements()), seconds=DEADLINE, what="another process starts")
    return other, replacements()[0]


def await_two_processes(server: Server, *gone: int) -> None:
    def both_serve() -> bool:
        found = set()
        for _ in range(30):
            with suppress(OSError, EOFError), server.connect() as client:
                found.add(process_of(client))
        return len(found) == 2 and found.isdisjoint(gone)

    await_true(both_serve, seconds=DEADLINE, what="two processes serve")


def test_a_process_that_is_killed_while_it_replaces_another_does_not_end_the_server(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path / "data", "--processes", "2")
    other, starting = kill_and_await_the_replacement(server)

    os.kill(starting, signal.SIGKILL)

    await_two_processes(server, starting)
    assert other in children_of(server.pid)
    server.stop()


def test_a_replacement_that_cannot_serve_leaves_the_others_serving(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    options = ("--processes", "2", "--tls-cert", str(certificate), "--tls-key", str(key))
    server = Server(tmp_path / "data", *options)
    key.rename(tmp_path / "away")
    _, starting = kill_and_await_the_replacement(server)
    await_true(lambda: "can't serve" in server.log, seconds=DEADLINE, what="it says why")

    (tmp_path / "away").rename(key)

    await_true(
        lambda: len(children_of(server.pid)) == 2 and starting not in children_of(server.pid),
        seconds=DEADLINE,
        what="a later one serves",
    )
    server.stop()


def test_a_process_that_cannot_be_started_is_started_later(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--processes", "2")
    files = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (4, files[1]))
    victim, _ = children_of(server.pid)
    os.kill(victim, signal.SIGKILL)
    await_true(
        lambda: "can't start a process: too many open files" in server.log,
        seconds=DEADLINE,
        what="it says why",
    )

    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, files)

    await_two_processes(server, victim)
    server.stop()


def test_a_reload_does_not_end_a_process_that_has_only_begun_to_start(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--processes", "2")
    _, starting = kill_and_await_the_replacement(server)

    server.signal(signal.SIGHUP)

    await_true(
        lambda: server.log.count("reloaded the users") == 2,
        seconds=DEADLINE,
        what="both reload, one of them when it can",
    )
    assert starting in children_of(server.pid)
    server.stop()


def test_a_second_signal_ends_a_server_with_a_frozen_process_at_once(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--processes", "2")
    frozen, other = children_of(server.pid)
    os.kill(frozen, signal.SIGSTOP)
    server.signal(signal.SIGTERM)
    await_true(lambda: not is_there(other), seconds=DEADLINE, what="the other one has stopped")

    server.signal(signal.SIGTERM)

    assert server.wait() == -signal.SIGKILL
    await_true(lambda: not is_there(frozen), seconds=DEADLINE, what="the frozen one has ended")


def test_a_signal_to_the_first_process_ends_all(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--processes", str(PROCESSES))
    with ExitStack() as stack:
        processes = [process_of(client) for client in one_client_each(server, stack)]

        server.stop()

        assert not any(is_there(process) for process in [server.pid, *processes])
    with closing(holdfast.open(tmp_path / "data")) as store:  # nobody has it open any more
        assert store.jobs.queues() == []


def test_processes_whose_first_one_is_killed_end_by_themselves(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--processes", str(PROCESSES))
    with ExitStack() as stack:
        processes = [process_of(client) for client in one_client_each(server, stack)]

        server.kill()

        await_true(
            lambda: not any(is_there(process) for process in processes),
            seconds=DEADLINE,
            what="all have ended",
        )


def test_a_reload_reaches_every_process(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--processes", str(PROCESSES)) as server:
        server.signal(signal.SIGHUP)

        await_true(
            lambda: server.log.count("reloaded the users") == PROCESSES,
            seconds=DEADLINE,
            what="each process says that it has reloaded",
        )


def test_a_port_that_another_program_listens_on_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "one", "--processes", "2") as server:
        address = f"127.0.0.1:{server.resp_port}"
        two = ("--data", str(tmp_path / "two"))

        said = fails(tmp_path, *two, "--processes", "2", "--resp", address)

        assert f"can't listen on {address}: address already in use" in said


def test_what_keeps_a_process_from_serving_is_said_once(tmp_path: Path) -> None:
    with closing(holdfast.open(tmp_path / "data", durability="interval")):
        said = fails(tmp_path, "--data", str(tmp_path / "data"), "--processes", "2")

    assert said.count("is open in another process with durability 'interval'") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("number", ["0", "-1", "65", "1.5", "many"])
def test_a_number_of_processes_that_makes_no_sense_is_refused(tmp_path: Path, number: str) -> None:
    assert "--processes" in fails(tmp_path, "--data", str(tmp_path / "data"), "--processes", number)


def test_connections_are_divided_among_the_processes() -> None:
    assert ClientLimits(connections=100).shared_by(3).connections == 33
    assert ClientLimits(connections=2).shared_by(3).connections == 1
    assert ClientLimits(connections=100).shared_by(1) == ClientLimits(connections=100)


def test_a_port_is_reserved_only_if_no_other_program_listens_there() -> None:
    ports = ReservedPorts(Address("127.0.0.1", 0), Address("127.0.0.1", 0))
    first, second = ports.addresses
    assert first.port != second.port

    listening = first.listen(shared=True)
    with pytest.raises(CannotServe, match="address already in use"):
        ReservedPorts(first)
    with socket.create_connection((first.host, first.port)):
        pass
    listening.close()
    ports.close()

    ReservedPorts(first).close()


def run_group(fault: str, connection: Connection) -> None:
    """Runs a group whose processes can't serve, and sends what it raises."""

    def serve(report: object) -> None:
        if fault == "an error":
            raise BadInput("it can't be", hint="Try again.")
        os._exit(3)

    announced: list[ReadinessReport] = []
    try:
        ProcessGroup(2, serve).run(announced.append)
    except CannotServe as error:
        connection.send((error.message, error.hint, announced))


def test_an_error_before_all_processes_serve_ends_the_others() -> None:
    assert start(run_group, "an error").receive() == ("it can't be", "Try again.", [])


def test_a_process_that_ends_without_a_word_at_its_start_ends_the_others() -> None:
    message, _, announced = start(run_group, "an end").receive()

    assert message.endswith("exited with 3 while it started")
    assert announced == []
