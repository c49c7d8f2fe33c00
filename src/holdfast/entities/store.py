"""Entities on a store: one transaction per operation, and operations that take several."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.binding import Runner, per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Subscription
from holdfast.entities import deploys, repairs
from holdfast.entities.index_builds import pending_work, work_step
from holdfast.entities.layer import Entities
from holdfast.entities.mapper import StoredModelCalls
from holdfast.entities.messages import (
    CHANGED,
    ChangeNotice,
    DumpFormat,
    DumpPage,
    changed_topic,
)
from holdfast.entities.plan import Plan
from holdfast.entities.repairs import Repaired
from holdfast.entities.schema import Schema
from holdfast.entities.schema_records import check_records
from holdfast.entities.table_access import access_to
from holdfast.error_text import counted, shown
from holdfast.errors import BadDump, InvalidEntitySchema
from holdfast.keys import pack_int
from holdfast.limits import LOAD_STEP_ENTITIES

if TYPE_CHECKING:
    from holdfast.entities.dumps import NumberedEntity

    _PerCall = Entities
else:

    class _PerCall(StoredModelCalls, per_call(Entities)):
        """Calls with models come first: objects get their ids and versions after the commit, not
        within a transaction that may run twice."""


_read_notice = msgspec.msgpack.Decoder(ChangeNotice).decode


class StoreEntities(_PerCall):
    """The entities of one space of a store."""

    _runner: Runner

    if TYPE_CHECKING:

        def __init__(self, runner: Runner, make: Callable[[Any], Any] = Entities) -> None: ...

    # --- schemas ------------------------------------------------------------------------------

    @operation(role="admin")
    def deploy(
        self,
        *schemas: Schema | str | bytes,
        prune: bool = False,
        force: bool = False,
        wait: bool = True,
    ) -> list[Plan]:
        """Deploys schemas, given as records or as YAML, all or none; returns what changed.

        The tables are usable at once. New indexes of tables that hold entities are built before it
        returns or, without `wait`, in the background. Costs what `apply` does for each schema, and
        with `wait` what `build` does: reads 2 keys and writes 1 for each entity and new index.
        """
        # Imported where they are needed, here and below: YAML and BSON would more than double the
        # time that `import holdfast` takes.
        from holdfast.entities.schema_file import parse_schema

        for given in schemas:
            if not isinstance(given, (Schema, str, bytes)):
                raise InvalidEntitySchema(f"a schema must be YAML or a Schema, not {shown(given)}")
            if isinstance(given, Schema):
                check_records(given)
        parsed = [s if isinstance(s, Schema) else parse_schema(s) for s in schemas]
        plans = self._runner.transact(
            lambda tx: [deploys.deploy(tx, s, prune=prune, force=force) for s in parsed]
        )
        if wait:
            self.build()
        return plans

    @operation(role="admin")
    def build(
        self, *, most: int | None = None, progress: Callable[[int], None] | None = None
    ) -> int:
        """Builds and clears indexes until nothing is left to do, in steps; others can write between
        them.

        Returns the number of steps, at most `most`; `progress` is called with it after each.
        Reads 2 keys and writes 1 for each entity and index that is built.
        """
        steps = 0
        while numbers := self._unfinished():
            for number in numbers:
                if steps == most:
                    return steps
                self._work_step(pack_int(number))
                steps += 1
                if progress is not None:
                    progress(steps)
        return steps

    def _work_step(self, subject: bytes) -> bool:
        return self._runner.transact(lambda tx: work_step(tx, subject))

    def _unfinished(self) -> list[int]:
        with self._runner.view() as reader:
            return [number for number, work in pending_work(reader) if not work.is_stuck]

    @operation(reads=True)
    def check(self, table: str) -> Repaired:
        """Compares every entity of a table with its index entries; returns what `repair` would do.

        Works in steps. Reads 1 key for each entity and 4 for each index entry.
        """
        return repairs.repair(self._runner, table, dry_run=True)

    @operation(role="admin")
    def repair(self, table: str) -> Repaired:
        """Adds missing index entries, removes wrong ones, and counts them again.

        Works in steps. It is not needed in normal operation. Reads 1 key for each entity and 4 for
        each index entry, writes 1 for each entry that was wrong.
        """
        return repairs.repair(self._runner, table, dry_run=False)

    # --- dump and load ------------------------------------------------------------------------

    @operation(local=True)
    def dump(self, table: str, *, format: DumpFormat = "bson") -> Iterator[bytes]:
        """Yields the live entities of a table as one consistent snapshot, one document at a time.

        They are BSON documents, or lines of JSON. The snapshot is held until the iterator ends.
        """
        from holdfast.entities import dumps

        with self._runner.view() as reader:
            yield from dumps.dump(reader, access_to(reader, table), format)

    @operation(local=True)
    def load(self, table: str, dump: bytes | Iterable[bytes], *, atomic: bool = False) -> int:
        """Writes dumped entities under the ids they had, replacing what is there; returns how many.

        `dump` is the bytes of a dump, whole or in pieces of any size. Works in steps: at a document
        that is damaged, or that the table refuses, it raises `BadDump`, and the entities before it
        stay loaded. With `atomic`, all of it is one transaction of at most 64 MiB, and then nothing
        stays.
        """
        from holdfast.entities import dumps

        with self._runner.view() as reader:
            access_to(reader, table)
        pieces = [dump] if isinstance(dump, bytes) else dump
        loaded = 0
        try:
            records = dumps.DumpRecords(dumps.bounded(pieces) if atomic else pieces)
            for batch in dumps.batches(records, None if atomic else LOAD_STEP_ENTITIES):
                for step in self._load(table, batch, atomic=atomic):
                    loaded += step
        except BadDump as error:
            if atomic:
                loaded = 0
            if error.number is None:
                raise
            raise BadDump.at(
                error.number,
                error.reason,
                unit=records.unit,
                loaded=loaded,
                what=_loaded_text(loaded, atomic=atomic),
            ) from None
        return loaded

    @operation(reads=True)
    def dump_some(
        self, table: str, *, format: DumpFormat = "bson", after: str | None = None
    ) -> DumpPage:
        """Returns a page of a dump, for callers that can't hold a snapshot open: pass `next` back
        as `after`.

        Each page is consistent in itself. Reads up to 500 keys.
        """
        from holdfast.entities import dumps

        with self._runner.view() as reader:
            return dumps.dump_page(reader, access_to(reader, table), format, after)

    @operation()
    def load_some(self, table: str, dump: bytes, *, atomic: bool = False) -> int:
        """Loads whole documents or lines of a dump, as `load` does; returns how many.

        Reads 1 key for each entity; writes 1, and 1 for each index entry that changes.
        """
        return self.load(table, [dump], atomic=atomic)

    def _load(self, table: str, batch: "list[NumberedEntity]", *, atomic: bool) -> Iterator[int]:
        """Loads a batch in one transaction; if an entity is refused, only those before it."""
        from holdfast.entities import dumps

        try:
            yield self._runner.transact(lambda tx: dumps.load(tx, access_to(tx, table), batch))
        except BadDump as error:
            before = [each for each in batch if each.number < (error.number or 0)]
            if before and not atomic:
                yield from self._load(table, before, atomic=False)
            raise

    # --- changes ------------------------------------------------------------------------------

    @operation(local=True)
    def subscribe(self, table: str = "") -> Subscription:
        """Returns the change notices of one table, or of all, from now on; `read_notice` reads
        them."""
        return self._runner.subscribe(changed_topic(table) if table else CHANGED)

    @staticmethod
    def read_notice(payload: bytes) -> ChangeNotice:
        """Decodes a change notice."""
        return _read_notice(payload)


def _loaded_text(loaded: int, *, atomic: bool) -> str:
    if atomic:
        return "Nothing was loaded"
    were = "was" if loaded == 1 else "were"
    return f"{counted(loaded, 'entity')} {were} loaded before it"
