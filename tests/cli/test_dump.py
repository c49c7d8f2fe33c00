"""`holdfast dump` and `holdfast load`: entities, rows and whole spaces to a file and back."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.keys import prefix_range
from holdfast.limits import MAX_ATOMIC_LOAD_BYTES
from tests.cli.conftest import Command
from tests.cli.running import holdfast as run

SCHEMA = """
schema: shop
tables:
  Users:
    strict: true
    columns: {name: {type: Text, options: {max_len: 40}}, photo: {type: Binary}}
    indexes: [{type: compound, columns: [name]}]
"""
ROWS: dict[str, Any] = {
    "table": "rows",
    "attributes": {
        "name": "string",
        "count": "int",
        "large": "long",
        "price": "decimal",
        "raw": "blob",
        "seen": "timestamp",
        "tags": "set<string>",
        "more": "json",
        "open": "boolean",
    },
    "index": [{"type": "hash", "attribute": "name"}],
}
PEOPLE = 1_200


@pytest.fixture
def users(store: holdfast.Store) -> holdfast.Store:
    store.entities.deploy(SCHEMA)
    people = [{"id": f"u{n:04}", "name": f"Ann {n}", "photo": b"\0\xff"} for n in range(PEOPLE)]
    store.entities.put_raw("shop.Users", people)
    return store


@pytest.fixture
def rows(store: holdfast.Store) -> holdfast.Store:
    store.tables.create(ROWS)
    store.tables.put("rows", {"name": 'Ann, "the\nfirst"', "count": -3, "large": 2**62})
    store.tables.put("rows", {"name": "Bob", "price": "1.50", "raw": b"\0\xff", "_ttl": 3600})
    more = {"seen": "2026-01-02T03:04:05.006Z", "tags": ["b", "a"], "more": {"a": [1, None]}}
    store.tables.put("rows", {"name": "Cid", "open": False, **more})
    return store


def everyone(store: holdfast.Store) -> list[tuple[str, object]]:
    ids = [f"u{n:04}" for n in range(PEOPLE)]
    return [(each.id, each.properties) for each in store.entities.get_raw("shop.Users", ids)]


def all_rows(store: holdfast.Store) -> list[Any]:
    """All of them, with what is left of a life rounded to a minute."""
    found = list(store.tables.scan("rows", with_ttl=True, form="json"))
    return [{**row, "_ttl": row["_ttl"] and round(row["_ttl"] / 60)} for row in found]


def test_a_dump_of_entities_is_loaded_into_an_empty_table(
    command: Command, users: holdfast.Store, tmp_path: Path
) -> None:
    before = everyone(users)

    for kind, *atomic in (["ndjson"], ["bson"], ["json"], ["ndjson", "--atomic"]):
        dumped = command("dump", "shop.Users", "--format", kind, "-o", tmp_path / "dump", "--json")
        users.entities.drop("shop.Users")
        users.entities.deploy(SCHEMA)
        loaded = command("load", "shop.Users", tmp_path / "dump", "--json", *atomic)

        assert (dumped.json["count"], loaded.json["count"]) == (PEOPLE, PEOPLE)
        assert everyone(users) == before
    assert command("check").code == 0


def test_a_dump_of_rows_is_loaded_into_an_empty_table(
    command: Command, rows: holdfast.Store, tmp_path: Path
) -> None:
    before = all_rows(rows)

    for kind, *atomic in (["ndjson"], ["csv"], ["json"], ["csv", "--atomic"]):
        dumped = command("dump", "rows", "--format", kind, "-o", tmp_path / "dump", "--json")
        rows.tables.drop("rows")
        rows.tables.create(ROWS)
        loaded = command("load", "rows", tmp_path / "dump", "--format", kind, "--json", *atomic)

        assert (dumped.json["count"], loaded.json["count"]) == (3, 3), loaded.json
        assert all_rows(rows) == before


def fill(store: holdfast.Space) -> None:
    """Something in every layer, some of it with an end."""
    store.entities.deploy(SCHEMA)
    store.entities.put_raw("shop.Users", [{"id": "a", "name": "Ann", "photo": b"\0"}])
    store.tables.create(ROWS)
    store.tables.put("rows", {"name": "Bob", "_ttl": 3600})
    store.events.deploy({"view": [{"targets": ["['pages']"], "count_frequency": "page"}]})
    store.events.send({"name": "view", "attributes": {"page": "home"}})
    store.jobs.put("emails", "Send", {"to": "ann"}, id="first", tags=["x"])
    store.jobs.pop("emails", worker="w1")
    store.jobs.put("emails", id="later", delay=60)
    store.metrics.define({"hits": {}})
    store.metrics.incr("hits")


def pairs(store: holdfast.Space) -> dict[bytes, bytes]:
    """All that is stored in a space, to the byte."""
    with store.view() as view:
        reader = view.raw
        found = reader.scan(*prefix_range(reader.space))
        return {key[len(reader.space) :]: value for key, value in found}


def test_a_whole_space_is_loaded_into_an_empty_one_and_is_the_same(
    command: Command, store: holdfast.Store, tmp_path: Path
) -> None:
    fill(store)
    file = tmp_path / "all.ndjson"

    dumped = command("dump", "all", "-o", file, "--json")
    loaded = command("load", "all", file, "--space", "copy", "--json")
    at_once = command("load", "all", file, "--space", "second", "--json", "--atomic")

    assert dumped.json["count"] == loaded.json["count"] == len(pairs(store)) > 20
    assert at_once.json["count"] == loaded.json["count"]
    again = command("dump", "all", "--space", "copy").bytes
    assert again == command("dump", "all", "--space", "second").bytes == file.read_bytes()
    copy = store.space("copy")
    assert [job.id for job in copy.jobs.multiget("first", "later")] == ["first", "later"]
    assert copy.events.top("pages")[0].value == "home"
    assert command("check").code == 0


def test_a_whole_space_is_refused_where_something_is(
    command: Command, store: holdfast.Store, tmp_path: Path
) -> None:
    fill(store)
    command("dump", "all", "-o", tmp_path / "all.ndjson")
    before = pairs(store)

    result = command("load", "all", tmp_path / "all.ndjson", "--json")

    assert (result.code, result.error["code"]) == (1, "space_not_empty")
    assert pairs(store) == before


def test_a_dump_goes_through_a_pipe(command: Command, users: holdfast.Store) -> None:
    dump = command("dump", "shop.Users")

    assert dump.out.count("\n") == PEOPLE
    assert dump.err == "1,200 entities\n"
    assert command("load", "shop.Users", input=dump.bytes).out == "loaded 1,200 entities\n"


def test_one_is_no_plural(command: Command, store: holdfast.Store) -> None:
    fill(store)

    assert command("dump", "shop.Users").err == "1 entity\n"
    assert command("dump", "rows").err == "1 row\n"


def test_a_report_and_a_dump_do_not_mix(command: Command, users: holdfast.Store) -> None:
    result = command("dump", "shop.Users", "--json")

    assert result.code == 2
    assert "give -o FILE" in result.err


def test_an_unknown_table_or_format_is_refused_with_what_there_is(
    command: Command, users: holdfast.Store, tmp_path: Path
) -> None:
    table = command("dump", "shop.Usres", "-o", tmp_path / "dump", "--json")
    csv = command("dump", "shop.Users", "--format", "csv")
    missing = command("load", "shop.Users", tmp_path / "nowhere")

    assert (table.code, table.error["code"]) == (1, "invalid_table")
    assert "shop.Users" in table.error["hint"]
    assert not (tmp_path / "dump").exists()
    assert (csv.code, missing.code) == (2, 1)
    assert "ndjson, json, bson" in csv.err


def test_a_name_of_two_layers_says_which(command: Command, store: holdfast.Store) -> None:
    store.entities.deploy(SCHEMA)
    store.tables.create({**ROWS, "table": "shop.Users"})

    either = command("dump", "shop.Users", "--json", "-o", "-")
    ambiguous = command("dump", "shop.Users")

    assert either.code == 2
    assert "entities:shop.Users or tables:shop.Users" in ambiguous.err
    assert command("dump", "tables:shop.Users").err == "0 rows\n"
    assert command("dump", "entities:shop.Users").err == "0 entities\n"


def lines(count: int, bad: int | None = None, text: str = "{not json") -> str:
    """Lines of a dump that take several pieces, with a bad one among them."""
    entity = '{{"id": "n{0}", "properties": {{"name": "{0}", "photo": null}}, "x": "{1}"}}\n'
    return "".join(
        f"{text}\n" if number == bad else entity.format(number, "-" * 100)
        for number in range(1, count + 1)
    )


@pytest.mark.parametrize("bad", [1, 2, 6_001])
def test_a_bad_line_is_named_with_how_many_were_loaded_before_it(
    command: Command, users: holdfast.Store, bad: int
) -> None:
    result = command("load", "shop.Users", "--json", input=lines(6_001, bad))

    ends = {1: "Nothing was loaded", 2: "1 entity was loaded before it"}
    assert result.code == 1
    assert result.error["message"].startswith(f"line {bad}: ")
    assert result.error["message"].endswith(ends.get(bad, "6,000 entities were loaded before it"))
    found = users.entities.get_raw("shop.Users", [f"n{bad - 1}", f"n{bad + 1}"])
    assert len([each for each in found if each.id]) == (1 if bad > 1 else 0)


def test_an_entity_that_its_table_refuses_is_named_by_its_line(
    command: Command, users: holdfast.Store
) -> None:
    refused = '{"id": "long", "properties": {"name": "' + "x" * 41 + '"}}'

    result = command("load", "shop.Users", "--json", input="\n\n" + lines(2_600, 2_500, refused))

    assert result.error["message"].startswith("line 2502: 'long' is refused: ")
    assert result.error["message"].endswith("2,499 entities were loaded before it")


def test_an_atomic_load_leaves_nothing_behind(command: Command, users: holdfast.Store) -> None:
    before = users.entities.stats()["shop.Users"].num_rows
    text = lines(2_000, 1_999)
    array = "[" + ",".join(text.splitlines()[:-2]) + ', {"id": 7}]'

    for each in (text, array):
        result = command("load", "shop.Users", "--atomic", "--json", input=each)

        assert result.code == 1
        assert result.error["message"].endswith("Nothing was loaded")
        assert "1999" in result.error["message"]
        assert users.entities.stats()["shop.Users"].num_rows == before


def test_an_atomic_load_of_rows_leaves_nothing_behind(
    command: Command, rows: holdfast.Store
) -> None:
    before = all_rows(rows)
    some = '{"name": "x"}\n{"name": "y"}\n{"name": 7, "wrong": 1}\n'

    result = command("load", "rows", "--atomic", "--json", input=some)
    in_steps = command("load", "rows", "--json", input=some)

    assert result.error["message"].startswith("line 3: ")
    assert all_rows(rows) != before
    assert (in_steps.code, in_steps.json["count"]) == (3, 2)
    assert [each["line"] for each in in_steps.json["refusals"]] == [3]


def test_an_atomic_load_has_a_bound(command: Command, users: holdfast.Store) -> None:
    large = '{"id": "a", "properties": {}, "more": "' + "x" * MAX_ATOMIC_LOAD_BYTES + '"}\n'

    result = command("load", "shop.Users", "--atomic", "--json", input=large)

    assert (result.code, result.error["code"]) == (1, "value_too_large")
    assert "without --atomic" in result.error["hint"]


def test_what_is_no_dump_is_called_by_its_name(command: Command, users: holdfast.Store) -> None:
    for data, what in {
        b"name,photo\nann,none\n": "line 1: ",
        b"hello": "line 1: ",
        b"hi": "line 1: ",
        b"\xef\xbb\xbfnot json": "line 1: ",
        b"[1, 2": "not JSON",
        gzip.compress(b"{}"): "gzip",
        b"\x05\x00\x00\x00": "document 1: ",
    }.items():
        result = command("load", "shop.Users", input=data)

        assert (result.code, what in result.err) == (1, True), (data, result.err)


def test_documents_before_a_damage_are_loaded_and_counted(
    command: Command, users: holdfast.Store
) -> None:
    whole = command("dump", "shop.Users", "--format", "bson").bytes

    result = command("load", "shop.Users", "--json", input=whole[:-1])
    nothing = command("load", "shop.Users", "--json", "--atomic", input=whole[:-1])

    cut = f"document {PEOPLE}: the last document is cut short"
    assert result.error["message"] == f"{cut}. 1,199 entities were loaded before it"
    assert nothing.error["message"] == f"{cut}. Nothing was loaded"


def test_a_byte_order_mark_and_any_array_are_read(command: Command, users: holdfast.Store) -> None:
    entity = {"id": "z", "properties": {"name": "Zoe"}}
    marked = b"\xef\xbb\xbf" + json.dumps(entity).encode()
    array = json.dumps([entity, entity], indent=4)

    assert command("load", "shop.Users", input=marked).out == "loaded 1 entity\n"
    assert command("load", "shop.Users", input=array).out == "loaded 2 entities\n"


def test_csv_is_known_by_its_first_line(command: Command, rows: holdfast.Store) -> None:
    text = '\ufeffname,count,_ttl\nx,1,\n"y\nz",2,60\n'

    result = command("load", "rows", input=text)
    at_once = command("load", "rows", "--atomic", input=text.replace("\n", "\r\n"))

    assert (result.out, at_once.out) == ("loaded 2 rows\n", "loaded 2 rows\n")
    found = {row["name"]: row["count"] for row in all_rows(rows)}
    assert (found["x"], found["y\nz"]) == (1, 2)


def test_a_first_line_that_names_no_attributes_is_told(
    command: Command, rows: holdfast.Store
) -> None:
    misspelt = command("load", "rows", "--json", input="name,cuont\nx,1\n")
    text = command("load", "rows", "--json", input="hello, this is a text\nof two lines\n")

    assert "no attribute 'cuont', did you mean 'count'?" in misspelt.error["message"]
    assert misspelt.error["message"].endswith("Nothing was loaded")
    assert text.error["message"].startswith("line 1: the table has no attribute 'hello'")
    assert "lines of JSON" in text.error["hint"]


def test_of_many_refused_rows_some_are_shown_and_all_are_counted(
    command: Command, rows: holdfast.Store
) -> None:
    wrong = '{"name": "x", "count": "many"}\n' * 2_500

    shown = command("load", "rows", input=wrong)
    told = command("load", "rows", "--json", input=wrong).json

    assert (shown.code, shown.out) == (3, "loaded 0 rows\n")
    assert len(shown.err.splitlines()) == 21
    assert shown.err.endswith("2,480 more lines refused\n")
    assert (told["refused"], len(told["refusals"])) == (2_500, 1_000)


def test_a_dump_of_something_else_is_told_before_anything_is_made(
    command: Command, rows: holdfast.Store, tmp_path: Path
) -> None:
    command("dump", "all", "-o", tmp_path / "all.ndjson")
    command("dump", "rows", "-o", tmp_path / "rows.ndjson")

    of_all = command("load", "rows", tmp_path / "all.ndjson", "--json")
    of_rows = command("load", "all", tmp_path / "rows.ndjson", "--space", "new", "--json")
    empty = command("load", "all", "--space", "new", "--json", input="\n")

    assert of_all.error["message"] == "this is a dump of a whole space"
    assert "load all FILE" in of_all.error["hint"]
    assert of_rows.error["message"] == "this is not a dump of a whole space"
    assert empty.error["message"] == "the file is empty"
    assert "new" not in command("space", "list").out


def test_a_link_and_a_pipe_stay_what_they_are(
    command: Command, rows: holdfast.Store, tmp_path: Path
) -> None:
    rows.tables.delete("rows", {"name": "Bob"})  # the time it has left goes down
    whole = command("dump", "rows").bytes
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    results = [command("dump", "rows", "-o", each).code for each in (link, pipe)]
    read = os.read(reading, 1 << 20)
    os.close(reading)

    assert results == [0, 0]
    assert link.is_symlink()
    assert pipe.is_fifo()
    assert (tmp_path / "elsewhere").read_bytes() == read == whole


def test_a_device_that_is_full_is_an_error_and_stays_a_device(
    command: Command, rows: holdfast.Store
) -> None:
    result = command("dump", "rows", "-o", "/dev/full", "--json")

    assert Path("/dev/full").is_char_device()
    assert result.code == 1
    assert "No space left" in result.error["message"]


def test_a_row_of_csv_that_is_cut_is_named(command: Command, rows: holdfast.Store) -> None:
    result = command("load", "rows", "--format", "csv", input='name,count\nx,1\n"y\nz"\n')

    assert result.code == 1
    assert "line 4" in result.err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["entities", "stats"], "mdzctl"),
        (["tables", "export", "rows"], "holdfast dump"),
        (["tables", "import", "rows"], "holdfast load"),
        (["dump", "shop.Users", "--format", "jsonl"], "ndjson"),
    ],
)
def test_an_old_spelling_names_the_new_one(old: list[str], new: str) -> None:
    result = run(*old)

    assert result.code == 2
    assert new in result.err
