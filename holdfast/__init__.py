"""Holdfast: one durable store, five data models, one transaction."""

from holdfast import aio
from holdfast.client import connect
from holdfast.errors import HoldfastError
from holdfast.store import Space, Store, Tx, View, open

__all__ = ["HoldfastError", "Space", "Store", "Tx", "View", "aio", "connect", "open"]
