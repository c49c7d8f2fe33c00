"""Records that the operations of `admin` return."""

import msgspec

from holdfast.jobs import QueueCounts


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
    building: dict[str, tuple[int, int]] = {}  # indexes of entities: how many of how many are in
    defined_metrics: "list[DefinedMetric]" = []  # the same metrics, with what they are
    failed: "list[FailedGroup]" = []  # jobs that failed, by group, at most a few


class FailedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The failed jobs of a group: how many, and the message of the newest."""

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
    """A part of a check. `next` is handed back as `after`; None: this was the last part."""

    checked: int  # keys that were looked at
    problems: list[str]  # a sentence each
    done: float = 1.0  # roughly how much of the space has been seen, from 0 to 1
    next: str | None = None


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A stored pair, for people."""

    key: str  # its parts behind the space, the first one the layer
    value: str
    bytes: int  # of the value


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """A page of stored pairs. `next` is handed back as `after`; None: these were the last."""

    entries: list[KeyEntry]
    next: str | None = None


class SpaceDump(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a dump of a space. `next` is handed back as `after`; None: these were the last."""

    lines: bytes
    keys: int
    next: str | None = None


class BackupReport(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was written and read back."""

    target: str
    keys: int
    bytes: int
    digest: str = ""  # of all pairs, in hex


class NewUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user that was added or got a new token. The token is told this once; None: it has none."""

    name: str
    token: str | None = None


class UserEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A user, with grants as `ROLE:SPACE:LAYER`."""

    name: str
    login: str  # token, password, or both: "password and token"
    grants: list[str]
