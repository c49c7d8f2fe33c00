"""`store.aio`: a store of this process for programs that `await`."""

from holdfast.async_store.space import AsyncStore, AsyncStoreSpace

__all__ = ["AsyncStore", "AsyncStoreSpace"]
