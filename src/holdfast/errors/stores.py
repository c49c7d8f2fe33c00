"""Errors of stores and their engines."""

from typing import Any

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class RemovalFailed(HoldfastError):
    """Something that has expired can't be removed; `__cause__` is the exception that says why.

    A store catches it by itself, puts `entry` off and goes on with the write that met it.
    """

    code = "removal_failed"

    def __init__(self, message: str, *, entry: Any) -> None:
        super().__init__(message)
        self.entry = entry  # an `expiry.Due`


class KeyTooLong(BadInput):
    """A key has more bytes than an engine can store."""

    code, status = "key_too_long", 413
    hint = "Use shorter names, or a digest of parts that need no order."


class ValueTooLarge(BadInput):
    """A value has more bytes than an engine can store."""

    code, status = "value_too_large", 413
    hint = "Split it over several keys, or keep it in a file and store its name."


class NotACounter(BadInput):
    """`add` was called on a value that is not a counter, or would exceed 64 bits."""

    code, status = "not_a_counter", 409
    hint = "Only `add` writes counters; use another key."


class UnsupportedPart(BadInput):
    """A key part has a type or a value that keys can't hold."""

    code = "unsupported_part"


class OutsideSpace(BadInput):
    """A transaction wrote to a key outside the space that it runs in."""

    code = "outside_space"
    hint = "A transaction stays within one space: open one for each space."


class ViewOnlyReads(BadInput):
    """A write was tried in a view, which can only read."""

    code = "view_only_reads"
    hint = "Use `store.transact(work)`, or `with store.transaction() as tx`, to write."


class UnknownSpace(NotFound):
    """No space of that name exists, or it has been dropped."""

    code = "unknown_space"
    hint = "Open it again with `store.space(name)`, which creates it."


class StoreUnusable(HoldfastError):
    """The store as a whole can't be used."""

    code, status = "store_unusable", 503


class StoreClosed(StoreUnusable):
    """The store was closed before this call."""

    code = "store_closed"
    hint = "Open it again with `holdfast.open`."


class StoreForked(StoreUnusable):
    """The store was opened before a fork and used after it, in the child."""

    code = "store_forked"
    hint = "Open the store in each process, after the fork."


class StoreFull(StoreUnusable):
    """No space is left on the disk or in the store's map; the transaction was not stored."""

    code, status = "store_full", 507
    hint = "Free some space and try again. Everything that was committed before is safe."


class StoreDamaged(StoreUnusable):
    """The files of the store contradict themselves."""

    code = "store_damaged"
    hint = "Restore the newest backup; keep the damaged folder for examination."


class LogDamaged(StoreDamaged):
    """The log of commits that are not yet in the data file is damaged or missing."""

    code = "log_damaged"
    hint = (
        "Restore the newest backup, or run `holdfast recover FOLDER --accept-loss`: it keeps the "
        "undamaged part, and reports what is lost."
    )


class StoreBusy(StoreUnusable):
    """Another process uses the store in a way that excludes this one."""

    code, status = "store_busy", 409


class CopyUnfinished(StoreUnusable):
    """The store is an unfinished copy of another one."""

    code, status = "copy_unfinished", 409
    hint = "Run the same `holdfast copy` again: it continues where it stopped."


class StoreUnreachable(StoreUnusable):
    """The database server of the engine could not be reached; nothing was written."""

    code = "store_unreachable"
    hint = "Check that it is running and that the URL is right; then try again."


class UnsupportedFormat(StoreUnusable):
    """The store was written by a newer version of Holdfast, or the folder is not a store."""

    code = "unsupported_format"
    hint = "Install a newer Holdfast, or name another folder."


class UnsupportedFileSystem(StoreUnusable):
    """The folder is on a file system where a store would not be safe."""

    code = "unsupported_file_system"
    hint = "Name a folder on a local disk: over a network, locks and memory maps can't be trusted."


class MissingDriver(HoldfastError):
    """A part of Holdfast needs a package that is not installed; the hint names its extra."""

    code = "missing_driver"

    @classmethod
    def of_server(cls, error: ImportError) -> "MissingDriver":
        """Returns the error for a package that the server needs and that can't be imported."""
        return cls(
            f"the server needs the package {error.name}, which is not installed",
            hint="Install it with: pip install 'holdfastdb[server]'.",
        )
