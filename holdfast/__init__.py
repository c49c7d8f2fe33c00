"""Holdfast: one durable store, five data models, one transaction."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast import aio
    from holdfast.client import connect
    from holdfast.errors import HoldfastError
    from holdfast.store import Space, Store, Tx, View, open

__all__ = ["HoldfastError", "Space", "Store", "Tx", "View", "aio", "connect", "open"]

if not TYPE_CHECKING:  # where types are checked, a name that is not above is a mistake
    _HOMES = {"HoldfastError": "errors", "connect": "client"}
    _HOMES |= dict.fromkeys(("Space", "Store", "Tx", "View", "open"), "store")

    def __getattr__(name: str) -> Any:
        """Public names come from their homes when they are first asked for: the command line,
        whose `--help` needs none of them, starts in a tenth of the time."""
        import importlib

        if name in _HOMES:
            home = importlib.import_module(f"holdfast.{_HOMES[name]}")
            value = globals()[name] = getattr(home, name)
            return value
        try:
            return importlib.import_module(f"holdfast.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"holdfast.{name}":
                raise
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}") from None
