"""Files that commands read and write, where - is standard input or output."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click


def title_of(file: str) -> str:
    """Returns the name of a file in messages."""
    return "<stdin>" if file == "-" else file


def read_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None


def write_text(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None


@contextmanager
def reading(file: str) -> Iterator[IO[bytes]]:
    """Opens a file to be read piece by piece."""
    if file == "-":
        yield sys.stdin.buffer
        return
    if not os.path.isfile(file):  # which takes any text; a Path raises if the name is too long
        if file.lstrip()[:1] in ("{", "["):
            from holdfast.error_text import shown

            raise click.ClickException(
                f"{shown(file)} is not a file. To give JSON itself, send it on standard input."
            )
        raise click.ClickException(f"{file}: there is no such file")
    with Path(file).open("rb") as opened:
        yield opened


def size_of(file: IO[bytes]) -> int | None:
    """Returns how many bytes a file has; None for a pipe or a terminal."""
    try:
        status = os.fstat(file.fileno())
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@contextmanager
def writing(file: str | None) -> Iterator[IO[bytes]]:
    """Opens a file to be written; it gets its name when it is complete."""
    if file is None or file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with _unfinished(Path(file)) as opened:
            yield opened
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None


@contextmanager
def _unfinished(file: Path) -> Iterator[IO[bytes]]:
    target = file.resolve()  # a link is kept, and its target is written
    if target.exists() and not target.is_file():
        # A device or a pipe is written directly: replacing it would remove it, and root may do
        # that to /dev/null.
        with target.open("wb") as opened:
            yield opened
        return
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        with unfinished.open("wb") as opened:
            yield opened
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
