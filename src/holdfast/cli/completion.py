"""`holdfast completion`: the script that lets a shell complete commands and options."""

import click

from holdfast.cli.output import Output, json_option

_HOW = {
    "bash": 'eval "$(holdfast completion bash)"',
    "zsh": 'eval "$(holdfast completion zsh)"',
    "fish": "holdfast completion fish | source",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(_HOW)))
@json_option
def command(out: Output, shell: str) -> None:
    """Print the completion script for a shell; append it to the shell's start-up file.

    Example: holdfast completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from holdfast.cli import main

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(main, {}, "holdfast", "_HOLDFAST_COMPLETE").source()
    out.result({"shell": shell, "script": script}, lambda: out.say(script))
