"""`holdfast call`: calls any operation by its name, with its arguments as JSON."""

import sys
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.location import Location, location_options
from holdfast.cli.output import Output

if TYPE_CHECKING:
    from holdfast.operations import Operation


def _complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from holdfast.operations import OPERATIONS

    return [
        CompletionItem(name, help=operation.summary)
        for name, operation in OPERATIONS.items()
        if name.startswith(incomplete)
    ]


@click.command("call")
@click.argument("operation", required=False, shell_complete=_complete)
@click.argument("arguments", default="{}")
@location_options
def command(location: Location, out: Output, operation: str | None, arguments: str) -> None:
    """Call OPERATION with ARGUMENTS, a JSON object, and print its result as JSON.

    If ARGUMENTS is `-`, they are read from standard input. Without OPERATION, all are listed.

    Example: holdfast call jobs.pause '{"queue": "emails"}'
    """
    if operation is None:
        _list(out)
        return
    from holdfast.operations import find
    from holdfast.server import payloads

    layer, _, name = operation.partition(".")
    called = find(layer, name)
    text = sys.stdin.read() if arguments == "-" else arguments
    given = payloads.read_arguments(called, text.encode(), is_json=True)
    with location.open(creates=not called.only_reads) as opened:
        result = called.call(getattr(opened.space, called.layer), given)
        written = payloads.as_encodable(called, result, is_json=True)
    out.json(written)


def _list(out: Output) -> None:
    from holdfast.operations import OPERATIONS

    rows = [(name, operation.summary) for name, operation in OPERATIONS.items()]
    names = [_described(operation) for operation in OPERATIONS.values()]
    out.result({"operations": names}, lambda: out.table(("operation", "what it does"), rows))


def _described(operation: "Operation") -> dict[str, Any]:
    return {
        "name": operation.full_name,
        "kind": operation.kind,
        "role": operation.declaration.role,
        "scope": operation.declaration.scope,
        "arguments": list(operation.arguments.__struct_encode_fields__),
        "summary": operation.summary,
    }
