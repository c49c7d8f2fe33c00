"""`holdfast serve`: serves a store over RESP and HTTP."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.output import WRONG_USAGE, CommandFailure, Output, json_option
from holdfast.cli.settings import SETTINGS, settings

if TYPE_CHECKING:
    from holdfast.admin import Origin, SettingEntry
    from holdfast.contrib.opentelemetry import ServerTracer
    from holdfast.errors import HoldfastError
    from holdfast.server.addresses import Address
    from holdfast.server.processes import ReadinessReport
    from holdfast.server.server import ServerSettings
    from holdfast.store import Store


@click.command("serve")
@settings("data", *(name for name, setting in SETTINGS.items() if setting.section == "serve"))
@json_option
def command(out: Output, data: str, engine: str | None, durability: str, **options: Any) -> None:
    """Serve a store over RESP and HTTP.

    The folder is created if it does not exist. On SIGTERM, the server finishes running
    requests and exits. On SIGHUP, it reloads the certificate and the users.

    Example: holdfast serve --data data --resp 127.0.0.1:9977
    """
    from holdfast.errors import HoldfastError
    from holdfast.server.logs import start_logging
    from holdfast.server.signals import defer_reloads

    defer_reloads()
    _event_loops()
    start_logging()
    place = Path(data) if engine is None else _place(engine)
    chosen = _parse(options, out)
    server = partial(_serve, place, durability, out)
    try:
        if chosen.processes == 1:
            server(chosen, partial(_announce, chosen, out))
        else:
            _serve_in_processes(chosen, out, server)
    except HoldfastError as error:
        raise _in_one_line(error, out) from None
    except OSError as error:
        # A URL may hold a password, so it is not repeated here.
        what = data if engine is None else "the engine"
        raise click.ClickException(f"{what}: {(error.strerror or str(error)).lower()}") from None


def _parse(options: dict[str, Any], out: Output) -> "ServerSettings":
    """Returns the settings of the server; invalid ones are a wrong usage."""
    from holdfast.errors import HoldfastError
    from holdfast.server.server import ServerSettings

    try:
        parsed = ServerSettings.parse(options)
        parsed.check(is_open=False)  # it is checked again once the store is open
    except HoldfastError as error:
        raise _in_one_line(error, out, exit_code=WRONG_USAGE) from None
    return parsed


def _in_one_line(error: "HoldfastError", out: Output, *, exit_code: int = 1) -> CommandFailure:
    """Returns the error as logs need it: with its hint on the same line, unless it is JSON."""
    message, hint = (error.message, error.hint) if out.is_json else (str(error), "")
    return CommandFailure(error.code, message, hint, is_json=out.is_json, exit_code=exit_code)


def _serve(
    place: Path | str,
    durability: str,
    out: Output,
    settings: "ServerSettings",
    ready: "Callable[[ReadinessReport], None]",
) -> None:
    """Serves the store in this process; `ready` is called when all ports are open."""
    import holdfast
    from holdfast.server.memory import prepare_process
    from holdfast.server.processes import ReadinessReport
    from holdfast.server.server import serve
    from holdfast.users import users_of

    with holdfast.open(place, durability=durability) as store:  # type: ignore[arg-type]  # one of the choices
        prepare_process()

        def announce(*addresses: "Address") -> None:
            ready(
                ReadinessReport(addresses=list(addresses), has_users=bool(users_of(store.engine)))
            )

        running = serve(
            store,
            settings,
            ready=announce,
            entries=_entries(settings, store),
            tracer=_tracer() if settings.trace else None,
        )
        _event_loops().run(running)


def _serve_in_processes(
    settings: "ServerSettings",
    out: Output,
    server: "Callable[[ServerSettings, Callable[[ReadinessReport], None]], None]",
) -> None:
    """Serves the store in several processes, on ports that are this program's from now on."""
    from holdfast.server.processes import ProcessGroup, ReservedPorts

    ports = ReservedPorts(*settings.addresses)
    try:
        found = settings.at(ports.addresses)
        ProcessGroup(settings.processes, partial(server, found)).run(partial(_announce, found, out))
    finally:
        ports.close()


def _event_loops() -> Any:
    """Returns the module uvloop."""
    try:
        import uvloop
    except ImportError as error:
        from holdfast.errors import MissingDriver

        raise MissingDriver.of_server(error) from error
    return uvloop


def _tracer() -> "ServerTracer":
    from holdfast.contrib.opentelemetry import ServerTracer

    return ServerTracer()


def _entries(settings: "ServerSettings", store: "Store") -> "list[SettingEntry]":
    """Returns the settings and where each came from, for `admin.server`."""
    from holdfast.admin import SettingEntry

    context = click.get_current_context()
    sources = {name: context.get_parameter_source(name) for name in context.params}
    origins = {name: _ORIGINS[source.name] for name, source in sources.items() if source}
    # A URL may hold a password, so an engine is only named.
    place = "engine" if context.params["engine"] else "data"
    values = {
        place: store.engine_name if place == "engine" else context.params["data"],
        "durability": context.params["durability"],
    }
    about_store = [
        SettingEntry(name=name, value=value, origin=origins.get(name, "default"))
        for name, value in values.items()
    ]
    return [*about_store, *settings.entries(origins)]


_ORIGINS: "dict[str, Origin]" = {
    "COMMANDLINE": "flag",
    "PROMPT": "flag",
    "ENVIRONMENT": "environment",
    "DEFAULT_MAP": "file",
    "DEFAULT": "default",
}


def _place(engine: str) -> Path | str:
    """Returns what to open; `lmdb://data` is a folder, like `--data data`."""
    return Path(engine.removeprefix("lmdb://")) if engine.startswith("lmdb://") else engine


def _announce(settings: "ServerSettings", out: Output, report: "ReadinessReport") -> None:
    """Prints the addresses of a server that is ready."""
    secure = settings.tls_cert is not None
    scheme = "https" if secure else "http"
    resp, http, *flux = report.addresses
    url = f"{scheme}://{http}"
    if out.is_json:
        out.result({"resp": str(resp), "http": url}, lambda: None)
    else:
        click.echo(f"Holdfast listens for Redis clients on {resp} and for HTTP on {url}")
        if not settings.no_ui:
            click.echo(f"The dashboard is at {scheme}://{http.from_here}/ui/")
        click.echo("Try:")
        for line in commands_to_try(resp, http, secure=secure, has_users=report.has_users):
            click.echo(f"  {line}")
    for address in flux:
        if out.is_json:
            out.result({"flux": f"{scheme}://{address}"}, lambda: None)
        else:
            click.echo(f"Flux clients connect to {scheme}://{address}")


def commands_to_try(
    resp: "Address", http: "Address", *, secure: bool, has_users: bool
) -> tuple[str, str, str]:
    """Returns commands that work on this machine, whatever address the server listens on."""
    url = f"{'https' if secure else 'http'}://{http.from_here}"
    curl = "curl -k" if secure else "curl"
    redis = "redis-cli --tls --insecure" if secure else "redis-cli"
    host = resp.from_here.host
    redis += "" if host == "127.0.0.1" else f" -h {host}"
    login = ' -H "Authorization: Bearer $TOKEN"' if has_users else ""
    secret = ' --pass "$TOKEN"' if has_users else ""
    return (
        f'{redis} -p {resp.port}{secret} JOBS.PUT \'{{"queue": "emails", "data": 1}}\'',
        f"{curl} {url}/default/jobs/queues -d '{{}}'{login}",
        f"{curl} {url}/openapi.json",
    )
