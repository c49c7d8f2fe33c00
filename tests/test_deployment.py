"""The files of contrib/: well-formed, and what they run is what Holdfast has."""

import configparser
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import holdfast
from holdfast.cli import main
from holdfast.limits import SERVER_DRAIN_SECONDS, WORKER_DRAIN_SECONDS
from tests.cli.running import environment
from tests.processes import Command
from tests.server.serving import ADDRESSES, serving
from tests.tasks.waiting import until

CONTRIB = Path(__file__).parent.parent / "contrib"
DOCKER = CONTRIB / "docker"
UNITS = sorted((CONTRIB / "systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
KUBERNETES = list(yaml.safe_load_all((CONTRIB / "kubernetes" / "holdfast.yaml").read_text()))
DASHBOARD: dict[str, Any] = json.loads((CONTRIB / "grafana" / "dashboard.json").read_text())
TOOLS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def instruction(name: str) -> list[str]:
    """Returns the words of an instruction of the Dockerfile that is written as JSON."""
    text = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
    found = re.findall(rf"^{name}\b.*?(\[.*\])$", text, re.MULTILINE)
    words: list[str] = json.loads(found[-1])
    return words


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- Docker ---------------------------------------------------------------------------------------


def test_the_dockerfile_has_nothing_that_its_linter_complains_about() -> None:
    done = subprocess.run(
        ["hadolint", "--no-color", DOCKER / "Dockerfile"],
        env=environment(PATH=TOOLS),
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_an_ordinary_user_and_copies_what_there_is() -> None:
    text = (DOCKER / "Dockerfile").read_text()

    users = re.findall(r"^USER (\d+):", text, re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    assert [int(user) > 0 for user in users] == [True]
    assert all((CONTRIB.parent / name).exists() for line in copied for name in line.split())
    assert instruction("ENTRYPOINT") == ["holdfast"]


def test_the_containers_serve_and_work_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands, variables and health checks of image and compose file, without containers."""
    users, worker = COMPOSE["users"], COMPOSE["worker"]
    test = worker["healthcheck"]["test"]
    assert test[0] == "CMD"
    assert instruction("ENTRYPOINT") == ["holdfast"]

    serve_and_work(
        tmp_path,
        monkeypatch,
        users=[*users["entrypoint"], users["command"][0].replace("$$", "$")],
        server=instruction("CMD"),
        is_well=lambda port: run_there(instruction("HEALTHCHECK"), "9966", port),
        url=worker["environment"]["HOLDFAST_URL"].replace("${WORKER_PASSWORD}", "one"),
        worker=worker["command"],
        worker_is_well=lambda port: run_there(test[1:], "9990", port),
    )


def serve_and_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    users: list[str],
    server: list[str],
    is_well: Callable[[str], None],
    url: str,
    worker: list[str],
    worker_is_well: Callable[[str], None],
) -> None:
    """Adds users, starts a server and a worker, checks their health, runs a job, and ends both."""
    places = {"/data": str(tmp_path / "data"), "/backups": str(tmp_path / "backups")}
    passwords = {"WORKER_PASSWORD": "one", "ADMIN_PASSWORD": "two"}
    script = users[-1].replace("/data", places["/data"])
    subprocess.run([*users[:-1], script], env=environment(PATH=TOOLS, **passwords), check=True)
    words = [re.sub(r"^(0\.0\.0\.0):\d+$", r"\1:0", word) for word in server]
    serving = Command([re.sub(r"^/(data|backups)", rf"{tmp_path}/\1", word) for word in words])
    try:
        found = ADDRESSES.search(serving.stdout.readline())
        assert found is not None
        is_well(found[5])
        url = re.sub(r"@\w+:9977", f"@127.0.0.1:{found[2]}", url)
        monkeypatch.setenv("HOLDFAST_URL", url)
        monkeypatch.chdir(DOCKER / "app")
        work(url, worker, worker_is_well)
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0
    finally:
        serving.kill()
        serving.wait()
        serving.stdout.close()


def work(url: str, words: list[str], is_well: Callable[[str], None]) -> None:
    """Lets a worker run a job, and end."""
    port = str(free_port())
    worker = Command([re.sub(r":9990$", f":{port}", word) for word in words])
    try:
        with holdfast.connect(url) as client:
            assert example_tasks().shrink.put(client, 8).result(timeout=60) == 4
        is_well(port)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


def run_there(words: list[str], stated: str, port: str) -> None:
    """Runs a health check, on the port that a test has chosen."""
    assert any(stated in word for word in words)
    health = [word.replace(stated, port) for word in words]
    subprocess.run(health, env=environment(PATH=TOOLS), check=True)


def example_tasks() -> Any:
    """The module that the worker imports from its own folder."""
    spec = importlib.util.spec_from_file_location("tasks", DOCKER / "app" / "tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- systemd --------------------------------------------------------------------------------------


def refuse_unknown(words: list[str]) -> None:
    """Lets click parse a command with all its options, without running it."""
    command = main.get_command(None, words[0])  # type: ignore[arg-type]  # it needs no context
    assert command is not None
    command.make_context(words[0], words[1:])


def service_of(unit: Path) -> configparser.SectionProxy:
    """Returns the section `Service` of a unit."""
    read = configparser.RawConfigParser(strict=False, delimiters="=")
    read.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    read.read(unit)
    return read["Service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_that_exists_as_an_ordinary_user(unit: Path) -> None:
    service = service_of(unit)

    program, *words = shlex.split(service["ExecStart"])

    assert program == "/opt/holdfast/bin/holdfast"
    refuse_unknown(words)
    assert service["User"] == "holdfast"
    assert service["ProtectSystem"] == "strict"
    if "TimeoutStopSec" in service:
        drain = max(SERVER_DRAIN_SECONDS, WORKER_DRAIN_SECONDS)
        assert int(service["TimeoutStopSec"]) > drain


def started(name: str, state: Path) -> tuple[list[str], configparser.SectionProxy]:
    """Returns the words of a unit's ExecStart, with `state` as its StateDirectory."""
    service = service_of(CONTRIB / "systemd" / f"{name}.service")
    line = service["ExecStart"].replace(f"/var/lib/{service['StateDirectory']}", str(state))
    return shlex.split(line.replace("%H", "host").replace("%i", "1"))[1:], service


def test_the_units_serve_work_back_up_and_prove_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ExecStart, ExecReload and KillSignal, as the files state them, without systemd."""
    monkeypatch.setenv("HOLDFAST_RESP", "127.0.0.1:0")  # as EnvironmentFile= may set them
    monkeypatch.setenv("HOLDFAST_HTTP", "127.0.0.1:0")
    words, service = started("holdfast", tmp_path)
    server = Command(words)
    try:
        found = ADDRESSES.search(server.stdout.readline())
        assert found is not None
        url = f"holdfast://127.0.0.1:{found[2]}"
        monkeypatch.chdir(DOCKER / "app")  # a WorkingDirectory with the module that it names
        words, working = started("holdfast-worker@", tmp_path)
        worker = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *words],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with holdfast.connect(url) as client:
                assert example_tasks().shrink.put(client, 8).result(timeout=60) == 4
                until(lambda: client.jobs.worker_programs())
                [program] = client.jobs.worker_programs()
                assert program.name == "host-1"
                for unit, process in ((working, worker), (service, server)):
                    assert unit["ExecReload"] == "/bin/kill -HUP $MAINPID"
                    process.send_signal(signal.SIGHUP)
                until(
                    lambda: {each.since for each in client.jobs.worker_programs()} - {program.since}
                )
                assert example_tasks().shrink.put(client, 10).result(timeout=60) == 5
            for name in ("holdfast-backup", "holdfast-drill"):
                subprocess.run(
                    [sys.executable, "-m", "holdfast", *started(name, tmp_path)[0]],
                    env=environment(),
                    check=True,
                )
            for unit, process in ((working, worker), (service, server)):
                process.send_signal(getattr(signal, unit["KillSignal"]))
                assert process.wait(60) == 0
        finally:
            worker.kill()
            worker.wait()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    for file in (CONTRIB / "systemd").iterdir():
        name = file.name.replace("@.", "@1.")
        text = re.sub(
            r"^ExecStart=\S+", "ExecStart=/bin/true", file.read_text(), flags=re.MULTILINE
        )
        (tmp_path / name).write_text(text)
    units = sorted(path for path in tmp_path.iterdir() if path.suffix in (".service", ".timer"))
    assert len(units) == 6
    if shutil.which("systemd-analyze") is None:
        return  # not on this machine; the test above has read them

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True
    )

    ours = [line for line in done.stderr.splitlines() if "holdfast" in line]
    assert ours == []


# --- Kubernetes -----------------------------------------------------------------------------------


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each pod of the example with each of its containers."""
    for each in KUBERNETES:
        if "template" in each.get("spec", {}):
            pod = each["spec"]["template"]["spec"]
            for container in pod["containers"]:
                yield pod, container


def test_kubernetes_probes_what_is_served_and_grants_time_to_drain() -> None:
    served = {"/livez", "/readyz"}
    for pod, container in containers():
        ports = {port["name"] for port in container["ports"]}
        probes = [container[name]["httpGet"] for name in container if name.endswith("Probe")]
        refuse_unknown(container["args"])

        assert {probe["path"] for probe in probes} == served
        assert {probe["port"] for probe in probes} <= ports
        assert pod["terminationGracePeriodSeconds"] >= 5 + SERVER_DRAIN_SECONDS
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted <= {"data", *(volume["name"] for volume in pod["volumes"])}


def test_the_pods_serve_and_work_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands, variables and probes of the Kubernetes file, without a cluster."""
    (server_pod, server), (_, worker) = containers()
    [init] = server_pod["initContainers"]
    [url] = [each["value"] for each in worker["env"] if each["name"] == "HOLDFAST_URL"]

    def probe(container: dict[str, Any], port: str) -> None:
        for name in ("livenessProbe", "readinessProbe"):
            path = container[name]["httpGet"]["path"]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                assert answer.status == 200

    serve_and_work(
        tmp_path,
        monkeypatch,
        users=[*init["command"], *init["args"]],
        server=server["args"],
        is_well=partial(probe, server),
        url=url.replace("$(WORKER_PASSWORD)", "one"),
        worker=worker["args"],
        worker_is_well=partial(probe, worker),
    )


def test_kubernetes_selectors_find_their_pods() -> None:
    labels = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in KUBERNETES
        if "template" in each.get("spec", {})
    ]
    secrets = {key for each in KUBERNETES if each["kind"] == "Secret" for key in each["stringData"]}

    for each in KUBERNETES:
        assert {"apiVersion", "kind", "metadata"} <= set(each)
        selector = each.get("spec", {}).get("selector", {})
        assert not selector or selector.get("matchLabels", selector) in labels
    named = re.findall(r"key: ([\w-]+)\}", (CONTRIB / "kubernetes" / "holdfast.yaml").read_text())
    assert set(named) == secrets


# --- Grafana --------------------------------------------------------------------------------------


def test_dashboard_and_alerts_name_what_a_server_exports(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        server.call("jobs.put", queue="emails", data=1)
        text = server.get("/metrics").body.decode()
    exported = {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    states = set(re.findall(r'state="(\w+)"', text))

    expressions = [*panel_expressions(), *alert_expressions()]

    assert len(expressions) > 25
    for expression in expressions:
        names = re.findall(r"\bholdfast_\w+", expression)
        assert names == [] or set(names) <= set(exported), expression
        labels = set(re.findall(r"\b(\w+)=~?\"", expression)) - {"instance", "job"}
        assert all(labels <= exported[name] for name in names), expression
        assert set(re.findall(r'state="(\w+)"', expression)) <= states


def test_every_expression_is_promql_of_one_type() -> None:
    """Parsed as Prometheus does, with Grafana's variables replaced as Grafana replaces them."""
    queries = [expression for expression in panel_expressions() if "label_values" not in expression]

    for expression in [*queries, *alert_expressions()]:
        text = expression.replace("$__rate_interval", "1m").replace("$__range", "1h")
        assert promql_parser.parse(text) is not None, expression
    assert DASHBOARD["schemaVersion"] >= 36


def test_the_dashboard_is_one_that_grafana_can_draw() -> None:
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    panels = DASHBOARD["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(DASHBOARD["uid"]) <= 40
    squares: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        covered = {
            (place["x"] + right, place["y"] + down)
            for right in range(place["w"])
            for down in range(place["h"])
        }
        assert not covered & squares, f"{panel['title']} lies on another panel"
        squares |= covered
        assert panel["type"] in ("row", "timeseries", "stat")
        targets = panel.get("targets", [])
        assert bool(targets) == (panel["type"] != "row")
        assert len({target["refId"] for target in targets}) == len(targets)
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(panel)))
        assert used <= variables | {"__rate_interval", "__range"}, panel["title"]


def panel_expressions() -> list[str]:
    dashboard, panels = DASHBOARD, DASHBOARD["panels"]
    queries = [each["query"]["query"] for each in dashboard["templating"]["list"][1:]]
    return queries + [target["expr"] for panel in panels for target in panel.get("targets", [])]


def alert_expressions() -> list[str]:
    [group] = yaml.safe_load((CONTRIB / "grafana" / "alerts.yaml").read_text())["groups"]
    assert all(rule["annotations"]["summary"] for rule in group["rules"])
    return [rule["expr"] for rule in group["rules"]]
