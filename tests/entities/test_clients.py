"""The clients in generated Go and TypeScript, compiled and run against a real server."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

import holdfast
from holdfast.entities.codegen import Options, generate
from holdfast.entities.schema_file import parse_schema
from holdfast.users import Grant, add_user
from tests.server.running import Server, serving
from tests.tools import run

SCHEMA = """
schema: shop
tables:
  Things:
    class: Thing
    primary: {type: compound, columns: [name]}
    columns:
      name: {type: Text, options: {required: true}}
      rank: {type: Int, default: 7}
      hits: {type: Uint}
      ratio: {type: Float}
      open: {type: Bool}
      seen: {type: Timestamp, clientName: lastSeen, default: $now}
      raw: {type: Binary}
      tags: {type: Set, options: {subtype: Text}}
      notes: {type: List, options: {subtype: Text}}
      sizes: {type: Map, options: {subtype: Int}}
      misc: {type: List}
      size: {type: Text, options: {choices: [s, m, "l\\"x"]}}
      code: {type: Text, options: {max_len: 3}}
    indexes:
      - {type: compound, columns: [rank, name]}
  Notes:
    class: Note
    columns:
      text: {type: Text, options: {required: true}}
      stars: {type: Float, default: 1}
      made: {type: Timestamp, default: $now}
    indexes:
      - {type: simple, columns: [stars]}
"""

PROGRAMS = Path(__file__).with_name("clients")
SCENARIOS = ("all", "loaded", "checks", "versions", "batches", "large")
Run = Callable[..., list[str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the schema in a space for each scenario and language."""
    data: Path = tmp_path_factory.mktemp("clients") / "data"
    with serving(data, "--durability", "interval") as server:
        yield server


@pytest.fixture
def fresh(server: Server) -> Server:
    """The server, its spaces empty but for the schema."""
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        for scenario in SCENARIOS:
            entities = client.space(scenario).entities
            entities.deploy(SCHEMA)
            for table in ("shop.Things", "shop.Notes"):
                entities.delete_raw(table, [holdfast.entities.messages.Filter("id", "ALL")])
    return server


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a scenario of the program in Go, which is compiled once."""
    folder = tmp_path_factory.mktemp("go")
    options = Options(package="main")
    (folder / "model.go").write_text(generate([parse_schema(SCHEMA)], "go", options))
    (folder / "main.go").write_text((PROGRAMS / "main.go").read_text())
    run("go", "vet", "model.go", "main.go", cwd=folder)
    run("go", "build", "-o", "program", "model.go", "main.go", cwd=folder)
    return lambda *words: run(str(folder / "program"), *map(str, words), cwd=folder).splitlines()


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a scenario of the program in TypeScript, which is compiled once."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "model.ts").write_text(generate([parse_schema(SCHEMA)], "ts"))
    (folder / "main.ts").write_text((PROGRAMS / "main.ts").read_text())
    (folder / "package.json").write_text('{"type": "module"}')
    strict = ("--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "es2022")
    run("tsc", "--skipLibCheck", *strict, "main.ts", cwd=folder)
    return lambda *words: run("node", "main.js", *map(str, words), cwd=folder).splitlines()


def test_go_stores_and_loads_every_type(go: Run, fresh: Server) -> None:
    assert go("all", f"127.0.0.1:{fresh.resp_port}") == [
        "[first| second|] first|",
        "2 first 18446744073709551615 2.5 true 1577934245678",
        "[0 255] 2 [x y] map[l:3] [1 two <nil>]",
        "second| 7 true true",
        "2 1 second 8 2",
        "No index matches the filter no_index",
        "2",
    ]


def test_typescript_stores_and_loads_every_type(typescript: Run, fresh: Server) -> None:
    assert typescript("all", fresh.http_url) == [
        "first| second|",
        "first 5 2.5 true 1577934245678",
        "0,255 a,b x,y",
        '[{"l":3},[1,"two",null,{"$odd":1}]] true',
        "second| 7 true true",
        "2 1 second 8 2",
        "no_index 400",
        "2 2",
    ]


def test_go_puts_back_only_what_was_loaded(go: Run, fresh: Server) -> None:
    assert go("loaded", f"127.0.0.1:{fresh.resp_port}") == [
        "one| one 77 5 [x y] 1000",
        "one| one 77 5 [z] 1000",
        "one| one 78 5 [z] 1000",
        "one| one 0 0 [z] 1000",
        "[two|] 2",
        "0",
    ]


def test_typescript_puts_back_only_what_was_loaded(typescript: Run, fresh: Server) -> None:
    assert typescript("loaded", fresh.http_url) == [
        "one| one 77 5 x,y 1000",
        "one| one 77 5 z 1000",
        "one| one 78 5 z 1000",
        "one| one 0 null z 1000",
        "two| 2 0",
    ]


def test_go_checks_values_before_it_sends_them(go: Run, fresh: Server) -> None:
    assert go("checks", f"127.0.0.1:{fresh.resp_port}") == [
        "shop.Things.name is required and not set",
        "shop.Things.size is xl, none of its choices",
        "shop.Things.code has length 4, at most 3 fit",
        "shop.Things.name is not UTF-8 text",
        "<nil>",
        "shop.Things.rank holds int64, and was given string",
        "shop.Things.size is xl, none of its choices",
        "shop.Things.name is required and can't be nil",
        "<nil> b|",
    ]
    assert _ratio(fresh) == [2.0]


def test_typescript_checks_values_before_it_sends_them(typescript: Run, fresh: Server) -> None:
    assert typescript("checks", fresh.http_url) == [
        "shop.Things.name is required and not set",
        "shop.Things.name holds 5, which is not of type Text",
        'shop.Things.size is "xl", none of "s", "m", "l\\"x"',
        "shop.Things.code has length 4, at most 3 fit",
        "shop.Things.rank holds 1.5, which is not of type Int",
        "shop.Things.hits holds -1, which is not of type Uint",
        'shop.Things.lastSeen holds {"$date":{"$numberLong":"NaN"}}, '
        "which is not of type Timestamp",
        'shop.Things.tags holds ["x"], which is not of type Set',
        "shop.Things.notes holds the element 1, which is not of type Text",
        'shop.Things.sizes holds the element "y", which is not of type Int',
        "shop.Things.name is required and not set",
        "fine",
        'shop.Things.rank holds "many", which is not of type Int',
        'shop.Things.size is "xl", none of "s", "m", "l\\"x"',
        "shop.Things.name is required",
        "fine",
        'shop.Things.rank is compared with "7", which is not of type Int',
    ]
    assert _ratio(fresh) == [3.0]


def _ratio(server: Server) -> list[float]:
    """The Float column as it is stored: a double, also where the program wrote an integer."""
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        found = client.space("checks").entities.get_raw("shop.Things", ["b|"])
    values = [entity.properties["ratio"] for entity in found]
    assert all(type(value) is float for value in values)
    return values


def test_go_refuses_to_overwrite_what_somebody_has_changed(go: Run, fresh: Server) -> None:
    assert go("versions", f"127.0.0.1:{fresh.resp_port}") == [
        "<nil>",
        "conflict",
        "conflict",
        "conflict 2",
    ]


def test_typescript_refuses_to_overwrite_what_somebody_has_changed(
    typescript: Run, fresh: Server
) -> None:
    assert typescript("versions", fresh.http_url) == [
        "fine",
        "version_mismatch",
        "version_mismatch",
        "version_mismatch 2",
    ]


def test_a_batch_in_go_is_applied_whole_or_not_at_all(go: Run, fresh: Server) -> None:
    said = go("batches", f"127.0.0.1:{fresh.resp_port}")

    assert said == ["true 1", "conflict 1", "true"]


def test_a_batch_in_typescript_is_applied_whole_or_not_at_all(
    typescript: Run, fresh: Server
) -> None:
    assert typescript("batches", fresh.http_url) == ["one|,two| 8", "version_mismatch 1", "2 40"]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path, str]]:
    """A server with TLS and users: the server, the authority's certificate, and a token."""
    folder = tmp_path_factory.mktemp("secure")
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    with holdfast.open(folder / "data") as store:
        store.entities.deploy(SCHEMA)
        add_user(store.engine, "root", "root-password", (Grant(role="admin"),))
        add_user(store.engine, "ann", "ann-password", (Grant(role="write"),))
        token = add_user(store.engine, "bot", None, (Grant(role="read"),))
    options = ("--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"))
    with serving(folder / "data", *options) as server:
        yield server, folder / "ca.pem", str(token)


def test_go_logs_in_over_tls(go: Run, secure: tuple[Server, Path, str]) -> None:
    server, authority, _ = secure

    said = go("secure", f"127.0.0.1:{server.resp_port}", authority, "ann-password")

    assert said == ["true", "wrongpass", "<nil>"]


def test_typescript_logs_in_over_tls(
    typescript: Run, secure: tuple[Server, Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, authority, token = secure
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(authority))

    url = f"https://127.0.0.1:{server.http_port}"
    said = typescript("secure", url, "ann-password", token)

    assert said == ["noauth", "safer|", "fine"]


def test_typescript_keeps_integers_that_no_number_holds(typescript: Run, fresh: Server) -> None:
    large = 2**60 + 1
    entity = {"name": "one", "rank": large, "misc": [large], "sizes": {"l": large}}
    with holdfast.connect(f"holdfast://127.0.0.1:{fresh.resp_port}") as client:
        entities = client.space("large").entities
        entities.put_raw("shop.Things", [entity])

        said = typescript("large", fresh.http_url)
        [stored] = entities.get_raw("shop.Things", ["one|"])

    beyond = f"is {large}, beyond 2^53: generate the client with --bigint"
    assert said == ["bigint", f"shop.Things.rank {beyond}", f"shop.Things.sizes {beyond}"]
    assert stored.properties["misc"] == [large, 1]
    assert stored.properties["rank"] == large


def test_a_server_that_never_answers_is_given_up(go: Run, typescript: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        assert go("silent", f"127.0.0.1:{port}") == ["true true"]
        assert typescript("silent", f"http://127.0.0.1:{port}") == ["no_answer"]
