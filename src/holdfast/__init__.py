"""Holdfast: one durable store, five data models, one transaction."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast import aio
    from holdfast.client import connect
    from holdfast.errors import HoldfastError
    from holdfast.store import Space, Store, Tx, View, open
    from holdfast.version import VERSION

    __version__ = VERSION

__all__ = ["HoldfastError", "Space", "Store", "Tx", "View", "__version__", "aio", "connect", "open"]

if not TYPE_CHECKING:  # where types are checked, a name that is not above is a mistake
    _HOMES = {"HoldfastError": "errors.HoldfastError", "connect": "client.connect"}
    _HOMES |= {"__version__": "version.VERSION"}
    _HOMES |= {name: f"store.{name}" for name in ("Space", "Store", "Tx", "View", "open")}

    def __dir__() -> list[str]:
        """Returns the public names, for `dir` and for completion in a REPL."""
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

    def __getattr__(name: str) -> Any:
        """Imports a public name when it is first used.

        The command line, whose `--help` needs none of them, starts in a tenth of the time.
        """
        import importlib

        if name in _HOMES:
            module, _, attribute = _HOMES[name].partition(".")
            home = importlib.import_module(f"holdfast.{module}")
            value = globals()[name] = getattr(home, attribute)
            return value
        try:
            return importlib.import_module(f"holdfast.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"holdfast.{name}":
                raise
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}") from None
