import { HoldfastClient, HoldfastError, NoteModel, ThingModel } from "./model.js";

declare const process: { argv: string[] };

async function all(client: HoldfastClient): Promise<void> {
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

async function only(client: HoldfastClient, ...attributes: (keyof typeof ThingModel.columns)[]) {
  return (await client.select(ThingModel, { attributes })).items[0]!;
}

async function show(client: HoldfastClient): Promise<void> {
  const { id, name, rank, hits, notes, lastSeen } = await only(client);
  console.log(id, name, rank, hits, (notes || []).join(), lastSeen.getTime());
}

async function loaded(client: HoldfastClient): Promise<void> {
  const lastSeen = new Date(1000);
  await client.put(ThingModel, [{ name: "one", rank: 77, hits: 5, notes: ["x"], lastSeen }]);
  const some = await only(client, "notes", "name");
  some.notes!.push("y");
  await client.put(ThingModel, [some]);
  await show(client);

  const keyless = await only(client, "notes");
  keyless.notes = ["z"];
  await client.put(ThingModel, [keyless]);
  await show(client);
  await client.put(ThingModel, [{ ...keyless, rank: 78 }]);
  await show(client);

  const whole = await only(client);
  whole.hits = null;
  whole.rank = 0;
  await client.put(ThingModel, [whole]);
  await show(client);

  const ids = await client.put(ThingModel, [{ ...(await only(client)), name: "two" }]);
  console.log(ids.join(), await client.count(ThingModel), await client.count(NoteModel));
}

async function failure(work: Promise<unknown>): Promise<string> {
  return work.then(() => "fine", (error) => (error as HoldfastError).code || error.message);
}

async function checks(client: HoldfastClient): Promise<void> {
  const bad: object[] = [
    {}, { name: 5 }, { name: "a", size: "xl" }, { name: "a", code: "äöüß" }, { name: "a", rank: 1.5 },
    { name: "a", hits: -1 }, { name: "a", lastSeen: new Date(NaN) }, { name: "a", tags: ["x"] },
    { name: "a", notes: [1] }, { name: "a", sizes: { x: "y" } }, { name: null },
    { name: "b", code: "äöü", size: 'l"x', ratio: 2 },
  ];
  for (const object of bad) {
    console.log(await failure((async () => client.put(ThingModel, [object]))()));
  }
  const everything = [{ attribute: "id", op: "ALL", values: [] }] as const;
  const set = (attribute: "rank" | "size" | "name" | "ratio", value: unknown) =>
    failure((async () => client.update(ThingModel, everything, [{ attribute, op: "SET", value }]))());
  console.log(await set("rank", "many"));
  console.log(await set("size", "xl"));
  console.log(await set("name", null));
  console.log(await set("ratio", 3));
  const filter = { attribute: "rank", op: "=", values: ["7"] } as const;
  console.log(await failure((async () => client.count(ThingModel, [filter]))()));
}

async function versions(client: HoldfastClient): Promise<void> {
  await client.put(ThingModel, [{ name: "one" }]);
  const [mine, theirs] = [await only(client), await only(client)];
  const copied = { ...theirs };
  theirs.rank = 1;
  await client.put(ThingModel, [theirs]);
  theirs.rank = 2;
  console.log(await failure(client.put(ThingModel, [theirs])));
  console.log(await failure(client.put(ThingModel, [mine])));
  console.log(await failure(client.put(ThingModel, [copied])));
  const keyless = await only(client, "rank");
  keyless.rank = 9;
  await client.put(ThingModel, [theirs]);
  console.log(await failure(client.put(ThingModel, [keyless])), (await only(client)).rank);
}

async function batches(client: HoldfastClient): Promise<void> {
  const batch = client.batch().put(ThingModel, [{ name: "one" }, { name: "two" }]);
  batch.put(NoteModel, [{ text: "hello", stars: 2 }], 3600);
  batch.update(
    ThingModel,
    [{ attribute: "id", op: "ALL", values: [] }],
    [{ attribute: "rank", op: "INCR", value: 1 }],
  );
  await batch.run();
  console.log(batch.ids.slice(0, 2).join(), (await only(client)).rank);

  const [mine, theirs] = [await only(client), await only(client)];
  await client.put(ThingModel, [theirs]);
  const stale = client.batch().delete(NoteModel, []).put(ThingModel, [mine]);
  console.log(await failure(stale.run()), await client.count(NoteModel));
  const stars = (await client.select(NoteModel)).items[0]!.stars;
  const counts = await Promise.all(Array.from({ length: 40 }, () => client.count(ThingModel)));
  console.log(stars, counts.length);
}

async function large(client: HoldfastClient): Promise<void> {
  const some = await only(client, "misc");
  console.log(typeof some.misc![0]);
  some.misc!.push(1);
  await client.put(ThingModel, [some]);
  console.log(await failure(only(client, "rank")));
  console.log(await failure(only(client, "sizes")));
}

async function secure(url: string, password: string): Promise<void> {
  const wrong = new HoldfastClient(url, { user: "ann", password: "wrong-password" });
  console.log(await failure(wrong.count(ThingModel)));
  const right = new HoldfastClient(url, { user: "ann", password });
  console.log((await right.put(ThingModel, [{ name: "safer" }])).join());
  const token = new HoldfastClient(url, { token: process.argv[5]! });
  console.log(await failure(token.count(ThingModel)));
}

async function main(): Promise<void> {
  const [, , what, url] = process.argv;
  if (what === "secure") {
    return secure(url!, process.argv[4]!);
  }
  if (what === "silent") {
    const slow = new HoldfastClient(url, { timeoutMs: 50 });
    return console.log(await failure(slow.count(ThingModel)));
  }
  const options = { space: what!, connections: 2, timeoutMs: 20000 };
  const scenarios = { all, loaded, checks, versions, batches, large };
  await scenarios[what as keyof typeof scenarios](new HoldfastClient(url, options));
}

main();
