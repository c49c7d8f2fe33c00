"""The checkpoints of one process in interval mode; checkpoints.py says why they are safe."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import lmdb

from holdfast.engine import checkpoints
from holdfast.engine.folder import Folder, boot_id
from holdfast.engine.lmdb import failed_syncs
from holdfast.engine.lmdb.disk_reserve import Reserve
from holdfast.engine.lmdb.environment import explain
from holdfast.errors import HoldfastError, StoreClosed, StoreFull
from holdfast.limits import MIN_COPIED_PAGES


class Checkpointer:
    """Makes checkpoints, and keeps LMDB from reusing the pages of the last one."""

    def __init__(
        self,
        env: Any,
        path: Path,
        folder: Folder,
        data_file: int,
        *,
        flush: Callable[[], None],
        reserve: Reserve,
    ) -> None:
        self.pin: Any = None  # the read transaction at the last checkpoint
        self._env = env
        self._path = path
        self._folder = folder
        self._data_file = data_file
        self._reserve = reserve
        self._flush = flush  # writes unflushed commits into the file
        self._page_bytes = int(env.stat()["psize"])
        self._lock = threading.Lock()  # the folder's lock excludes processes, not threads
        self._last = -1  # the number of the last commit in the last checkpoint
        self._closed = False
        self._has_sync_failed = False
        self._copied = 0  # pages, since the last checkpoint
        self._stopped = threading.Event()
        self._early = (
            threading.Event()
        )  # set when a checkpoint is due early, or when it is time to stop
        self._thread: threading.Thread | None = None

    def make(self) -> None:
        """Makes a checkpoint, unless nothing has been committed since the last one."""
        with self._lock:
            if self._closed:
                raise StoreClosed(f"{self._path} is closed")
            self._make()

    def start(self, seconds: float) -> None:
        """Makes a checkpoint every `seconds`, if something was committed since."""
        self._thread = threading.Thread(
            target=self._run, args=(seconds,), name="holdfast-checkpoints", daemon=True
        )
        self._thread.start()

    def note_copied(self, pages: int, live: int) -> None:
        """Notes pages that a flush has copied; many of them trigger a checkpoint."""
        self._copied += pages
        if self._copied > max(live // 2, MIN_COPIED_PAGES):
            self._early.set()

    def stop(self) -> None:
        self._stopped.set()
        self._early.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Makes the last checkpoint. The file must be closed afterwards, whether it succeeds or
        not."""
        with self._lock:
            self._closed = True
            self._make()
            self.pin.abort()

    def _run(self, seconds: float) -> None:
        while True:
            self._early.wait(seconds)
            if self._stopped.is_set():
                return
            self._early.clear()
            self._copied = 0
            try:
                self.make()
            except HoldfastError:
                # The disk is full. The last checkpoint stays valid, and the next try may succeed;
                # writers get an error of their own.
                continue

    def _make(self) -> None:
        self._flush()
        if self._env.info()["last_txnid"] == self._last:
            return
        pin = self._save_with_reserve()
        if self.pin is not None:
            self.pin.abort()
        self.pin, self._last = pin, pin.id()

    def _save_with_reserve(self) -> Any:
        """Saves a checkpoint; on a full disk, with the help of the reserved blocks."""
        while True:
            try:
                with self._folder.checkpointing():
                    return self._save()
            except (lmdb.Error, OSError) as error:
                why = explain(error, self._path)
                if type(why) is not StoreFull or not self._reserve.release():
                    raise why from error

    def _save(self) -> Any:
        with self._folder.write_turn:
            writer = self._env.begin(write=True)  # no one writes, in any process
        try:
            pin = self._env.begin()
            meta_pages = checkpoints.read_meta_pages(self._data_file, self._page_bytes)
            if self._has_sync_failed or failed_syncs.has_failed(self._path):
                failed_syncs.write_again(self._data_file)
        finally:
            writer.abort()
        try:
            self._env.sync(True)
        except lmdb.Error as error:
            self._has_sync_failed = True  # the note for others may not fit on a full disk
            self._reserve.release()
            with suppress(OSError):
                failed_syncs.note(self._path)
            raise explain(error, self._path) from error
        self._has_sync_failed = False
        failed_syncs.forget(self._path)
        checkpoint = checkpoints.Checkpoint(
            boot_id=boot_id(), transaction_id=pin.id(), meta_pages=meta_pages
        )
        checkpoints.save(self._path, checkpoint)
        return pin
