"""`holdfast events`: from files to a store."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import holdfast
from holdfast.cli import main

SCHEMA = """
view:
  - targets: ["['viewers']"]
    add: visitor
"""


def run(folder: Path, command: str, *arguments: str, input: str | bytes = "") -> Result:
    data = ["--data", str(folder / "store")]
    return CliRunner().invoke(main, ["events", command, *data, *arguments], input=input)


def view(visitor: object) -> str:
    return json.dumps({"name": "view", "attributes": {"visitor": visitor}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert run(tmp_path, "deploy", input=SCHEMA).output == "deployed default\n"
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        f"{view('ann')}\n{view('bob')}\n",
        f"\n{view('ann')}\n\n{view('bob')}",
        f"[{view('ann')},\n {view('bob')}]",
        f"[{view('ann')}, {view('bob')}]",
    ],
)
def test_events_come_one_on_each_line_or_as_an_array(folder: Path, text: str) -> None:
    result = run(folder, "send", input=text)

    assert (result.exit_code, result.output) == (0, "accepted 2 events\n")
    with holdfast.open(folder / "store") as store:
        assert store.events.gross("viewers") == 2


def test_one_event_may_be_spread_over_lines(folder: Path) -> None:
    text = json.dumps(json.loads(view("ann")), indent=2)

    assert run(folder, "send", input=text).output == "accepted 1 event\n"


def test_bad_events_are_named_by_their_position(folder: Path) -> None:
    result = run(folder, "send", input=f"{view('ann')}\n{view({})}\n{view('bob')}\n")

    assert result.exit_code == 3
    assert result.stdout == "accepted 2 events\n"
    assert result.stderr.startswith("event 1: this is not an event")


def test_lines_that_are_no_json_are_named_by_their_position_too(folder: Path) -> None:
    deep = "[" * 100_000
    text = "\n".join([view("ann"), "{bad", view({}), '{"name":"\xff"}', deep, "5", view("bob")])
    result = run(folder, "send", "--json", input=text.encode("latin-1"))

    assert result.exit_code == 3
    reply = json.loads(result.stdout)
    assert reply["accepted"] == 2
    assert [error["position"] for error in reply["errors"]] == [1, 2, 3, 4, 5]


def test_no_events_are_no_mistake(folder: Path) -> None:
    assert run(folder, "send", input="\n").output == "accepted 0 events\n"
    assert run(folder, "explain", input="").exit_code == 0


def test_an_explanation_writes_nothing(folder: Path) -> None:
    result = run(folder, "explain", "--json", input=view("ann"))

    [explained] = json.loads(result.output)["explanations"]
    assert explained["handlers"][0]["keys"] == ["viewers"]
    with holdfast.open(folder / "store") as store:
        assert store.events.gross("viewers") == 0


def test_problems_of_a_schema_are_listed(folder: Path) -> None:
    result = run(folder, "deploy", "--name", "bad", input='{"a": 1, "b": 2}')

    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 2


def test_text_that_is_no_json_is_refused(folder: Path) -> None:
    for text in (b"hello", b'{"name":"\xff"}', b"[" * 100_000):
        result = run(folder, "send", "--json", input=text)

        assert result.exit_code == 1
        error = json.loads(result.stderr)["error"]
        assert error["code"] == "failed"
        assert error["message"].startswith("the events are not JSON: ")


def test_events_go_to_a_space_of_their_own(folder: Path) -> None:
    run(folder, "deploy", "--space", "other", input=SCHEMA)

    run(folder, "send", "--space", "other", input=view("ann"))

    with holdfast.open(folder / "store") as store:
        assert store.events.gross("viewers") == 0
        assert store.space("other").events.gross("viewers") == 1


def test_sizes_numbers_windows_and_several_keys_are_shown(tmp_path: Path) -> None:
    schema = {
        "buy": [
            {"targets": ["['buyers']", "[what]"], "add": "who"},
            {"targets": ["['sales']", "[@day]"], "aggregate": "price"},
            {"targets": ["['best']", "[@day]"], "count_frequency": "what", "weight": "price"},
        ]
    }
    run(tmp_path, "deploy", input=json.dumps(schema))
    bought = [("ann", "tea", 4), ("bob", "tea", 6), ("ann", "jam", 1)]
    lines = [
        json.dumps({"name": "buy", "attributes": {"who": who, "what": what, "price": price}})
        for who, what, price in bought
    ]
    run(tmp_path, "send", input="\n".join(lines))

    sizes = run(tmp_path, "sizes", "buyers:").output.splitlines()
    both = run(tmp_path, "members", "buyers:tea", "buyers:jam", "--op", "intersection", "--json")
    top = run(tmp_path, "top", "best:{day}", "--last", "7d").output.splitlines()
    numbers = json.loads(run(tmp_path, "aggregate", "sales:{day}", "--last", "7d", "--json").output)

    count = run(tmp_path, "count", "buyers:tea", "buyers:jam").output
    shared = run(tmp_path, "count", "buyers:tea", "buyers:jam", "--op", "intersection").output

    assert count == "3 in all, 2 different\n"
    assert shared == "3 in all, 1 different in every key\n"
    assert [line.split() for line in sizes[1:]] == [["buyers:jam", "1"], ["buyers:tea", "2"]]
    assert [each["value"] for each in json.loads(both.output)["members"]] == ["ann"]
    assert [line.split() for line in top[1:]] == [["tea", "10"], ["jam", "1"]]
    assert (numbers["sum"], numbers["max"]) == (11, 6)
    assert run(tmp_path, "aggregate", "sales:{day}", "--last", "7d").exit_code == 0


def test_background_fan_outs_and_look_ups_in_vain_are_shown(tmp_path: Path) -> None:
    fan = {"targets": ["[user].fans.feed"], "add": "post", "fan_out": "background"}
    schema = {"fan": [{"targets": ["[user].fans"], "add": "fan"}], "post": [fan]}
    run(tmp_path, "deploy", input=json.dumps(schema))
    fans = {"name": "fan", "attributes": {"user": "ann", "fan": ["a", "b", "c"]}}
    run(tmp_path, "send", input=json.dumps(fans))
    with holdfast.open(tmp_path / "store") as store:
        store.events.configure(looked_up_members=2)
    post = json.dumps({"name": "post", "attributes": {"user": "ann", "post": "p"}})
    vain = json.dumps({"name": "post", "attributes": {"user": "nobody", "post": "p"}})

    explained = run(tmp_path, "explain", input=f"{post}\n{vain}").output
    run(tmp_path, "send", input=post)

    assert "post[0]: add 3 keys in the background" in explained
    assert "nobody:fans is unknown: the look-up finds nothing" in explained
    shown = run(tmp_path, "fan-outs").output.splitlines()[1].split()
    assert (shown[0], shown[2]) == ("post[0]", "3")


def test_a_schema_of_flux_is_deployed_in_its_dialect(tmp_path: Path) -> None:
    text = '{"foo": "bar"} // comments and all'

    result = run(tmp_path, "deploy", "--dialect", "flux", "--name", "flux", input=text)

    assert result.output == "deployed flux\n"


@pytest.mark.parametrize(("unit", "steps"), [("hour", 25), ("day", 31), ("month", 13)])
def test_a_series_without_dates_shows_the_latest_steps(folder: Path, unit: str, steps: int) -> None:
    schema = {"view": [{"targets": ["['by']", f"[@{unit}]"], "add": "visitor"}]}
    run(folder, "deploy", input=json.dumps(schema))
    run(folder, "send", input=view("ann"))

    result = run(folder, "series", f"by:{{{unit}}}", "--json")

    values = [point["value"] for point in json.loads(result.output)["points"]]
    assert steps - 1 <= len(values) <= steps + 1
    assert sum(values) == 1


def test_percentiles_are_shown_to_the_digits_that_are_right(tmp_path: Path) -> None:
    schema = {"buy": [{"targets": ["['sales']"], "aggregate": "price"}]}
    run(tmp_path, "deploy", input=json.dumps(schema))
    bought = [{"name": "buy", "attributes": {"price": 37}}, {"name": "buy", "attributes": {}}]
    run(tmp_path, "send", input=json.dumps(bought))

    rows = [line.split() for line in run(tmp_path, "aggregate", "sales").output.splitlines()]

    assert all(len(row[1]) <= 5 for row in rows if row[0].startswith("p"))


def test_averages_and_percentiles_of_a_series_are_short_too(tmp_path: Path) -> None:
    schema = {"buy": [{"targets": ["['sales']", "[@day]"], "aggregate": "price"}]}
    run(tmp_path, "deploy", input=json.dumps(schema))
    bought = [{"name": "buy", "attributes": {"price": price}} for price in (10, 20, 41)]
    run(tmp_path, "send", input=json.dumps(bought))

    series = [run(tmp_path, "series", "sales:{day}", "--by", by).output for by in ("avg", "p95")]
    last = [lines.splitlines()[-1].split()[1] for lines in series]

    assert last[0] == "23.6667"
    assert len(last[1]) <= 5


@pytest.mark.parametrize("command", ["keys", "sizes"])
def test_keys_that_are_not_shown_are_not_kept_quiet(folder: Path, command: str) -> None:
    schema = {"view": [{"targets": ["[visitor]"], "add": "visitor"}]}
    run(folder, "deploy", input=json.dumps(schema))
    for name in ("ann", "bob", "cid smith", "dora"):
        run(folder, "send", input=view(name))

    first = run(folder, command, "--count", "3")
    rest = run(folder, command, "--after", "cid smith")

    assert "There are more: --after 'cid smith'" in first.stderr
    assert [line.split()[0] for line in rest.stdout.splitlines()] == ["key", "dora"]
    assert rest.stderr == ""


def test_counts_that_may_be_too_high_say_so(tmp_path: Path) -> None:
    schema = {
        "view": [{"targets": ["['top']"], "count_frequency": "visitor", "max_stored_values": 1}]
    }
    run(tmp_path, "deploy", input=json.dumps(schema))
    run(tmp_path, "send", input="\n".join(view(f"v{number}") for number in range(1_002)))

    assert "too high, by 1 at most" in run(tmp_path, "top", "top", "--count", "1000").stderr


@pytest.mark.parametrize(
    ("command", "key", "remark"),
    [
        ("top", "viewrs", "nothing is stored at viewrs, did you mean 'viewers'?\n"),
        ("members", "zzz", "nothing is stored at zzz; `holdfast events keys` lists all keys\n"),
        (
            "aggregate",
            "viewers",
            "viewers holds no numbers; `holdfast events members viewers` reads what it holds\n",
        ),
        ("sizes", "zzz", "no keys begin with zzz\n"),
    ],
)
def test_a_read_that_finds_nothing_says_why(
    folder: Path, command: str, key: str, remark: str
) -> None:
    run(folder, "send", input=view("ann"))

    result = run(folder, command, key)

    assert (result.exit_code, result.stdout, result.stderr) == (0, "", remark)


@pytest.mark.parametrize("name", ["view", "x" * 300])
def test_an_event_in_place_of_a_file_is_answered_with_the_way_to_send_it(
    folder: Path, name: str
) -> None:
    refused = run(folder, "explain", f'{{"name": "{name}"}}')

    assert refused.exit_code == 1
    assert "is not a file. To give JSON itself, send it on standard input." in refused.stderr
    assert len(refused.stderr) < 350


def test_an_event_without_a_handler_is_explained_as_such(folder: Path) -> None:
    assert run(folder, "explain", input='{"name": "other"}').output == (
        "other\n  no handler matches\n"
    )
