"""Errors of stores and their engines."""

from typing import Any

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class RemovalFailed(HoldfastError):
    """Something that has expired can't be removed; the exception of its remover is the cause.

    A store catches it by itself, lets `entry` wait and goes on with the write that met it.
    """

    code = "removal_failed"

    def __init__(self, message: str, *, entry: Any) -> None:
        super().__init__(message)
        self.entry = entry  # an `expiry.Due`


class KeyTooLong(BadInput):
    """A key is longer than any engine holds."""

    code, status = "key_too_long", 413
    hint = "Use shorter names, or store a digest of what needs no order."


class ValueTooLarge(BadInput):
    """A value is larger than any engine holds."""

    code, status = "value_too_large", 413
    hint = "Split it over several keys, or keep it in a file and store its name."


class NotACounter(BadInput):
    """`add` met a value that is not a counter, or would leave the 64-bit range."""

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
    """Something tried to write in a view."""

    code = "view_only_reads"
    hint = "Use `store.transact(work)`, or `with store.transaction() as tx`, to write."


class UnknownSpace(NotFound):
    """No space of that name exists, or it has been dropped."""

    code = "unknown_space"
    hint = "Open it again with `store.space(name)`, which creates it."


class StoreUnusable(HoldfastError):
    """The store as a whole can't serve."""

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
    """There is no space left on the disk or in the map; nothing of the transaction was kept."""

    code, status = "store_full", 507
    hint = "Free some space and try again; what was acknowledged before is safe."


class StoreDamaged(StoreUnusable):
    """The files of the store contradict themselves."""

    code = "store_damaged"
    hint = "Restore the newest backup; keep the damaged folder for examination."


class LogDamaged(StoreDamaged):
    """The log of commits that the store's file has not yet got is damaged or missing."""

    code = "log_damaged"
    hint = (
        "Restore the newest backup, or run `holdfast recover FOLDER --accept-loss`: it keeps what "
        "is whole, and says what is lost."
    )


class StoreBusy(StoreUnusable):
    """Another process uses the store in a way that excludes this one."""

    code, status = "store_busy", 409


class CopyUnfinished(StoreUnusable):
    """The store is half a copy of another one."""

    code, status = "copy_unfinished", 409
    hint = "Run the same `holdfast copy` again: it continues where it stopped."


class StoreUnreachable(StoreUnusable):
    """The server of the engine could not be reached; nothing was written."""

    code = "store_unreachable"
    hint = "Check that it is running and that the URL is right; then try again."


class UnsupportedFormat(StoreUnusable):
    """The store was written by a newer Holdfast, or the folder holds something else."""

    code = "unsupported_format"
    hint = "Install a newer Holdfast, or name another folder."


class UnsupportedFileSystem(StoreUnusable):
    """The folder is on a file system that can't keep the store's promises."""

    code = "unsupported_file_system"
    hint = "Name a folder on a local disk: over a network, locks and memory maps can't be trusted."


class MissingDriver(HoldfastError):
    """A part of Holdfast needs a package that is not installed; the hint names its extra."""

    code = "missing_driver"

    @classmethod
    def of_server(cls, error: ImportError) -> "MissingDriver":
        """Returns the error for a package of the server's that could not be imported."""
        return cls(
            f"the server needs the package {error.name}, which is not installed",
            hint="Install it with: pip install 'holdfastdb[server]'.",
        )
