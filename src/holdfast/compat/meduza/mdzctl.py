"""`mdzctl`: the commands of Meduza's control tool, for the HTTP port of a running server.

They use Meduza's own control paths, so they work with a Meduza server as well as with Holdfast.
"""

import base64
import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, TypeVar
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

import click

from holdfast.cli import gen
from holdfast.cli.files import read_file, reading, title_of, writing
from holdfast.cli.output import CommandFailure, Output, json_option
from holdfast.cli.root_group import ErrorReportingGroup
from holdfast.cli.settings import read_file as read_settings
from holdfast.cli.settings import settings
from holdfast.defaults import HTTP_PORT
from holdfast.version import VERSION

F = TypeVar("F", bound=Callable[..., Any])

_CALL_SECONDS: Final = 60.0  # for each read of an answer
_PIECE_BYTES: Final = 256 * 1024

_files = click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A schema file, or - for standard input. May be repeated.",
)


class ControlServer:
    """The HTTP port of a server."""

    def __init__(self, url: str, token: str | None, *, is_json: bool) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            self._port = parts.port
        except ValueError:
            raise click.UsageError(
                f"--server {_without_credentials(url)}: the port is not a number"
            ) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise click.UsageError(
                f"--server {_without_credentials(url)}: it is http://HOST:PORT, or http://USER:TOKEN@HOST:PORT"
            )
        host = parts.netloc.rpartition("@")[2]
        self._url = f"{parts.scheme}://{host}{parts.path}"  # for messages, without credentials
        self._host = parts.hostname
        self._is_secure = parts.scheme == "https"
        self._path = parts.path.rstrip("/")
        self._is_json = is_json
        self._headers = _credentials(parts, token)
        if is_json:
            self._headers["accept"] = "application/json"

    @contextmanager
    def request(
        self, method: str, path: str, body: bytes | IO[bytes] | None = None, **parameters: str
    ) -> Iterator[http.client.HTTPResponse]:
        """Yields the response, to be read; a refusal raises an error with the server's own text."""
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=_CALL_SECONDS)
        query = f"?{urlencode(parameters)}" if parameters else ""
        try:
            connection.request(method, f"{self._path}{path}{query}", body, self._headers)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                answer = response.read().decode(errors="replace").strip()
                unknown = response.status == http.HTTPStatus.UNAUTHORIZED
                raise self._failure(
                    "refused",
                    answer or f"the server answered {response.status}",
                    "Give --token TOKEN, or -s http://USER:TOKEN@HOST:PORT." if unknown else "",
                )
            yield response
        except http.client.HTTPException as error:
            raise self._failure(
                "broken_answer", f"the connection to {self._url} broke: {error!r}"
            ) from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise self._failure("unreachable", f"{self._url}: {reason}") from None
        finally:
            connection.close()

    def answer(self, method: str, path: str, body: Any = None, **parameters: str) -> str:
        """Returns the whole response as text."""
        with self.request(method, path, body, **parameters) as response:
            return response.read().decode(errors="replace")

    def _failure(self, code: str, message: str, hint: str = "") -> CommandFailure:
        return CommandFailure(code, message, hint, is_json=self._is_json)


def _without_credentials(url: str) -> str:
    """Returns a URL for a message, without the part that may hold a password."""
    return url.rpartition("@")[2]


def _credentials(parts: SplitResult, token: str | None) -> dict[str, str]:
    """Returns the header with the credentials: --token, or those in the URL.

    `user:token@` is a user with a password or a token, `:token@` and `token@` only a token.
    """
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if token is None and user and password:
        both = base64.b64encode(f"{user}:{password}".encode()).decode()
        return {"authorization": f"Basic {both}"}
    found = token or password or user
    return {"authorization": f"Bearer {found}"} if found else {}


def _server(command: F) -> F:
    """Adds --server, --token and --json; the command gets a `ControlServer` and an `Output`."""

    def call(out: Output, server: str, token: str | None, **more: Any) -> Any:
        return command(ControlServer(server, token, is_json=out.is_json), out, **more)

    call.__doc__ = command.__doc__
    call.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # as click does
    option = click.option(
        "-s",
        "--server",
        default=f"http://localhost:{HTTP_PORT}",
        show_default=True,
        metavar="URL",
        help="The HTTP address of a server, with credentials if needed: http://USER:TOKEN@HOST.",
    )
    return option(settings("token")(json_option(call)))  # type: ignore[return-value]  # its place is taken


def _table(command: F) -> F:
    schema = click.option("-S", "--schema", required=True, metavar="NAME", help="The schema.")
    table = click.option("-t", "--table", required=True, metavar="NAME", help="The table in it.")
    return schema(table(command))


@click.group(
    "mdzctl", cls=ErrorReportingGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(VERSION, prog_name="mdzctl")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Deploy schemas, and dump, load and repair the entities of a server, as Meduza's mdzctl does.

    Example: mdzctl deploy -f shop.schema.yaml
    """
    ctx.default_map = read_settings(None)


command.add_command(
    click.Command(
        "gen",
        params=gen.command.params,
        callback=gen.command.callback,
        help="""Write models for the tables of schema files, as `holdfast gen` does.

        Example: mdzctl gen -f shop.schema.yaml -l py -o models.py
        """,
    )
)


@command.command("check")
@_files
@json_option
def check(out: Output, files: tuple[str, ...]) -> None:
    """Check schema files for problems; no server is needed.

    Problems are listed with file and line. Exits with 3 if there are errors, as `holdfast schema
    check` does; warnings do not count.

    Example: mdzctl check -f shop.schema.yaml
    """
    from holdfast.cli.schema import check_files

    check_files(out, files, is_mdzctl=True)


@command.command("deploy")
@_files
@click.option("-n", "--name", metavar="NAME", help="Accepted and ignored, as in Meduza's mdzctl.")
@_server
def deploy(server: ControlServer, out: Output, files: tuple[str, ...], name: str | None) -> None:
    """Deploy schema files, one after the other.

    Example: mdzctl deploy -f shop.schema.yaml
    """
    for file in files:
        answer = server.answer("POST", "/deploy", read_file(file)).strip()
        if answer != "OK":
            raise CommandFailure("refused", f"{title_of(file)}: {answer}", "", is_json=out.is_json)
    out.result({"deployed": files}, lambda: out.say("Schema deployed successfully"))


@command.command("schemadump")
@click.option("-S", "--schema", required=True, metavar="NAME", help="The schema.")
@_server
def schemadump(server: ControlServer, out: Output, schema: str) -> None:
    """Print a schema as it is deployed, with all defaults filled in.

    Example: mdzctl schemadump -S shop
    """
    click.echo(server.answer("GET", "/schemadump", schema=schema).rstrip("\n"))


@command.command("confdump")
@_server
def confdump(server: ControlServer, out: Output) -> None:
    """Print the configuration of the server.

    Example: mdzctl confdump -s http://localhost:9966
    """
    click.echo(server.answer("GET", "/confdump").rstrip("\n"))


@command.command("stats")
@_server
def stats(server: ControlServer, out: Output) -> None:
    """Print the sizes of the tables, and with --json the progress of index builds.

    Example: mdzctl stats -s http://localhost:9966
    """
    click.echo(server.answer("GET", "/stats").rstrip("\n"))


@command.command("dump")
@_table
@click.option(
    "-o", "--output", metavar="FILE", help="The file to write.  [default: standard output]"
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["bson", "jsonl"]),
    default="bson",
    show_default=True,
    help="BSON documents, or lines of Extended JSON.",
)
@_server
def dump(
    server: ControlServer, out: Output, schema: str, table: str, output: str | None, kind: str
) -> None:
    """Write the entities of a table to standard output, or to a file.

    Example: mdzctl dump -S shop -t Orders -o orders.bson
    """
    if out.is_json and output in (None, "-"):
        raise click.UsageError("--json and the dump can't both go to standard output: give -o FILE")
    size = 0
    with (
        server.request("GET", "/dump", schema=schema, table=table, format=kind) as response,
        writing(output) as file,
    ):
        while piece := response.read1(_PIECE_BYTES):
            size += file.write(piece)
    out.result({"table": f"{schema}.{table}", "bytes": size}, lambda: None)


@command.command("load")
@_table
@click.option("-f", "--file", default="-", metavar="FILE", help="A dump, or - for standard input.")
@_server
def load(server: ControlServer, out: Output, schema: str, table: str, file: str) -> None:
    """Load a dump into a table. Entities keep their ids, and replace existing ones.

    Example: mdzctl load -S shop -t Orders -f orders.bson
    """
    with reading(file) as source:
        answer = server.answer("POST", "/load", source, schema=schema, table=table).strip()
    out.result({"table": f"{schema}.{table}", "answer": answer}, lambda: out.say(answer))


@command.command("drop")
@_table
@_server
def drop(server: ControlServer, out: Output, schema: str, table: str) -> None:
    """Delete all entities of a table; it stays deployed.

    Example: mdzctl drop -S shop -t Orders
    """
    answer = server.answer("POST", "/drop", schema=schema, table=table).strip()
    out.result({"table": f"{schema}.{table}", "answer": answer}, lambda: out.say(answer))


@command.command("repair")
@_table
@_server
def repair(server: ControlServer, out: Output, schema: str, table: str) -> None:
    """Compare the indexes of a table with its entities, and repair the differences.

    Example: mdzctl repair -S shop -t Orders
    """
    click.echo(server.answer("POST", "/repair", schema=schema, table=table).rstrip("\n"))
