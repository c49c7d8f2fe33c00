"""Does Holdfast keep its promises when everything around it breaks? Runs the hostile campaign.

Run: python -m tests.campaign [--minutes N] [--seed S] [--part NAME [--rest]] [--no-report]

Every part gets its share of the minutes and runs in a process of its own, so that a part that dies
is a finding like any other. The figures are kept in tests/campaign/results.json, where a part that
runs alone replaces its own, and docs/reliability.md is written from them. The exit code is 1 if a
promise was broken. What a part had no time for is named on the page; `--rest` runs that alone, and
adds its figures.
"""

import argparse
import importlib
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tests.campaign.frame import Result
from tests.campaign.report import Run, Versions, keep, kept, write_page

# Every part with its weight: how much of the minutes it gets beside the others.
PARTS: Final[dict[str, int]] = {
    "kills": 4,
    "fan_outs": 1,
    "network": 3,
    "damage": 2,
    "disk_full": 2,
    "parser_fuzz": 1,
    "smuggling": 1,
    "codegen_fuzz": 1,
    "soak": 2,
    "resources": 2,
}

# What a part may take beyond its share: to start servers, and to look back.
GRACE_SECONDS: Final = 300.0


def main() -> int:
    options = _arguments()
    if options.part is not None:
        run = _run_rest if options.rest else _run_here
        return run(options.part, options.seed, options.minutes * 60, not options.no_report)
    broken = 0
    for number, name in enumerate(PARTS, 1):
        minutes = options.minutes * PARTS[name] / sum(PARTS.values())
        print(f"=== {number} of {len(PARTS)}: {name}, {minutes:.1f} minutes", flush=True)
        broken += _run_apart(name, options.seed, minutes, not options.no_report)
    print(f"{len(PARTS) - broken} of {len(PARTS)} parts found every promise kept")
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all parts together")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same attacks")
    parser.add_argument("--part", choices=list(PARTS), help="run this part alone")
    parser.add_argument("--rest", action="store_true", help="run what it had no time for")
    parser.add_argument("--no-report", action="store_true", help="keep no figures, write no page")
    return parser.parse_args()


def _run_apart(name: str, seed: int, minutes: float, report: bool) -> bool:
    """Runs a part in a child process, and returns whether it found anything broken."""
    command = [sys.executable, "-m", "tests.campaign", "--part", name, "--seed", str(seed)]
    command += ["--minutes", f"{minutes:.3f}", *([] if report else ["--no-report"])]
    begin = time.monotonic()
    try:
        code = subprocess.run(command, check=False, timeout=minutes * 60 + GRACE_SECONDS).returncode
        end = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    except subprocess.TimeoutExpired:
        code, end = -1, f"did not end within {GRACE_SECONDS:.0f} seconds after its time"
    if code not in (0, 1):  # the child could say nothing, so this process speaks for it
        result = Result(tried={}, broken=[f"the part itself {end}"])
        _tell(_run_of(name, seed, time.monotonic() - begin, result), report)
    return code != 0


def _run_here(name: str, seed: int, seconds: float, report: bool) -> int:
    part, begin = importlib.import_module(f"tests.campaign.{name}"), time.monotonic()
    result = _result_of(lambda: part.run(random.Random(f"{seed}/{name}"), seconds))
    _tell(_run_of(name, seed, time.monotonic() - begin, result), report)
    return 1 if result.broken else 0


def _run_rest(name: str, seed: int, seconds: float, report: bool) -> int:
    """Runs what the kept run of a part has left, and adds its figures to those."""
    before = kept().get(name)
    if before is None or not before.result.left:
        print(f"{name}: nothing was left")
        return 0
    part, begin = importlib.import_module(f"tests.campaign.{name}"), time.monotonic()
    chance = random.Random(f"{seed}/{name}/rest")
    result = _result_of(lambda: part.run_rest(before.result.left, chance, seconds))
    _tell(before.followed_by(_run_of(name, seed, time.monotonic() - begin, result)), report)
    return 1 if result.broken else 0


def _result_of(run: Callable[[], Result]) -> Result:
    try:
        return run()
    except Exception as error:
        traceback.print_exc()
        return Result(tried={}, broken=[f"the part itself failed: {error!r}"])


def _run_of(name: str, seed: int, seconds: float, result: Result) -> Run:
    return Run(
        part=name,
        about=(importlib.import_module(f"tests.campaign.{name}").__doc__ or "").strip(),
        seed=seed,
        seconds=round(seconds),
        date=datetime.now(UTC).date(),
        on=Versions.here(),
        result=result,
    )


def _tell(run: Run, report: bool) -> None:
    figures = ", ".join(f"{count:,} {what}" for what, count in run.result.tried.items())
    print(f"{run.part}: {figures or 'nothing was tried'} in {run.seconds} s", flush=True)
    for sentence in run.result.broken:
        print(f"  BROKEN: {sentence}", flush=True)
    if run.result.left:
        print(f"  NO TIME FOR {len(run.result.left)}: --part {run.part} --rest", flush=True)
    if report:
        keep(run)
        write_page(kept(), order=list(PARTS))


if __name__ == "__main__":
    sys.exit(main())
