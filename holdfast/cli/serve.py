"""`holdfast serve`: the store as a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.output import Output, json_option
from holdfast.cli.settings import SETTINGS, settings

if TYPE_CHECKING:
    from holdfast.server.addresses import Address
    from holdfast.server.serving import Settings


@click.command("serve")
@settings("data", *(name for name, setting in SETTINGS.items() if setting.section == "serve"))
@json_option
def command(
    out: Output,
    data: str,
    engine: str | None,
    resp: str,
    http: str,
    durability: str,
    limits: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    backups: str | None,
    schemas: str | None,
    trusted_proxies: str | None,
    allowed_host: str | None,
    **options: Any,
) -> None:
    """Serve a store over RESP and HTTP.

    The folder is created if there is none. SIGTERM finishes what is in flight; SIGHUP reads the
    certificate and the users anew.

    Example: holdfast serve --data data --resp 127.0.0.1:9977
    """
    import uvloop

    import holdfast
    from holdfast.errors import HoldfastError
    from holdfast.server.addresses import Address
    from holdfast.server.bounds import Bounds
    from holdfast.server.logs import start_logging
    from holdfast.server.serving import Settings, serve

    start_logging()
    place = Path(data) if engine is None else _place(engine)
    try:
        chosen = Settings(
            resp=Address.parse(resp),
            http=Address.parse(http),
            bounds=Bounds.parse(limits),
            tls_cert=Path(tls_cert) if tls_cert else None,
            tls_key=Path(tls_key) if tls_key else None,
            backups=Path(backups) if backups else None,
            schemas=Path(schemas) if schemas else None,
            trusted_proxies=_words(trusted_proxies),
            allowed_hosts=_words(allowed_host),
            **options,
        )
        with holdfast.open(place, durability=durability) as store:  # type: ignore[arg-type]  # one of the choices
            uvloop.run(serve(store, chosen, ready=_announce(chosen, out)))
    except HoldfastError as error:
        if out.is_json:
            raise
        raise click.ClickException(str(error)) from None
    except OSError as error:
        # A URL may hold a password, so it is not repeated here.
        what = data if engine is None else "the engine"
        raise click.ClickException(f"{what}: {(error.strerror or str(error)).lower()}") from None


def _words(given: str | None) -> tuple[str, ...]:
    """What stands between commas or blanks."""
    return tuple((given or "").replace(",", " ").split())


def _place(engine: str) -> Path | str:
    """What a URL names; `lmdb://data` is a folder as `--data data` is."""
    return Path(engine.removeprefix("lmdb://")) if engine.startswith("lmdb://") else engine


def _announce(settings: "Settings", out: Output) -> Any:
    secure = settings.tls_cert is not None
    scheme, curl, redis = ("https", "curl -k", "redis-cli --tls") if secure else (
        "http", "curl", "redis-cli"
    )  # fmt: skip

    def announce(resp: "Address", http: "Address") -> None:
        url = f"{scheme}://{http}"
        if out.is_json:
            out.result({"resp": str(resp), "http": url}, lambda: None)
            return
        click.echo(f"Holdfast listens for Redis clients on {resp} and for HTTP on {url}")
        click.echo("Try:")
        click.echo(f'  {redis} -p {resp.port} JOBS.PUT \'{{"queue": "emails", "data": 1}}\'')
        click.echo(f"  {curl} {url}/default/jobs/queues -d '{{}}'")
        click.echo(f"  {curl} {url}/openapi.json")

    return announce
