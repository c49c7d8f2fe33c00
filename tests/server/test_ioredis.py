"""Node's ioredis, where Node is there: what the colleagues of Python people use."""

import json
import shutil
import subprocess
from pathlib import Path

from tests.server.running import Server

PROGRAM = """
const Redis = require("ioredis");
(async () => {
  const client = new Redis(Number(process.argv[2]), "127.0.0.1");
  await client.call("SPACE", process.argv[3]);
  const put = (job) => client.call("JOBS.PUT", JSON.stringify(job));
  const id = JSON.parse(await put({queue: "emails", data: [1]}));
  const batch = await client.multi()
    .call("JOBS.LENGTH", JSON.stringify({queue: "emails"}))
    .call("JOBS.POP", JSON.stringify({queue: "emails", worker: "node"}))
    .exec();
  const [[, length], [, popped]] = batch;
  const refused = await put({queu: "x"}).catch((error) => error.message);
  const jobs = JSON.parse(popped);
  console.log(JSON.stringify({id, length: JSON.parse(length), popped: jobs[0].id, refused}));
  client.disconnect();
})();
"""


def install(folder: Path) -> bool:
    """Whether ioredis could be had: a machine may lack Node, or the way to its packages."""
    npm = shutil.which("npm")
    if npm is None:
        return False
    command = [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder)]
    try:
        done = subprocess.run([*command, "ioredis@5"], capture_output=True, timeout=12)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def test_ioredis_connects_and_calls(server: Server, space: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not install(tmp_path):
        return  # other clients are tested without it
    (tmp_path / "main.cjs").write_text(PROGRAM)

    done = subprocess.run(
        [node, "main.cjs", str(server.resp_port), space],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=60,
    )

    answer = json.loads(done.stdout)
    assert (answer["length"], answer["popped"]) == (1, answer["id"])
    assert answer["refused"].startswith("BAD_INPUT")
