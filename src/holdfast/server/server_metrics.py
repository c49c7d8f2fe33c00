"""The server's own metrics for Prometheus: what each counts, and whether it only grows."""

from collections.abc import Mapping
from typing import Final

from holdfast.metrics.prometheus import Family, Sample

# Of the store and this process, in display order. Names of those that only grow end in `_total`
# on the page, as Prometheus expects.
_COUNTERS: Final = {
    "commits": "Commits to the store, of all processes.",
    "groups": "Groups of transactions that this server has committed together.",
    "transactions": "Transactions in these groups.",
    "conflicts": "Transactions that were run again because another one came first.",
    "round_trips": "Questions to the database below the store.",
}
_GAUGES: Final = {
    "keys": "Keys in the store, an estimate on some engines.",
    "file_bytes": "Bytes that the store takes on disk.",
    "memory_bytes": "Bytes that the servers of the store take in memory.",
    "readers": "Slots of readers in use, of all processes on the folder.",
    "servers": "Servers that hold the store.",
    "spaces": "Spaces in the store.",
    "durable": "1 if a commit is on disk when it is answered, else 0.",
    "engine_up": "1 if the engine below the store answers, else 0; then its figures are missing.",
    "connections": "Connections to this server, over RESP and HTTP.",
    "queued_writes": "Writes that wait for their group.",
    "long_operations": "Operations of several steps that run or wait for a thread.",
    "waits": "Calls that wait for something to happen, such as jobs.pop_wait.",
    "open_spaces": "Spaces that this server has opened.",
    "request_bytes": "Bytes of large requests and open batches that this server holds.",
    "unsent_bytes": "Bytes of answers and messages to clients that are behind with reading.",
}


def families(figures: Mapping[str, int]) -> list[Family]:
    """Returns each figure as a metric family of one series."""
    return [_family(name, number) for name, number in figures.items()]


def _family(name: str, number: int) -> Family:
    if name in _COUNTERS:
        return Family(
            f"holdfast_{name}", "counter", _COUNTERS[name], [[Sample("_total", (), number)]]
        )
    help_text = _GAUGES.get(name, f"What the engine calls {name}.")
    return Family(f"holdfast_{name}", "gauge", help_text, [[Sample("", (), number)]])
