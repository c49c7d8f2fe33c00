"""Domain `*`: one schema for a table in all domains, including those that do not exist yet.

A domain is a space, and a transaction stays within one space. So the default schema of a table is
kept in the space `*`, as the template, and copied into every other space: an operation finds it in
its own space, in its own transaction. Copies are made when the default is put, and when a space is
opened that lacks them.

Putting a default checks every space first, and changes none if one of them refuses. It then writes
the template, marked as unfinished, then each space in its own transaction, then marks the template
as finished. If the process dies in between, `resume` finishes the work: a server calls it when it
starts; repeating the put does it, too. If a space refuses after all, because its table was changed
in the meantime, the error names it, and the other spaces have the new schema.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NoReturn, Protocol

import msgspec

from holdfast.binding import EVERY_SPACE, Runner
from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import InvalidTableRequest, SchemaUpgradeRejected, TableNotFound
from holdfast.keys import prefix_range, unpack
from holdfast.limits import DEFAULT_PAGE_ROWS
from holdfast.tables import catalogue
from holdfast.tables.layout import keys_of
from holdfast.tables.migration import are_equal, check_upgrade, first_record
from holdfast.tables.plan import TablePlan, encode_record, plan_of
from holdfast.tables.records import CreateResult, DefaultRecord
from holdfast.tables.schema import Schema, normalise
from holdfast.tables.store import StoreTables

EVERY_DOMAIN: Final = EVERY_SPACE  # RESTBase calls a space a domain

_DEFAULT: Final = msgspec.msgpack.Decoder(DefaultRecord)


class Domains(Protocol):
    """The spaces of a store, for the tables of domain `*`."""

    def names(self) -> list[str]:
        """Returns the names of all domains."""

    def find(self, domain: str) -> Runner | None:
        """Returns the domain, or None if it does not exist."""

    def runner(self, domain: str) -> Runner:
        """Creates the domain if it does not exist."""
        ...


class EveryDomainTables(StoreTables):
    """The tables of domain `*`: schemas only, rows are in the domains."""

    def __init__(self, domains: Domains) -> None:
        super().__init__(_NoRows())
        self._domains = domains

    def create(self, schema: Mapping[str, Any], *, table: str | None = None) -> CreateResult:
        """Migrates the table in every domain that has it and makes `schema` the default of all.

        If one domain refuses, nothing has changed and the error names it.
        """
        name = catalogue.name_in(schema, table)
        before = self._default(name)
        known = None if before is None else _schema_of(before)
        normalised, warnings = normalise(name, schema, before=known)
        if before is not None:
            check_upgrade(_schema_of(before), normalised)
        self._check_all(name, normalised)
        record = DefaultRecord(
            schema=msgspec.json.encode(normalised), is_template=True, unfinished="create"
        )
        self._apply_to_domains(name, record)
        changed = before is None or not are_equal(_schema_of(before), normalised)
        version = int(normalised["version"])
        warnings += _plan_of(normalised).warnings
        return CreateResult(table=name, version=version, changed=changed, warnings=warnings)

    def schema(self, table: str) -> Schema:
        """Returns the default schema of a table."""
        return _schema_of(self._found(table))

    def schema_etag(self, table: str) -> str:
        """Returns the entity tag of a table's default schema."""
        schema = self.schema(table)
        return f"{schema['version']}-{_plan_of(schema).digest}"

    def drop(self, table: str) -> bool:
        """Drops the table in every domain, with its default."""
        before = self._default(table)
        schema = b"" if before is None else before.schema
        record = DefaultRecord(schema=schema, is_template=True, unfinished="drop")
        self._apply_to_domains(table, record)
        return before is not None

    def names(self, *, after: str | None = None, limit: int = DEFAULT_PAGE_ROWS) -> list[str]:
        """Returns the names of the tables that have a default, in order."""
        catalogue.check_limit(limit)
        found = sorted(_not_dropped(self._templates()), key=str.encode)
        return [name for name in found if after is None or name > after][:limit]

    def resume(self) -> None:
        """Finishes the puts and drops that a crash has interrupted."""
        for name, record in self._templates().items():
            if record.unfinished:
                self._apply_to_domains(name, record)

    def catch_up(self, domain: str) -> None:
        """Copies the defaults that a domain lacks into it; a new domain lacks all."""
        if domain == EVERY_DOMAIN or self._domains.find(EVERY_DOMAIN) is None:
            return
        templates = _not_dropped(self._templates())
        runner = self._domains.runner(domain)
        with runner.view() as reader:
            missing = [name for name in templates if not _has_default(reader, name)]
        for name in missing:
            runner.transact(partial(_catch_up, name, _schema_of(templates[name])))

    def copies(self) -> Callable[[Transaction], None]:
        """Returns a function that copies all defaults into an empty domain."""
        templates = _not_dropped(self._templates())

        def copy(tx: Transaction) -> None:
            for name, record in templates.items():
                _catch_up(name, _schema_of(record), tx)

        return copy

    # --- internals -------------------------------------------------------------------------------

    def _check_all(self, name: str, schema: Schema) -> None:
        for domain, runner in self._each():
            with runner.view() as reader:
                try:
                    catalogue.check_default(reader, name, schema)
                except SchemaUpgradeRejected as error:
                    raise _in_domain(domain, error) from None

    def _apply_to_domains(self, name: str, record: DefaultRecord) -> None:
        template = self._domains.runner(EVERY_DOMAIN)
        template.transact(lambda tx: _write_template(tx, name, record))
        drops = record.unfinished == "drop"
        schema = {} if drops else _schema_of(record)
        for domain, runner in self._each():
            try:
                if drops:
                    runner.transact(lambda tx: catalogue.forget_default(tx, name))
                else:
                    runner.transact(partial(_adopt, name, schema))
            except SchemaUpgradeRejected as error:
                raise _in_domain(domain, error) from None
        finished = None if drops else msgspec.structs.replace(record, unfinished="")
        template.transact(lambda tx: _write_template(tx, name, finished))

    def _each(self) -> Iterator[tuple[str, Runner]]:
        for domain in self._domains.names():
            if domain != EVERY_DOMAIN:
                yield domain, self._domains.runner(domain)

    def _templates(self) -> dict[str, DefaultRecord]:
        with self._domains.runner(EVERY_DOMAIN).view() as reader:
            prefix = keys_of(reader.space).defaults
            return {
                str(unpack(key, len(prefix))[0]): _DEFAULT.decode(value)
                for key, value in reader.scan(*prefix_range(prefix))
            }

    def _default(self, table: str) -> DefaultRecord | None:
        with self._domains.runner(EVERY_DOMAIN).view() as reader:
            value = reader.get(keys_of(reader.space).default(table))
        record = None if value is None else _DEFAULT.decode(value)
        return None if record is None or record.unfinished == "drop" else record

    def _found(self, table: str) -> DefaultRecord:
        record = self._default(table)
        if record is None:
            raise TableNotFound(f"there is no table {table!r} in all domains")
        return record


class _NoRows:
    """The runner of domain `*`, which has no rows."""

    is_remote = False

    def transact(self, work: Any, kind: str = "") -> NoReturn:
        raise no_rows()

    @contextmanager
    def view(self) -> Iterator[Reader]:
        self.transact(None)
        raise AssertionError("never reached")
        yield

    def read(self, work: Any, kind: str = "") -> NoReturn:
        self.transact(None)

    def subscribe(self, topic_prefix: str = "") -> NoReturn:
        self.transact(None)

    def read_clock(self) -> NoReturn:
        self.transact(None)


def no_rows() -> InvalidTableRequest:
    return InvalidTableRequest("The domain '*' has schemas only: name the domain of the rows")


def _write_template(tx: Transaction, name: str, record: DefaultRecord | None) -> None:
    key = keys_of(tx.space).default(name)
    if record is None:
        tx.delete(key)
    else:
        tx.put(key, msgspec.msgpack.encode(record))


def _adopt(name: str, schema: Schema, tx: Transaction) -> None:
    catalogue.adopt_default(tx, name, schema)


def _catch_up(name: str, schema: Schema, tx: Transaction) -> None:
    try:
        catalogue.adopt_default(tx, name, schema)
    except SchemaUpgradeRejected:
        # The domain's table was changed while the default was put; the domain must open anyway.
        catalogue.store_default(tx, name, schema)


def _not_dropped(templates: dict[str, DefaultRecord]) -> dict[str, DefaultRecord]:
    """Returns the templates that are not being dropped."""
    return {name: record for name, record in templates.items() if record.unfinished != "drop"}


def _plan_of(schema: Schema) -> TablePlan:
    return plan_of(encode_record(first_record(schema, 0)))


def _has_default(reader: Reader, name: str) -> bool:
    return reader.get(keys_of(reader.space).default(name)) is not None


def _schema_of(record: DefaultRecord) -> Schema:
    schema: Schema = msgspec.json.decode(record.schema)
    return schema


def _in_domain(domain: str, error: SchemaUpgradeRejected) -> SchemaUpgradeRejected:
    # The reason is at the end, in parentheses; the domain is added there.
    return SchemaUpgradeRejected(f"{error.message[:-1]}, in domain {domain!r})")
