"""Records that the operations of `admin` return."""

from typing import Any, Literal, TypeAlias

import msgspec

from holdfast.jobs import QueueCounts

Origin: TypeAlias = Literal["flag", "environment", "file", "default"]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A store and one of its spaces at a glance."""

    version: str  # of Holdfast
    store: dict[str, int]  # figures of the engine: keys, file_bytes and others
    spaces: int  # how many there are
    space: str  # the one that the rest is about
    entities: dict[str, int]  # tables of entities, and how many live ones each has
    tables: dict[str, int]  # tables of rows, and how many each has
    queues: list[QueueCounts]
    events: list[str]  # names of the schemas in force
    metrics: list[str]  # names of the defined metrics
    building: dict[str, tuple[int, int]] = {}  # indexes: entities that are indexed, of how many
    defined_metrics: "list[DefinedMetric]" = []  # the same metrics, with their types
    failed: "list[FailedGroup]" = []  # jobs that failed, by group, at most a few


class FailedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The failed jobs of a group: how many, and the message of the newest in one line."""

    group: str
    jobs: int
    message: str
    when: float


class DefinedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that has a spec."""

    metric: str
    type: str  # counter, gauge or distribution
    prefix: list[str]  # that it is defined under


class SpaceList(msgspec.Struct, frozen=True, kw_only=True):
    """The names of all spaces."""

    spaces: list[str]


class CheckStep(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a check. Pass `next` as `after` for the next part; None: this was the last."""

    checked: int  # keys that were checked
    problems: list[str]  # a sentence each
    done: float = 1.0  # roughly how much of the space has been seen, from 0 to 1
    next: str | None = None


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A stored pair, for people."""

    key: str  # its parts after that of the space; the first one is the layer
    value: str
    bytes: int  # of the value


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """A page of stored pairs. Pass `next` as `after` for the next page; None: this was the last."""

    entries: list[KeyEntry]
    next: str | None = None


class SpaceDump(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a dump of a space. Pass `next` as `after` to continue; None: these were the last."""

    lines: bytes
    keys: int
    next: str | None = None


class BackupReport(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was written and read back."""

    target: str
    keys: int
    bytes: int
    digest: str = ""  # of all pairs, in hex


class BackupEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A backup in the folder of a server. It was compared with the store before it got its name."""

    name: str
    bytes: int
    made: float


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """A check or a backup that runs in the background, or has ended."""

    id: str
    kind: Literal["check", "backup"]
    started: float
    state: Literal["running", "done", "failed", "stopped"] = "running"
    space: str = ""  # that is checked
    target: str = ""  # of a backup
    ended: float | None = None
    done: float = 0.0  # roughly how much has been seen or copied, from 0 to 1
    keys: int = 0  # checked, or in the backup
    found: int = 0  # problems
    problems: list[str] = []  # the first of them, a sentence each
    bytes: int = 0  # of the backup, so far
    digest: str = ""  # of all pairs of the backup, in hex
    error: str = ""  # why it failed


class SpaceSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a space; one that is not `complete` has more keys than were counted."""

    name: str
    keys: int
    bytes: int  # of keys and values
    complete: bool = True


class SettingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that a server was started with, and where its value came from."""

    name: str
    value: Any = None
    origin: Origin = "default"


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The server that answers: its settings without secrets, and its figures now."""

    version: str  # of Holdfast
    store: dict[str, int]  # figures of the engine: keys, file_bytes and others
    spaces: int  # how many there are, counted up to 10,000
    engine: str  # lmdb, postgres or valkey
    durable: bool  # whether every commit is on disk when it is answered
    settings: list[SettingEntry] = []
    figures: dict[str, int] = {}
    backups: str | None = None  # the folder for backups


class NewUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user that was added or got a new token. The token is shown only here; None if there is
    none."""

    name: str
    token: str | None = None


class UserEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A user, with grants as `ROLE:SPACE:LAYER`."""

    name: str
    login: str  # token, password, or both: "password and token"
    grants: list[str]
