"""The two durability modes of a commit."""

from typing import Final

from holdfast.errors import BadInput

DURABILITIES: Final = ("commit", "interval")


def check_durability(durability: str) -> None:
    """Raises `BadInput` for an unknown durability."""
    if durability not in DURABILITIES:
        raise BadInput(
            f"unknown durability {durability!r}",
            hint="Use 'commit' (wait for the disk) or 'interval' (sync within a second).",
        )
