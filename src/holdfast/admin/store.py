"""The operations of `admin`, for one space of an open store and for the store around it."""

from collections.abc import Callable, Iterator, Sequence

from holdfast.admin import inspection, space_dump
from holdfast.admin.checks_and_backups import CheckAndBackupOperations
from holdfast.admin.contracts import Layers, ParentStore
from holdfast.admin.records import (
    DefinedMetric,
    FailedGroup,
    Inspection,
    NewUser,
    ServerFacts,
    SpaceDump,
    SpaceList,
    SpaceSize,
    Status,
    UserEntry,
)
from holdfast.binding import EVERY_SPACE, Runner
from holdfast.declarations import operation
from holdfast.defaults import DEFAULT_SPACE
from holdfast.engine.contract import Reader
from holdfast.errors import BadInput
from holdfast.keys import prefix_range
from holdfast.limits import (
    DEFAULT_INSPECTED_KEYS,
    FAILED_GROUPS_SHOWN,
    MAX_COUNTED_KEYS,
    MAX_INSPECTED_KEYS,
    MAX_SIZED_KEYS,
)
from holdfast.metrics.registry import every_spec
from holdfast.spaces import DIRECTORY, prefix_of
from holdfast.users import (
    add_user,
    grant_user,
    parse_grants,
    remove_user,
    renew_token,
    users_of,
)
from holdfast.version import VERSION


class StoreAdmin(CheckAndBackupOperations):
    """Operations that administer a store. None can be part of a transaction or a batch."""

    def __init__(self, store: ParentStore, space: Layers, runner: Runner) -> None:
        self._store = store
        self._space = space
        self._runner = runner

    # --- reading ---------------------------------------------------------------------------------

    @operation(reads=True, role="admin")
    def status(self) -> Status:
        """Returns the store and this space at a glance.

        Reads a few keys for each table, queue and schema.
        """
        space = self._space
        stats = space.entities.stats()
        metrics = self._defined_metrics()
        return Status(
            version=VERSION,
            store=self._store.engine.stats(),
            spaces=len(self._store.spaces()),
            space=space.name,
            entities={name: table.num_rows for name, table in stats.items()},
            tables={name: space.tables.facts(name).rows for name in self._table_names()},
            queues=space.jobs.queues(),
            events=sorted(space.events.schemas()),
            metrics=sorted({each.metric for each in metrics}),
            defined_metrics=metrics,
            failed=self._failed_groups(),
            building={
                name: (index.indexed, table.num_rows)
                for table in stats.values()
                for name, index in table.indexes.items()
                if index.state == "pending"
            },
        )

    def _failed_groups(self) -> list[FailedGroup]:
        """Returns the largest groups of failed jobs. Reads 3 keys for each."""
        jobs = self._space.jobs
        groups = sorted(jobs.failed().items(), key=lambda each: -each[1])
        found = []
        for group, count in groups[:FAILED_GROUPS_SHOWN]:
            newest = jobs.multiget(*jobs.failed_in(group, count=1).jobs)
            for job in newest:
                if job.failure is not None:
                    reason, when = job.failure.reason[:200], job.failure.when
                    found.append(FailedGroup(group=group, jobs=count, message=reason, when=when))
        return found

    @operation(reads=True, role="admin", scope="store")
    def spaces(self, *, after: str | None = None, limit: int | None = None) -> SpaceList:
        """Returns the names of all spaces of the store, or up to `limit` after the name `after`.

        Reads a key for each.
        """
        if limit is None and after is None:
            return SpaceList(spaces=self._store.spaces())
        most = DEFAULT_INSPECTED_KEYS if limit is None else limit
        if not 0 < most <= MAX_INSPECTED_KEYS:
            raise BadInput(f"limit must be from 1 to {MAX_INSPECTED_KEYS}, not {most}")
        page = self._store.page_of_spaces(after=after, limit=most)
        return SpaceList(spaces=[name for name, _ in page])

    @operation(reads=True, role="admin")
    def inspect(
        self, prefix: str = "", *, limit: int = DEFAULT_INSPECTED_KEYS, after: str | None = None
    ) -> Inspection:
        """Returns the stored keys of this space that begin with the parts in `prefix`, and what
        they hold.

        `prefix` is a layer and parts, as in `jobs, 29, 'receipt'`; empty is all. Reads `limit`
        keys.
        """
        with self._runner.view() as reader:
            return inspection.inspect(reader, prefix, limit, after)

    @operation(reads=True, role="admin")
    def count_keys(self) -> int | None:
        """Returns how many keys this space has, or None if counting them would read over a million.

        If the store has no other space, the engine's own count is used; for a large store on
        PostgreSQL that is an estimate. Otherwise reads every key of the space, up to 1,000,000.
        """
        all_keys = self._store.engine.stats().get("keys")
        if all_keys is not None and self._store.spaces() == [self._space.name]:
            with self._store.engine.view(space=DIRECTORY) as reader:
                return max(0, all_keys - _count(reader, None))
        with self._runner.view() as reader:
            found = _count(reader, MAX_COUNTED_KEYS + 1)
        return found if found <= MAX_COUNTED_KEYS else None

    @operation(local=True, role="admin")
    def dump(self) -> Iterator[SpaceDump]:
        """Yields all of this space as lines of text, on one snapshot, for `load_some`.

        The snapshot is held until the last step is taken.
        """
        with self._runner.view() as reader:
            yield from space_dump.dump(reader)

    @operation(reads=True, role="admin")
    def dump_some(self, *, after: str | None = None) -> SpaceDump:
        """Returns the next lines of a dump of this space, for callers that can't hold a snapshot.

        Pass `next` as `after` to continue. Each step is consistent, but not all of them together,
        so stop all writers until the last step. Reads 1,000 keys.
        """
        with self._runner.view() as reader:
            return space_dump.dump_step(reader, after)

    @operation(role="admin")
    def load_some(self, lines: bytes) -> int:
        """Loads whole lines of a dump into this space, in one transaction; returns how many.

        The lines that begin a dump need an empty space. Writes 1 key for each line.
        """
        return self._runner.transact(lambda tx: space_dump.load(tx, lines))

    @operation(reads=True, role="admin", scope="store")
    def space_sizes(
        self, names: Sequence[str] | None = None, *, after: str | None = None, limit: int = 50
    ) -> list[SpaceSize]:
        """Returns the sizes of `names`, or of up to `limit` spaces after the name `after`.

        Names that no space has are left out. Reads at most 1,000 keys of each space.
        """
        if not 0 < limit <= MAX_INSPECTED_KEYS or len(names or ()) > MAX_INSPECTED_KEYS:
            raise BadInput(f"limit must be from 1 to {MAX_INSPECTED_KEYS}, not {limit}")
        if names is not None:
            prefixes = {name: prefix_of(self._store.engine, name) for name in names}
            return [self._size(name, prefix) for name, prefix in prefixes.items() if prefix]
        page = self._store.page_of_spaces(after=after, limit=limit)
        return [self._size(name, prefix) for name, prefix in page]

    def _size(self, name: str, prefix: bytes) -> SpaceSize:
        with self._store.engine.view(space=prefix) as reader:
            pairs = reader.scan(*prefix_range(reader.space), limit=MAX_SIZED_KEYS + 1)
            sizes = [len(key) + len(value) for key, value in pairs]
        counted = sizes[:MAX_SIZED_KEYS]
        return SpaceSize(
            name=name,
            keys=len(counted),
            bytes=sum(counted),
            complete=len(sizes) <= MAX_SIZED_KEYS,
        )

    @operation(reads=True, role="admin", scope="store")
    def server(self) -> ServerFacts:
        """Returns the settings of the server that answers, where each came from, and its figures.

        A store that is open in a program has neither. Reads a key for each space, at most 10,000.
        """
        store, server = self._store, self._store.server
        figures = store.engine.stats()
        folder = None if server is None else server.backups
        return ServerFacts(
            version=VERSION,
            store=figures,
            spaces=len(store.page_of_spaces(after=None, limit=MAX_INSPECTED_KEYS)),
            engine=store.engine_name,
            durable=bool(figures.get("durable", 1)),
            settings=[] if server is None else server.setting_entries(),
            figures={} if server is None else server.figures(),
            backups=None if folder is None else str(folder),
        )

    # --- spaces and users ------------------------------------------------------------------------

    @operation(role="admin", scope="store")
    def drop_space(self, name: str, *, progress: Callable[[int], None] | None = None) -> bool:
        """Removes a space and everything in it; returns whether it existed.

        Works in bounded steps between which others write. Reads and deletes every key of the space,
        1,000 in a transaction.
        """
        if name == DEFAULT_SPACE:
            raise BadInput(
                f"the space {name!r} can't be dropped: every store has it",
                hint="Drop what is in it, or use another space and drop that.",
            )
        found = self._store.has_space(name)
        self._store.drop_space(name, progress=progress)
        return found

    @operation(reads=True, role="admin", scope="store")
    def users(self) -> list[UserEntry]:
        """Returns the users of the store, by name. Reads 1 key for each."""
        return [
            UserEntry(
                name=user.name, login=user.login, grants=[str(grant) for grant in user.grants]
            )
            for user in users_of(self._store.engine)
        ]

    @operation(role="admin", scope="store")
    def add_user(
        self,
        name: str,
        grants: Sequence[str] = (),
        *,
        password: str | None = None,
        replace: bool = False,
    ) -> NewUser:
        """Adds a user; without a password, makes a token and returns it.

        A grant is `ROLE[:SPACE[:LAYER]]`: read, write or admin, in one space and layer or in all;
        at least one is needed. With `replace`, a user of that name is replaced, its grants and
        token with it; without, it is an error. Reads 1 key, writes 1.
        """
        store = self._store
        token = add_user(
            store.engine,
            name,
            password,
            parse_grants(grants),
            replace=replace,
            keep_admin=store.keeps_admin,
        )
        return NewUser(name=name, token=token)

    @operation(role="admin", scope="store")
    def grant_user(self, name: str, grants: Sequence[str]) -> UserEntry:
        """Replaces the grants of a user; password and token stay.

        Over the network, refuses to take the grant `admin` from the last user who has it,
        which reads a key for each user. Reads 1 key, writes 1.
        """
        store = self._store
        user = grant_user(store.engine, name, parse_grants(grants), keep_admin=store.keeps_admin)
        return UserEntry(name=name, login=user.login, grants=[str(grant) for grant in user.grants])

    @operation(role="admin", scope="store")
    def renew_token(self, name: str, *, revoke: bool = False) -> NewUser:
        """Makes a new token for a user and returns it; the old one is refused at once.

        With `revoke`, there is no token afterwards. Over the network, refuses to take the last way
        in from the last user who may change users. Reads 1 key, writes 1.
        """
        store = self._store
        token = renew_token(store.engine, name, revoke=revoke, keep_admin=store.keeps_admin)
        return NewUser(name=name, token=token)

    @operation(role="admin", scope="store")
    def remove_user(self, name: str) -> bool:
        """Removes a user; returns whether it existed.

        Over the network, refuses to remove the last user with the grant `admin`, which reads a key
        for each user. Reads 1 key, deletes 1.
        """
        return remove_user(self._store.engine, name, keep_admin=self._store.keeps_admin)

    def _defined_metrics(self) -> list[DefinedMetric]:
        with self._runner.view() as reader:
            found = [
                DefinedMetric(metric=name, type=stored.metric.type, prefix=list(keys.prefix))
                for keys, name, stored in every_spec(reader)
            ]
        return sorted(found, key=lambda each: (each.metric, each.prefix))

    def _table_names(self) -> list[str]:
        # The space `*` holds schemas, and no rows that could be counted.
        return [] if self._space.name == EVERY_SPACE else self._space.tables.names()


def _count(reader: Reader, limit: int | None) -> int:
    return sum(1 for _ in reader.scan(*prefix_range(reader.space), limit=limit))
