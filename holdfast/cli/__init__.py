"""The command `holdfast`: one file for each of its commands."""

import click

from holdfast.cli.events import events
from holdfast.cli.gen import gen
from holdfast.cli.serve import serve_command
from holdfast.cli.user import user
from holdfast.version import VERSION


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION)
def main() -> None:
    """One durable store, five data models, one transaction."""


main.add_command(events)
main.add_command(gen)
main.add_command(serve_command)
main.add_command(user)
