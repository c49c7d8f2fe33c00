"""PostgreSQL: durability, the format of its tables, and what opening and checking says."""

import logging
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine
from holdfast.engine.postgres import FORMAT
from holdfast.engine.postgres.functions import COMMIT_FUNCTION
from holdfast.engine.remote import RemoteEngine
from holdfast.errors import (
    BadInput,
    MissingDriver,
    StoreUnreachable,
    StoreUnusable,
    UnsupportedFormat,
)
from tests.engine.postgres_engine import engine, increment, url
from tests.servers import PostgresServer

__all__ = ["engine", "url"]

pytestmark = pytest.mark.only_on("postgres")


def shown(engine: RemoteEngine, setting: str) -> str:
    backend: Any = engine.backend
    with backend.borrowed() as connection:
        connection.send_sql(f"SELECT current_setting('{setting}')")
        connection.sync()
        [[reply]] = connection.exchange()
        return str(reply.get_value(0, 0).decode())


def test_a_commit_waits_for_the_disk_even_if_the_server_would_not() -> None:
    with PostgresServer(durable=True, synchronous_commit="off") as server:
        engine = open_engine(server.url())
        assert isinstance(engine, RemoteEngine)
        assert shown(engine, "synchronous_commit") == "on"
        assert engine.stats()["durable"] == 1
        engine.close()

        engine = open_engine(server.url(), durability="interval")
        assert isinstance(engine, RemoteEngine)
        assert shown(engine, "synchronous_commit") == "off"
        assert engine.stats()["durable"] == 0
        engine.transact(increment)
        engine.checkpoint()
        server.restart_immediately()
        assert engine.transact(increment) == 2
        engine.close()


def test_a_server_that_does_not_write_to_its_disk_is_not_called_durable(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        engine = open_engine(url, durability="commit")

    assert engine.stats()["durable"] == 0  # the servers of the tests run with fsync = off
    assert "fsync = off" in caplog.text
    engine.close()


def test_an_unknown_durability_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="unknown durability 'never'"):
        open_engine(url, durability="never")


def test_a_store_of_a_newer_format_is_refused(engine: Engine, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute("UPDATE holdfast_meta SET value = %s", [str(FORMAT + 1)])

        with pytest.raises(UnsupportedFormat, match=f"has format {FORMAT + 1}"):
            open_engine(url)

        plain.execute("UPDATE holdfast_meta SET value = %s", [str(FORMAT)])


def test_a_store_of_an_older_holdfast_gets_the_function_that_it_lacks(
    engine: Engine, url: str
) -> None:
    engine.transact(increment)
    signature = "SELECT oid::regprocedure FROM pg_proc WHERE proname = %s"
    with psycopg.connect(url, autocommit=True) as plain:
        [[function]] = plain.execute(signature, [COMMIT_FUNCTION]).fetchall()
        plain.execute(f"DROP FUNCTION {function}")
        plain.execute("DROP ROLE IF EXISTS holdfast_guest")
        plain.execute("CREATE ROLE holdfast_guest LOGIN")
        plain.execute("GRANT USAGE ON SCHEMA public TO holdfast_guest")
        plain.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO holdfast_guest")

        with pytest.raises(StoreUnusable, match=f"lacks the function {COMMIT_FUNCTION}"):
            open_engine(url.replace("postgres@", "holdfast_guest@"))
        other = open_engine(url, durability="interval")

        assert other.transact(increment) == 2
        other.close()
        plain.execute("DROP OWNED BY holdfast_guest")
        plain.execute("DROP ROLE holdfast_guest")


def test_a_server_that_is_not_there_is_named_in_one_line_and_without_its_password() -> None:
    with pytest.raises(StoreUnreachable) as caught:
        open_engine("postgresql://me:secret@127.0.0.1:1/db")
    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_url_that_can_not_be_read_is_bad_input() -> None:
    with pytest.raises(BadInput, match="can't be read") as caught:
        open_engine("postgresql://me:secret@host/db?no_such_option=1")
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("holdfast.engine.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(MissingDriver, match=r"holdfastdb\[postgres\]"):
        open_engine("postgresql://127.0.0.1/db")


def test_a_backup_names_what_to_do_instead(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holdfast copy"):
        engine.backup(tmp_path)


def test_check_finds_what_was_changed_behind_its_back(engine: Engine, url: str) -> None:
    engine.transact(lambda tx: tx.put(b"k" * 3_000, b"long"))
    assert engine.check() == []
    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute("UPDATE holdfast_data SET value = value || 'x', version = 0")
        plain.execute("UPDATE holdfast_data SET key = set_byte(key, 2599, 0)")

    problems = engine.check()

    assert any("does not match its digest" in problem for problem in problems)
    assert any("a form that is never written" in problem for problem in problems)
