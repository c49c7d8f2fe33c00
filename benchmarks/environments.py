"""Makes an environment for each peer once, under .peers/; a peer without one is left out."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Final, NamedTuple

PEERS: Final = Path(".peers")
SCRIPTS: Final = Path(__file__).parent / "peers"
SECONDS: Final = 120  # that a peer may take


class NotInstalled(Exception):
    """A peer that can't take part."""


class Peer(NamedTuple):
    """A package that people use, and the script in `peers/` that measures it."""

    name: str
    script: str
    packages: tuple[str, ...]
    words: tuple[str, ...] = ()  # that its script gets after address and count


def install(peer: Peer) -> Path:
    """Returns the Python of the peer's environment."""
    folder = PEERS / peer.packages[0].partition("[")[0]
    python = folder.absolute() / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *peer.packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotInstalled((done.stderr.strip().splitlines() or ["pip failed"])[-1])
        (folder / "installed").touch()
    return python


def measure(peer: Peer, address: str, count: int) -> dict[str, Any]:
    """Runs the peer's script once, and returns what it reports in its last line."""
    python = install(peer) if peer.packages else Path(sys.executable)
    command = [str(python), str(SCRIPTS / f"{peer.script}.py"), address, str(count), *peer.words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"it took more than {SECONDS} seconds") from None
    if done.returncode:
        raise NotInstalled((done.stderr.strip().splitlines() or ["it failed"])[-1])
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
