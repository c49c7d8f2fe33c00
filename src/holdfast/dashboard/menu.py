"""The menu beside every page."""

from collections.abc import Set
from typing import Final, NamedTuple


class MenuEntry(NamedTuple):
    """A page that the menu links to; shown to users who may call the operation it `needs`."""

    name: str  # the path of the page, and its `menu`
    label: str
    needs: str
    counts: str = ""  # the field of `jobs.totals` that is shown beside it

    @property
    def segments(self) -> tuple[str, ...]:
        return (self.name,) if self.name else ()


class Section(NamedTuple):
    """Entries below one heading."""

    label: str
    entries: tuple[MenuEntry, ...]


SECTIONS: Final = (
    Section("", (MenuEntry("", "Overview", "jobs.queues"),)),
    Section(
        "Jobs",
        (
            MenuEntry("queues", "Queues", "jobs.queues", "queues"),
            MenuEntry("failures", "Failures", "jobs.failed", "failed"),
            MenuEntry("workers", "Workers", "jobs.workers", "programs"),
            MenuEntry("schedules", "Schedules", "jobs.recurring", "schedules"),
            MenuEntry("throttles", "Throttles", "jobs.throttles", "throttles"),
            MenuEntry("tracked", "Tracked", "jobs.tracked"),
            MenuEntry("search", "Search", "jobs.search"),
            MenuEntry("bulk", "Bulk actions", "jobs.bulks"),
        ),
    ),
    Section(
        "Data",
        (
            MenuEntry("tables", "Tables", "tables.names"),
            MenuEntry("entities", "Entities", "entities.schemas"),
            MenuEntry("events", "Events", "events.schemas"),
            MenuEntry("metrics", "Metrics", "metrics.rate"),
            MenuEntry("limits", "Limits", "metrics.peek"),
        ),
    ),
    Section(
        "Store",
        (
            MenuEntry("spaces", "Spaces", "admin.spaces"),
            MenuEntry("users", "Users", "admin.users"),
            MenuEntry("backups", "Backups", "admin.backup_start"),
            MenuEntry("check", "Check", "admin.maintenance"),
            MenuEntry("settings", "Settings", "admin.server"),
            MenuEntry("slow", "Slow calls", "admin.status"),
        ),
    ),
)


def menu(served: Set[str]) -> list[Section]:
    """Returns the sections with the entries whose pages are served."""
    sections = [
        Section(each.label, tuple(entry for entry in each.entries if entry.name in served))
        for each in SECTIONS
    ]
    return [section for section in sections if section.entries]
