"""The clients in generated Go and TypeScript talk to a store."""

from pathlib import Path

import pytest

from holdfast.entities.codegen import Options, generate
from holdfast.entities.schema_file import parse_schema
from holdfast.store import Store
from tests.entities.json_door import json_door
from tests.entities.resp_door import resp_door
from tests.tools import run

SCHEMA = """
schema: shop
tables:
  Things:
    class: Thing
    primary: {type: compound, columns: [name]}
    columns:
      name: {type: Text, options: {required: true}}
      rank: {type: Int, default: 7}
      hits: {type: Uint}
      ratio: {type: Float}
      open: {type: Bool}
      seen: {type: Timestamp, clientName: lastSeen, default: $now}
      raw: {type: Binary}
      tags: {type: Set, options: {subtype: Text}}
      notes: {type: List, options: {subtype: Text}}
      sizes: {type: Map, options: {subtype: Int}}
      misc: {type: List}
    indexes:
      - {type: compound, columns: [rank, name]}
"""

GO = """
package main

import (
	"fmt"
	"os"
	"time"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	client, err := HoldfastDial(os.Args[1])
	must(err)
	defer client.Close()
	must(client.Ping())

	hits, ratio, open := uint64(18446744073709551615), 2.5, true
	first := NewThing()
	first.Name, first.Hits, first.Ratio, first.Open = "first", &hits, &ratio, &open
	first.LastSeen = time.UnixMilli(1577934245678).UTC()
	first.Raw = []byte{0, 255}
	first.Tags = map[string]struct{}{"a": {}, "b": {}}
	first.Notes = []string{"x", "y"}
	first.Sizes = map[string]int64{"l": 3}
	first.Misc = []interface{}{int64(1), "two", nil}
	second := NewThing()
	second.Name = "second"
	ids, err := HoldfastPut(client, 0, first, second)
	must(err)
	fmt.Println(ids, first.Id)

	found, err := HoldfastGet[Thing](client, "first|", "nobody", "second|")
	must(err)
	one, two := found[0], found[1]
	fmt.Println(len(found), one.Name, *one.Hits, *one.Ratio, *one.Open, one.LastSeen.UnixMilli())
	fmt.Println(one.Raw, len(one.Tags), one.Notes, one.Sizes, one.Misc)
	fmt.Println(two.Id, two.Rank, two.Hits == nil, two.Tags == nil)

	changed, err := HoldfastUpdate[Thing](client,
		[]HoldfastFilter{HoldfastEq("rank", int64(7))},
		HoldfastIncr("rank", int64(1)), HoldfastSet("tags", map[string]struct{}{"c": {}}))
	must(err)
	page, total, err := HoldfastSelect[Thing](client, HoldfastQuery{
		Filters: []HoldfastFilter{HoldfastBetween("rank", int64(8), int64(9))},
		OrderBy: "rank", Descending: true, Limit: 1,
	})
	must(err)
	fmt.Println(changed, len(page), page[0].Name, page[0].Rank, total)

	_, _, err = HoldfastSelect[Thing](client, HoldfastQuery{
		Filters: []HoldfastFilter{HoldfastEq("open", true)},
	})
	fmt.Println(err, err.(*HoldfastError).Code)
	gone, err := HoldfastDelete[Thing](client, HoldfastAll())
	must(err)
	fmt.Println(gone)
}
"""

TYPESCRIPT = """
import { HoldfastClient, HoldfastError, ThingModel } from "./model.js";

declare const process: { argv: string[] };

async function main(): Promise<void> {
  const client = new HoldfastClient(process.argv[2]);
  const lastSeen = new Date(1577934245678);
  const ids = await client.put(ThingModel, [
    {
      name: "first",
      hits: 5,
      ratio: 2.5,
      open: true,
      lastSeen,
      raw: new Uint8Array([0, 255]),
      tags: new Set(["b", "a"]),
      notes: ["x", "y"],
      sizes: { l: 3 },
      misc: [1, "two", null, { $odd: 1 }],
    },
    { name: "second" },
  ]);
  console.log(ids.join(" "));
  const [one, two] = await client.get(ThingModel, ["first|", "nobody", "second|"]);
  console.log(one!.name, one!.hits, one!.ratio, one!.open, one!.lastSeen.getTime());
  const tags = Array.from(one!.tags!).sort();
  console.log(Array.from(one!.raw!).join(), tags.join(), one!.notes!.join());
  console.log(JSON.stringify([one!.sizes, one!.misc]), one!.tags instanceof Set);
  console.log(two!.id, two!.rank, two!.hits === undefined, two!.lastSeen instanceof Date);
  const changed = await client.update(
    ThingModel,
    [{ attribute: "rank", op: "=", values: [7] }],
    [{ attribute: "rank", op: "INCR", value: 1 }],
  );
  const page = await client.select(ThingModel, {
    filters: [{ attribute: "rank", op: "><", values: [8, 9] }],
    orderBy: "rank",
    descending: true,
    limit: 1,
  });
  console.log(changed, page.items.length, page.items[0]!.name, page.items[0]!.rank, page.total);
  try {
    await client.select(ThingModel, { filters: [{ attribute: "open", op: "=", values: [true] }] });
  } catch (error) {
    console.log((error as HoldfastError).code, (error as HoldfastError).status);
  }
  console.log(await client.count(ThingModel), await client.delete(ThingModel, []));
}

main();
"""


@pytest.fixture
def things(store: Store) -> Store:
    store.entities.deploy(SCHEMA)
    return store


def test_generated_go_talks_to_the_store(things: Store, tmp_path: Path) -> None:
    options = Options(package="main")
    (tmp_path / "model.go").write_text(generate([parse_schema(SCHEMA)], "go", options))
    (tmp_path / "main.go").write_text(GO)

    with resp_door(things) as port:
        lines = run(
            "go", "run", "model.go", "main.go", f"127.0.0.1:{port}", cwd=tmp_path
        ).splitlines()

    assert lines == [
        "[first| second|] first|",
        "2 first 18446744073709551615 2.5 true 1577934245678",
        "[0 255] 2 [x y] map[l:3] [1 two <nil>]",
        "second| 7 true true",
        "2 1 second 8 2",
        "No index matches the filter no_index",
        "2",
    ]


def test_generated_typescript_talks_to_the_store(things: Store, tmp_path: Path) -> None:
    (tmp_path / "model.ts").write_text(generate([parse_schema(SCHEMA)], "ts"))
    (tmp_path / "main.ts").write_text(TYPESCRIPT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    run("tsc", "--strict", "--target", "es2022", "--module", "es2022", "main.ts", cwd=tmp_path)

    with json_door(things) as url:
        lines = run("node", "main.js", url, cwd=tmp_path).splitlines()

    assert lines == [
        "first| second|",
        "first 5 2.5 true 1577934245678",
        "0,255 a,b x,y",
        '[{"l":3},[1,"two",null,{"$odd":1}]] true',
        "second| 7 true true",
        "2 1 second 8 2",
        "no_index 400",
        "2 2",
    ]
