"""`holdfast serve`: the store as a server."""

from pathlib import Path
from typing import Any

import click
import uvloop

import holdfast
from holdfast.errors import HoldfastError
from holdfast.server.addresses import Address
from holdfast.server.bounds import Bounds
from holdfast.server.logs import start_logging
from holdfast.server.serving import Settings, serve


@click.command("serve")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default="data",
    show_default=True,
    help="The folder of the store; it is created if needed.",
)
@click.option("--engine", metavar="URL", help="The store at a URL, instead of --data.")
@click.option(
    "--resp",
    default="127.0.0.1:9977",
    show_default=True,
    metavar="HOST:PORT",
    help="Where Redis clients connect.",
)
@click.option(
    "--http",
    default="127.0.0.1:9966",
    show_default=True,
    metavar="HOST:PORT",
    help="Where HTTP clients connect.",
)
@click.option(
    "--durability",
    type=click.Choice(["commit", "interval"]),
    default="commit",
    show_default=True,
    help="Wait for the disk at every commit, or every second.",
)
@click.option("--tls-cert", type=click.Path(path_type=Path), help="A PEM certificate, both doors.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its key, without a passphrase.")
@click.option("--insecure", is_flag=True, help="Let everyone in, from other machines too.")
@click.option("--allow-flush", is_flag=True, help="Let FLUSHDB erase the jobs of a database.")
@click.option("--pixel", is_flag=True, help="Serve /{space}/events/pixel.gif.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help=f"A bound of Redis clients: {', '.join(Bounds.__struct_fields__)}.",
)
def serve_command(
    data: Path,
    engine: str | None,
    resp: str,
    http: str,
    durability: str,
    limits: tuple[str, ...],
    **options: Any,
) -> None:
    """Serve a store over RESP and HTTP.

    SIGTERM finishes what is in flight; SIGHUP reads the certificate and the users anew.

    Example: holdfast serve --data data --resp 127.0.0.1:9977
    """
    start_logging()
    place = data if engine is None else _place(engine)
    try:
        settings = Settings(
            resp=Address.parse(resp),
            http=Address.parse(http),
            bounds=Bounds.parse(limits),
            **options,
        )
        with holdfast.open(place, durability=durability) as store:  # type: ignore[arg-type]  # one of the choices
            uvloop.run(serve(store, settings, ready=_announce(settings)))
    except HoldfastError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        # A URL may hold a password, so it is not repeated here.
        what = data if engine is None else "the engine"
        raise click.ClickException(f"{what}: {(error.strerror or str(error)).lower()}") from None


def _place(engine: str) -> Path | str:
    """What a URL names; `lmdb://data` is a folder as `--data data` is."""
    return Path(engine.removeprefix("lmdb://")) if engine.startswith("lmdb://") else engine


def _announce(settings: Settings) -> Any:
    secure = settings.tls_cert is not None
    scheme, curl, redis = ("https", "curl -k", "redis-cli --tls") if secure else (
        "http", "curl", "redis-cli"
    )  # fmt: skip

    def announce(resp: Address, http: Address) -> None:
        url = f"{scheme}://{http}"
        click.echo(f"Holdfast listens for Redis clients on {resp} and for HTTP on {url}")
        click.echo("Try:")
        click.echo(f'  {redis} -p {resp.port} JOBS.PUT \'{{"queue": "emails", "data": 1}}\'')
        click.echo(f"  {curl} {url}/default/jobs/queues -d '{{}}'")
        click.echo(f"  {curl} {url}/openapi.json")

    return announce
