"""The windows of the package `limits`, for its storage `holdfast.limits_storage`.

A fixed window begins with its first hit and ends as a whole. A moving window is our `log`. A
sliding window adds the share of the previous window that is still inside, and is rounded down.
"""

import math
from typing import Final

import msgspec

from holdfast import expiry
from holdfast.binding import Runner
from holdfast.engine.contract import Reader, Transaction
from holdfast.expiry import Remover
from holdfast.keys import pack_int, prefix_range
from holdfast.limits import CLOCK_AHEAD_SECONDS
from holdfast.metrics import counters, registry
from holdfast.metrics.entity import LocalEntityKey, suffix_of
from holdfast.metrics.layout import BUCKETS, FIXED_WINDOWS, LOGS, Keys, keys_of
from holdfast.metrics.log_window import LogWindow
from holdfast.metrics.records import StoredSpec
from holdfast.metrics.specs import normalize_metric

FIXED: Final = "metrics.fixed"

_PREFIX: Final = ("limits",)
_NAMESPACE: Final = "local"
_MOVING: Final = "moving"


class FixedWindow(msgspec.Struct, frozen=True, array_like=True):
    """A count, when it ends, and how long it is."""

    count: int
    ends: float
    window: float = 0.0  # 0: an older Holdfast wrote it


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(FixedWindow).decode


class LimitsPackageWindows:
    """The windows of the package `limits`, each call one transaction."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    # --- fixed windows ------------------------------------------------------------------------

    def hit(self, name: str, window: float, amount: int) -> int:
        """Counts in the current window, or begins one. Reads 1 key, writes 1 or 2."""
        return self._runner.transact(lambda tx: _hit(tx, name, window, amount).count)

    def fixed_window(self, name: str) -> FixedWindow:
        """Returns the current window, or an empty one that ends now. Reads 1 key."""
        with self._runner.view() as view:
            return _fixed(view, name) or FixedWindow(0, view.now)

    # --- moving windows -----------------------------------------------------------------------

    def acquire_moving(self, name: str, limit: int, window: float, amount: int) -> bool:
        """Counts in a moving window if the limit allows. Reads its entries, writes 1 key."""

        def work(tx: Transaction) -> bool:
            log = _log(tx, name, limit, window)
            allowed = log.admits(amount)
            if allowed:
                log.charge(tx, amount)
            return allowed

        return self._runner.transact(work)

    def moving_window(self, name: str, limit: int, window: float) -> tuple[float, int]:
        """Returns the time of the oldest entry, or now, and the number of entries."""
        with self._runner.view() as view:
            log = _log(view, name, limit, window)
            oldest = log.oldest()
            return (view.now if oldest is None else oldest), log.prev_total

    # --- sliding windows ----------------------------------------------------------------------

    def acquire_sliding(self, name: str, limit: int, window: int, amount: int) -> bool:
        """Counts in a sliding window if the limit allows. Reads 3 keys, writes 1."""

        def work(tx: Transaction) -> bool:
            before, left, current, _ = _sliding(tx, name, window)
            if math.floor(before * left / window + current) + amount > limit:
                return False
            keys = keys_of(tx.space, _PREFIX)
            metric = normalize_metric(str(window), _sliding_spec(window))
            registry.store_spec(tx, keys, str(window), metric, None)
            counter = counters.Counter(keys, str(window), StoredSpec(metric=metric))
            counter.add(tx, _suffix(name), amount, tx.now)
            return True

        return self._runner.transact(work)

    def sliding_window(self, name: str, window: int) -> tuple[int, float, int, float]:
        """Returns count and remaining seconds of the window before and of the current one."""
        with self._runner.view() as view:
            return _sliding(view, name, window)

    # --- deleting -----------------------------------------------------------------------------

    def clear(self, name: str) -> None:
        """Deletes the fixed and the moving window of a name."""

        def work(tx: Transaction) -> None:
            keys = keys_of(tx.space, _PREFIX)
            tx.delete(keys.fixed_window(name))
            tx.clear(*prefix_range(keys.entity_key(LOGS, _MOVING, _suffix(name))))

        self._runner.transact(work)

    def clear_sliding(self, name: str, window: int) -> None:
        def work(tx: Transaction) -> None:
            keys = keys_of(tx.space, _PREFIX)
            stem = keys.sequence(str(window), "")
            current = int(tx.now / window)
            for bucket in (current - 1, current):
                tx.delete(stem + pack_int(bucket) + _suffix(name))

        self._runner.transact(work)

    def reset(self) -> int:
        """Deletes everything and returns the number of keys."""

        def work(tx: Transaction) -> int:
            keys = keys_of(tx.space, _PREFIX)
            ranges = [
                prefix_range(keys.family(family)) for family in (BUCKETS, LOGS, FIXED_WINDOWS)
            ]
            count = sum(1 for found in ranges for _ in tx.scan(*found))
            for found in ranges:
                tx.clear(*found)
            return count

        return self._runner.transact(work)


def _hit(tx: Transaction, name: str, window: float, amount: int) -> FixedWindow:
    key = keys_of(tx.space, _PREFIX).fixed_window(name)
    found = _fixed(tx, name, window)
    if found is None:
        found = FixedWindow(0, tx.now + window, window)
        expiry.schedule(tx, found.ends + 0.001, FIXED, key[len(tx.space) :])
    found = FixedWindow(found.count + amount, found.ends, window)
    tx.put(key, _encode(found))
    return found


def _fixed(reader: Reader, name: str, window: float = 0.0) -> FixedWindow | None:
    """Returns the current window.

    A window that ends later than one window from now is ignored: it was begun while the clock was
    ahead.
    """
    value = reader.get(keys_of(reader.space, _PREFIX).fixed_window(name))
    if value is None:
        return None
    found = _decode(value)
    longest = max(window, found.window) or math.inf
    return found if reader.now < found.ends <= reader.now + longest + CLOCK_AHEAD_SECONDS else None


def _log(reader: Reader, name: str, limit: int, window: float) -> LogWindow:
    keys = keys_of(reader.space, _PREFIX)
    stem = keys.entity_key(LOGS, _MOVING, _suffix(name))
    return LogWindow(reader, stem, limit, window, reader.now)


def _sliding(reader: Reader, name: str, window: int) -> tuple[int, float, int, float]:
    keys: Keys = keys_of(reader.space, _PREFIX)
    bucket, passed = divmod(reader.now, window)
    last = int(bucket)
    stem = keys.sequence(str(window), "")
    counts = counters.read_counts(reader, stem, _suffix(name), max(last - 1, 0), last)
    before, left = counts.get(last - 1, 0), window - passed
    return before, left if before else 0.0, counts.get(last, 0), left + window


def _sliding_spec(window: int) -> dict[str, object]:
    return {"sequences": [{"timeStep": window, "expiry": window}]}


def _suffix(name: str) -> bytes:
    return suffix_of(LocalEntityKey([name]), _NAMESPACE)


def remove_window(tx: Transaction, subject: bytes) -> bool:
    """Deletes a fixed window that has ended; one that has begun since has its own entry."""
    value = tx.get(tx.space + subject)
    if value is not None and _decode(value).ends <= tx.now:
        tx.delete(tx.space + subject)
    return True


REMOVERS: Final[dict[str, Remover]] = {FIXED: remove_window}
