"""Checks a history of list-append transactions for serializability, as Adya and Elle define it.

Each transaction appends values to lists and reads lists. Every value is appended once in all of the
history, so a list that was read tells who wrote what before whom: from that follow the edges
between transactions, and a cycle of edges is an anomaly.

    ww   one appended to a list right behind another
    wr   one read what another has appended
    rw   one read a list to which another appended next
    order one was acknowledged before another began, or a session made one before another

    G0        a cycle of ww alone: writes of two transactions are interleaved
    G1a       a value of a transaction that was reported as failed was read
    G1b       a list was read between two appends of one transaction
    G1c       a cycle of ww and wr: two transactions saw each other
    G-single  a cycle with exactly one rw, such as a lost update or a skewed read
    G2        a cycle with several rw, such as write skew

Beside these: values that are lost, doubled or invented, lists whose reads contradict each other,
transactions that do not see their own appends, and sessions that do not see what they have written
or go back in time. With the edges of order the history must be strictly serializable: such cycles
are named `G1c in real time` and the like.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

Key: TypeAlias = str
Kind: TypeAlias = Literal["ww", "wr", "rw", "order"]
Edges: TypeAlias = dict[int, dict[int, set[Kind]]]


class Append(NamedTuple):
    key: Key
    value: int


class Read(NamedTuple):
    key: Key
    found: tuple[int, ...]


class Transaction(NamedTuple):
    """One transaction of a session, as its client saw it."""

    session: int
    begun: float
    ended: float
    outcome: Literal["done", "failed", "unknown"]  # failed: the store says that it was not done
    steps: tuple[Append | Read, ...]


class Anomaly(NamedTuple):
    kind: str
    text: str


def check(history: list[Transaction], final: dict[Key, tuple[int, ...]]) -> list[Anomaly]:
    """Returns contradictions to serializability; `final` is the content of all lists at the end."""
    return _Check(history, final).run()


class _Check:
    def __init__(self, history: list[Transaction], final: dict[Key, tuple[int, ...]]) -> None:
        self._history = history
        self._final = final
        self._found: list[Anomaly] = []
        self._writer: dict[int, int] = {}  # value -> number of its transaction
        self._last_appends: set[int] = set()  # values that are their transaction's last of a list
        for number, transaction in enumerate(history):
            last: dict[Key, int] = {}
            for step in transaction.steps:
                if isinstance(step, Append):
                    self._writer[step.value] = number
                    last[step.key] = step.value
            self._last_appends.update(last.values())

    def run(self) -> list[Anomaly]:
        reads = list(self._external_reads())
        orders = self._orders(reads)
        self._look_for_losses(orders)
        self._look_at_sessions(orders)
        edges = self._edges(reads, orders)
        if cycles := list(_cycles(edges)):
            self._found += [Anomaly(kind, self._tell(cycle)) for kind, cycle in cycles]
        else:
            self._add_order(edges)
            self._found += [
                Anomaly(f"{kind} in real time", self._tell(cycle)) for kind, cycle in _cycles(edges)
            ]
        return self._found

    def _say(self, kind: str, text: str) -> None:
        self._found.append(Anomaly(kind, text))

    def _tell(self, cycle: list[int]) -> str:
        return " -> ".join(str(self._history[number]) for number in [*cycle, cycle[0]])

    # --- single reads ----------------------------------------------------------------------------

    def _external_reads(self) -> Iterator[tuple[int, Key, tuple[int, ...]]]:
        """Returns what each transaction read of others; its own appends are taken off."""
        for number, transaction in enumerate(self._history):
            if transaction.outcome != "done":
                continue
            own: dict[Key, list[int]] = defaultdict(list)
            known: dict[Key, tuple[int, ...]] = {}
            for step in transaction.steps:
                if isinstance(step, Append):
                    own[step.key].append(step.value)
                    continue
                mine = tuple(own[step.key])
                others = step.found[: len(step.found) - len(mine)]
                if step.found[len(others) :] != mine or known.get(step.key, others) != others:
                    self._say("internal", f"{transaction} does not see its own steps")
                    continue
                known[step.key] = others
            for key, found in known.items():
                self._look_at_read(transaction, key, found)
                yield number, key, found

    def _look_at_read(self, transaction: Transaction, key: Key, found: tuple[int, ...]) -> None:
        if len(set(found)) < len(found):
            self._say("doubled", f"{transaction} read {key} with a value twice: {found}")
        for value in found:
            writer = self._writer.get(value)
            if writer is None:
                self._say("invented", f"{transaction} read {value}, which nobody appended")
            elif self._history[writer].outcome == "failed":
                self._say(
                    "G1a", f"{transaction} read {value} of the failed {self._history[writer]}"
                )
        if found and found[-1] in self._writer and found[-1] not in self._last_appends:
            writer = self._writer[found[-1]]
            self._say("G1b", f"{transaction} read {key} in the middle of {self._history[writer]}")

    # --- lists -----------------------------------------------------------------------------------

    def _orders(
        self, reads: Iterable[tuple[int, Key, tuple[int, ...]]]
    ) -> dict[Key, tuple[int, ...]]:
        """The order of appends of each list: its longest read, of which all others are a begin."""
        orders = dict(self._final)
        found = [(key, each) for _, key, each in reads]
        for key, each in found:
            if len(each) >= len(orders.get(key, ())):
                orders[key] = each
        for key, each in found:
            if orders[key][: len(each)] != each:
                self._say("incompatible order", f"{key} was read as {each} and as {orders[key]}")
        for key, order in orders.items():
            if len(set(order)) < len(order):
                self._say("doubled", f"{key} has a value twice: {order}")
        return orders

    def _look_for_losses(self, orders: dict[Key, tuple[int, ...]]) -> None:
        there = {value for order in orders.values() for value in order}
        kept = {value for order in self._final.values() for value in order}
        for transaction in self._history:
            values = [step.value for step in transaction.steps if isinstance(step, Append)]
            if transaction.outcome == "done" and not kept.issuperset(values):
                self._say("lost", f"an append of {transaction} is gone")
            elif transaction.outcome == "failed" and kept.intersection(values):
                self._say("G1a", f"{transaction} is there, though it was reported as failed")
            elif not there.isdisjoint(values) and not there.issuperset(values):
                self._say("half done", f"a part of {transaction} is there")

    # --- sessions --------------------------------------------------------------------------------

    def _look_at_sessions(self, orders: dict[Key, tuple[int, ...]]) -> None:
        seen: dict[tuple[int, Key], tuple[int, ...]] = defaultdict(tuple)
        written: dict[tuple[int, Key], list[int]] = defaultdict(list)
        for transaction in sorted(self._history, key=lambda each: each.begun):
            if transaction.outcome != "done":
                continue
            appended: list[Append] = []
            for step in transaction.steps:
                place = transaction.session, step.key
                if isinstance(step, Append):
                    appended.append(step)
                    continue
                if not set(written[place]) <= set(step.found):
                    self._say("read your writes", f"{transaction} misses what its session wrote")
                if step.found[: len(seen[place])] != seen[place]:
                    self._say("monotonic reads", f"{transaction} goes back behind {seen[place]}")
                seen[place] = max(seen[place], step.found, key=len)
            for step in appended:
                written[transaction.session, step.key].append(step.value)
        for (session, key), values in written.items():
            places = {value: place for place, value in enumerate(orders.get(key, ()))}
            order = [places[value] for value in values if value in places]
            if order != sorted(order):
                self._say("monotonic writes", f"session {session} appended {values} to {key}")

    # --- edges -----------------------------------------------------------------------------------

    def _edges(
        self,
        reads: Iterable[tuple[int, Key, tuple[int, ...]]],
        orders: dict[Key, tuple[int, ...]],
    ) -> Edges:
        edges: Edges = defaultdict(lambda: defaultdict(set))

        def add(before: int | None, behind: int | None, kind: Kind) -> None:
            if before is not None and behind is not None and before != behind:
                edges[before][behind].add(kind)

        for order in orders.values():
            for first, second in pairwise(order):
                add(self._writer.get(first), self._writer.get(second), "ww")
        for number, key, found in reads:
            order = orders.get(key, ())
            if found:
                add(self._writer.get(found[-1]), number, "wr")
            # Its own append may come next in the list; then ww tells the rest.
            if len(found) < len(order):
                add(number, self._writer.get(order[len(found)]), "rw")
        return edges

    def _add_order(self, edges: Edges) -> None:
        """Adds an edge from each transaction to those that began after it was acknowledged, apart
        from what follows from other such edges."""
        done = [
            (transaction.ended, transaction.begun, number)
            for number, transaction in enumerate(self._history)
            if transaction.outcome == "done"
        ]
        by_end = sorted(done)
        frontier: list[tuple[float, float, int]] = []  # ended; none began after another's end
        next_ended = 0
        for _, begun, number in sorted(done, key=lambda each: each[1]):
            while next_ended < len(by_end) and by_end[next_ended][0] < begun:
                newest = by_end[next_ended]
                frontier = [each for each in frontier if each[0] >= newest[1]] + [newest]
                next_ended += 1
            for _, _, before in frontier:
                edges[before][number].add("order")


# --- cycles ---------------------------------------------------------------------------------------


def _cycles(edges: Edges) -> Iterator[tuple[str, list[int]]]:
    """One cycle of each kind in each knot of the graph, the worst kind first."""
    for knot in _knots(edges):
        for name, kinds in (("G0", {"ww", "order"}), ("G1c", {"ww", "wr", "order"})):
            if cycle := _any_cycle(edges, knot, kinds):
                yield name, cycle
                break
        else:
            yield _cycle_of_reads(edges, knot)


def _cycle_of_reads(edges: Edges, knot: set[int]) -> tuple[str, list[int]]:
    """A cycle with one rw, or if there is no such cycle, one with several."""
    several: list[int] = []
    for before in knot:
        for behind, kinds in edges[before].items():
            if behind in knot and "rw" in kinds:
                if path := _path(edges, knot, behind, before, {"ww", "wr", "order"}):
                    return "G-single", path
                several = several or _path(edges, knot, behind, before, {"ww", "wr", "rw", "order"})
    return "G2", several


def _any_cycle(edges: Edges, knot: set[int], kinds: set[str]) -> list[int]:
    for start in knot:
        for behind, found in edges[start].items():
            if behind not in knot or not found & kinds:
                continue
            if path := _path(edges, knot, behind, start, kinds):
                return path
    return []


def _path(edges: Edges, knot: set[int], begin: int, end: int, kinds: set[str]) -> list[int]:
    """A shortest path within the knot, both ends included."""
    before: dict[int, int] = {begin: begin}
    queue = [begin]
    for at in queue:
        if at == end:
            path = [end]
            while path[-1] != begin:
                path.append(before[path[-1]])
            return path[::-1]
        for behind, found in edges[at].items():
            if behind in knot and behind not in before and found & kinds:
                before[behind] = at
                queue.append(behind)
    return []


def _knots(edges: Edges) -> Iterator[set[int]]:
    """The strongly connected components of more than one transaction, by Kosaraju."""
    finished: list[int] = []  # each behind all that can be reached from it, but for cycles
    seen: set[int] = set()
    backwards: dict[int, list[int]] = defaultdict(list)
    for root in list(edges):
        stack = [(root, False)]
        while stack:
            node, is_left = stack.pop()
            if is_left:
                finished.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                for behind in edges.get(node, ()):
                    backwards[behind].append(node)
                    stack.append((behind, False))
    taken: set[int] = set()
    for root in reversed(finished):
        knot, queue = set[int](), [root]
        while queue:
            node = queue.pop()
            if node not in taken:
                taken.add(node)
                knot.add(node)
                queue += backwards[node]
        if len(knot) > 1:
            yield knot
