"""Node's ioredis, a client that many programs in JavaScript use."""

import json
from pathlib import Path

from tests.server.running import Server
from tests.tools import run as run_tool

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


def test_ioredis_connects_and_calls(server: Server, space: str, tmp_path: Path) -> None:
    (tmp_path / "main.cjs").write_text(PROGRAM)

    said = run_tool("node", "main.cjs", str(server.resp_port), space, cwd=tmp_path)

    answer = json.loads(said)
    assert (answer["length"], answer["popped"]) == (1, answer["id"])
    assert answer["refused"].startswith("BAD_INPUT")
