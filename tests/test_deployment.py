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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import holdfast
from holdfast.cli import main
from holdfast.limits import SERVER_DRAIN_SECONDS, WORKER_DRAIN_SECONDS
from tests.cli.running import environment
from tests.processes import Command
from tests.server.serving import ADDRESSES, serving

CONTRIB = Path(__file__).parent.parent / "contrib"
DOCKER = CONTRIB / "docker"
UNITS = sorted((CONTRIB / "systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
KUBERNETES = list(yaml.safe_load_all((CONTRIB / "kubernetes" / "holdfast.yaml").read_text()))
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
    data, passwords = tmp_path / "data", {"WORKER_PASSWORD": "one", "ADMIN_PASSWORD": "two"}
    script = COMPOSE["users"]["command"][0].replace("$$", "$").replace("/data", str(data))
    subprocess.run(
        [*COMPOSE["users"]["entrypoint"], script],
        env=environment(PATH=TOOLS, **passwords),
        check=True,
    )
    places = {"/data": str(data), "/backups": str(tmp_path / "backups")}
    places |= {"0.0.0.0:9977": "0.0.0.0:0", "0.0.0.0:9966": "0.0.0.0:0"}
    server = Command([places.get(word, word) for word in instruction("CMD")])
    try:
        found = ADDRESSES.search(server.stdout.readline())
        assert found is not None
        health = [word.replace("9966", found[5]) for word in instruction("HEALTHCHECK")]
        subprocess.run(health, env=environment(PATH=TOOLS), check=True)
        url = COMPOSE["worker"]["environment"]["HOLDFAST_URL"]
        url = url.replace("${WORKER_PASSWORD}", "one").replace(
            "server:9977", f"127.0.0.1:{found[2]}"
        )
        monkeypatch.setenv("HOLDFAST_URL", url)
        monkeypatch.chdir(DOCKER / "app")
        work_together(url)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def work_together(url: str) -> None:
    """Lets a worker of the compose file run a job, and end."""
    port = str(free_port())
    worker = Command([word.replace("9990", port) for word in COMPOSE["worker"]["command"]])
    try:
        with holdfast.connect(url) as client:
            assert example_tasks().shrink.put(client, 8).result(timeout=60) == 4
        test = COMPOSE["worker"]["healthcheck"]["test"]
        health = [word.replace("9990", port) for word in test[1:]]
        assert test[0] == "CMD"
        subprocess.run(health, env=environment(PATH=TOOLS), check=True)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


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


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_that_exists_as_an_ordinary_user(unit: Path) -> None:
    read = configparser.RawConfigParser(strict=False, delimiters="=")
    read.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    read.read(unit)
    service = read["Service"]

    program, *words = shlex.split(service["ExecStart"])

    assert program == "/opt/holdfast/bin/holdfast"
    refuse_unknown(words)
    assert service["User"] == "holdfast"
    assert service["ProtectSystem"] == "strict"
    if "TimeoutStopSec" in service:
        drain = max(SERVER_DRAIN_SECONDS, WORKER_DRAIN_SECONDS)
        assert int(service["TimeoutStopSec"]) > drain


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


def panel_expressions() -> list[str]:
    dashboard = json.loads((CONTRIB / "grafana" / "dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    queries = [each["query"]["query"] for each in dashboard["templating"]["list"][1:]]
    return queries + [target["expr"] for panel in panels for target in panel.get("targets", [])]


def alert_expressions() -> list[str]:
    [group] = yaml.safe_load((CONTRIB / "grafana" / "alerts.yaml").read_text())["groups"]
    assert all(rule["annotations"]["summary"] for rule in group["rules"])
    return [rule["expr"] for rule in group["rules"]]
