"""Every route of Flux's HTTP API, its parameters and its errors."""

import json
from urllib.parse import quote

import pytest

from tests.compat.flux.conftest import ADD, Flux

GUIDE = {
    "client:gravity:action:follow:user": [
        {"targets": ["[followee].followers"], "add": "follower", "max_stored_values": 10_000}
    ],
    "client:gravity:action:post": [{"targets": ["[user].followers.feed"], "add": "post"}],
}


def add(key: str, value: str, score: int | None = None) -> list[object]:
    attributes = {"k": key, "v": value} | ({} if score is None else {"@score": score})
    return ["add", attributes]


@pytest.fixture
def two(flux: Flux) -> Flux:
    """x = {a@10, b@8}, y = {a@4, c@6, b@9, d@3}."""
    members = [("x", "a", 10), ("x", "b", 8), ("y", "a", 4), ("y", "c", 6), ("y", "b", 9)]
    flux.send(flux.deploy(ADD), *(add(*each) for each in members), add("y", "d", 3))
    return flux


# --- schemas --------------------------------------------------------------------------------------


def test_a_schema_is_known_by_the_hash_of_its_bytes(flux: Flux) -> None:
    assert flux.call("POST", "/schema", b"{}") == (
        200,
        {"id": "bf21a9e8", "uri": "/schema/bf21a9e8"},
    )
    assert flux.call("POST", "/schema", b"{}")[1]["id"] == "bf21a9e8"
    assert flux.call("POST", "/schema", b"{ }")[1]["id"] != "bf21a9e8"


def test_schemas_are_listed_in_the_order_of_their_first_posting(flux: Flux) -> None:
    ids = [flux.deploy({"e": [], "n": number}) for number in range(4)]
    flux.deploy({"e": [], "n": 0})

    assert flux.get("/schemas") == [{"id": id, "uri": f"/schema/{id}"} for id in ids]


def test_a_schema_comes_back_without_its_comments(flux: Flux) -> None:
    text = b'{ // which\n "foo": "b//ar" /* and\n why */ }'

    id = flux.call("POST", "/schema", text, **{"Content-Type": "application/x-www-form-urlencoded"})

    assert flux.get(f"/schema/{id[1]['id']}") == {"id": id[1]["id"], "schema": {"foo": "b//ar"}}


@pytest.mark.parametrize("text", [b"[]", b"7", b'{"a":', b"%", b""])
def test_what_is_no_object_is_no_schema(flux: Flux, text: bytes) -> None:
    """D5, D6."""
    status, answer = flux.call("POST", "/schema", text)

    assert status == 400
    assert set(answer) == {"error"}


# --- events ---------------------------------------------------------------------------------------


def test_the_fan_out_of_the_guide(flux: Flux) -> None:
    id = flux.deploy(GUIDE)
    follow = "client:gravity:action:follow:user"

    assert flux.send(id, [follow, {"follower": "user:4f", "followee": "user:50"}]) is None
    flux.send(id, ["client:gravity:action:post", {"user": "user:50", "post": "p1"}, "ignored"])

    assert flux.results("user:50:followers") == ["user:4f"]
    assert flux.results("user:4f:feed") == ["p1"]


def test_a_runtime_handler_runs_after_those_of_the_schema_and_sees_their_writes(
    flux: Flux,
) -> None:
    id = flux.deploy({"add": [{"targets": ["[u].followers"], "add": "v"}]})
    targets = {"@targets": ["[u].followers.feed"], "@add": "post", "@max_stored_values": "1"}

    flux.send(id, ["add", {"u": "ann", "v": "bob", "post": "p", **targets}])
    flux.send(id, ["add", {"u": "ann", "v": "cid", "post": "q", **targets}])
    flux.send(id, ["add", {"u": "ann", "v": "dan", "@targets": ["['x']"]}])

    assert flux.results("bob:feed") == flux.results("cid:feed") == ["q"]
    assert flux.results("x") == []


def test_events_may_be_an_object_or_none_at_all(flux: Flux) -> None:
    id = flux.deploy(ADD)

    assert flux.call("POST", f"/schema/{id}/events", {"add": {"k": "s", "v": "a"}}) == (200, None)
    assert flux.call("POST", f"/schema/{id}/events", []) == (200, None)
    assert flux.call("POST", f"/schema/{id}/events", [["add", None], ["add"]]) == (200, None)
    assert flux.results("s") == ["a"]


def test_a_bad_event_is_reported_and_the_others_run(flux: Flux) -> None:
    id = flux.deploy(ADD)

    answer = flux.send(id, add("s", "a"), ["add", "text"], "text", ["", {}], add("s", "b"))

    assert answer["accepted"] == 2
    assert [error["position"] for error in answer["errors"]] == [1, 2, 3]
    assert sorted(flux.results("s")) == ["a", "b"]


@pytest.mark.parametrize("body", [b'"text"', b"7", b'[["add",'])
def test_what_is_no_list_of_events_is_refused(flux: Flux, body: bytes) -> None:
    """D5, D6."""
    id = flux.deploy(ADD)

    status, answer = flux.call("POST", f"/schema/{id}/events", body)

    assert status == 400
    assert set(answer) == {"error"}


def test_events_for_an_unknown_schema_are_not_lost_silently(flux: Flux) -> None:
    """D2."""
    assert flux.call("POST", "/schema/12345678/events", []) == (404, {"error": "Not Found"})


def test_many_events_of_one_request_keep_their_order(flux: Flux) -> None:
    """D22: all of it is there when the answer comes."""
    id = flux.deploy({"set": [{"targets": ["['last']"], "add": "v", "max_stored_values": 1}]})

    flux.send(id, *(["set", {"v": str(number)}] for number in range(2_100)))

    assert flux.results("last") == ["2099"]
    assert flux.gross("last") == pytest.approx(2_100)


# --- query ----------------------------------------------------------------------------------------


def test_several_keys_are_united_newest_first(two: Flux) -> None:
    assert two.results("x", "y") == ["a", "b", "c", "d"]
    assert two.results("x", "x") == ["a", "b"]
    assert two.results("unknown") == []
    assert two.get("/query") == {"results": []}
    assert two.get("/query?keys=x") == {"results": ["a", "b"]}


@pytest.mark.parametrize(
    "key",
    ["a b", "a+b", "a&b=c", "50%", "\u00fc/\u00df", "\u65e5\u672c", "nul\0", "keys[]", ":", "#x"],
)
def test_a_key_may_be_any_text(flux: Flux, key: str) -> None:
    """D21: it is counted, too."""
    flux.send(flux.deploy(ADD), add(key, "v"))

    assert flux.results(key) == ["v"]
    assert flux.call("GET", f"/query?keys%5b%5d={quote(key, safe='')}")[1]["results"] == ["v"]
    assert (flux.distinct(key), flux.gross(key)) == (1, 1)


def test_a_blank_of_a_parameter_may_be_written_as_a_plus(flux: Flux) -> None:
    flux.send(flux.deploy(ADD), add("a b", "v"))

    assert flux.get("/query?keys[]=a+b") == {"results": ["v"]}
    assert flux.get("/query?keys[]=&keys[]=a%20b&max_results=&min_score=") == {"results": ["v"]}
    assert flux.get("/query?keys[]=a+b&max_results=9&max_results=1") == {"results": ["v"]}


def test_scores_bound_a_query(two: Flux) -> None:
    assert two.results("x", "y", max_score=8) == ["b", "c", "a", "d"]
    assert two.results("x", "y", min_score=8) == ["a", "b"]
    assert two.results("x", min_score=9, max_score=11) == ["a"]
    assert two.results("x", min_score=-5) == ["a", "b"]  # D16
    assert two.results("x", min_score=10) == []
    assert two.results("x", "y", maxScore="8abc", maxResults=2) == ["b", "c"]


@pytest.mark.parametrize(
    ("score", "found"),
    [
        ("8abc", ["a"]),
        (" 8", ["a"]),
        ("8.9", ["a"]),
        ("1_0", []),
        ("0x9", ["a", "b"]),
        ("\u0669", ["a", "b"]),
        ("9" * 40, []),
        ("-" + "9" * 40, ["a", "b"]),
    ],
)
def test_numbers_of_parameters_are_read_as_ruby_does(
    two: Flux, score: str, found: list[str]
) -> None:
    """Leading digits with a sign, and 0 if there are none; a negative one is no bound (D16)."""
    assert two.results("x", min_score=score) == found


def test_pages_hold_each_value_once(two: Flux) -> None:
    """D17, D23, D24."""
    id = two.deploy(ADD)
    two.send(id, *(add("z", f"v{number}", 5) for number in range(120)))
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = two.get("/query", keys=["y", "z", "x"], max_results=7, **cursor)
        found += page["results"]
        if "next" not in page:
            break
        assert len(page["results"]) == 7
        cursor = {"cursor": page["next"]}

    newest_first = [f"v{number}" for number in reversed(range(120))]
    assert found == ["a", "b", "c", *newest_first, "d"]


@pytest.mark.parametrize("wanted", ["", "0", "-1", "51", "abc"])
def test_a_page_has_fifty_results_unless_fewer_are_wanted(flux: Flux, wanted: str) -> None:
    flux.send(flux.deploy(ADD), *(add("k", str(number)) for number in range(60)))

    assert len(flux.results("k", max_results=wanted)) == 50


def test_a_cursor_that_no_answer_gave_is_refused(two: Flux) -> None:
    """D4."""
    status, answer = two.call("GET", "/query?keys[]=x&cursor=12")

    assert (status, answer) == (400, {"error": "invalid cursor"})


# --- counts ---------------------------------------------------------------------------------------


def test_distinct_counts_values_whose_highest_score_is_above(flux: Flux) -> None:
    id = flux.deploy(ADD)
    flux.send(
        id, *(add("k", *each) for each in (("a", 5), ("b", 6), ("a", 20), ("b", 2), ("c", 7)))
    )

    counts = [flux.distinct("k", min_score=score) for score in (0, 5, 6, 7, 19, 20)]

    assert counts == [3, 3, 2, 1, 1, 0]
    assert flux.distinct("k", min_score=-7) == 3  # D16


def test_distinct_of_several_keys_is_a_union_or_an_intersection(two: Flux) -> None:
    assert two.distinct("x", "y") == 4
    assert two.distinct("x", "y", op="nonsense") == 4
    assert two.distinct("x", "y", op="intersection") == 2
    assert two.distinct("x", op="intersection") == two.distinct("x") == 2
    assert two.distinct("x", "unknown", op="intersection") == 0


def test_gross_counts_scored_adds_once_and_others_each_time(flux: Flux) -> None:
    id = flux.deploy(ADD)
    for _ in range(3):
        flux.send(id, add("a", "v", 9), add("b", "v", 9), add("c", "v"), add("d", "v"))

    assert [flux.gross(key) for key in "abcd"] == [1, 1, 3, 3]
    assert (flux.gross("a", "b"), flux.gross("c", "d")) == (1, 6)
    assert (flux.gross("a", min_score=8), flux.gross("a", min_score=9)) == (1, 0)


def test_a_stored_union_is_a_snapshot(two: Flux) -> None:
    status, kept = two.call("POST", "/distinct?keys[]=x&keys[]=y&min_score=5")
    key = kept["key"]
    two.send(two.deploy(ADD), add("x", "later"))

    assert (status, kept["ttl"], len(key)) == (200, 300, 36)
    assert two.distinct(key) == 3
    assert (two.distinct(key, min_score=6), two.distinct(key, min_score=8)) == (2, 2)
    assert (two.results(key), two.gross(key)) == ([], 0)


def test_a_key_without_times_is_counted_and_stored_by_the_members_that_it_still_has(
    flux: Flux,
) -> None:
    native = Flux(flux.base.removesuffix("/flux"))
    json = {"Content-Type": "application/json"}
    handler = {"targets": ["['k']"], "add": "v", "max_stored_values": 2}
    native.call("POST", "/events/deploy", {"schema": {"add": [handler]}}, **json)
    for number, value in enumerate("abc"):  # "a" is evicted
        event = {"name": "add", "attributes": {"v": value}, "at": 1_000 * (number + 5)}
        native.call("POST", "/events/send", {"event": event}, **json)

    status, kept = flux.call("POST", "/distinct?keys[]=k&min_score=1")
    assert (flux.distinct("k", min_score=1), flux.gross("k", min_score=1)) == (2, 2)
    assert (status, flux.distinct(kept["key"])) == (200, 2)
    assert flux.distinct(kept["key"], min_score=6) == flux.distinct("k", min_score=6) == 1
    assert (flux.results(kept["key"]), flux.distinct("k")) == ([], 3)


def test_a_stored_union_may_be_asked_for_by_a_form(two: Flux) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    two.send(two.deploy(ADD), add("k\u00fcche", "e"))

    kept = two.call("POST", "/distinct", b"keys%5B%5D=x&keys[]=y", **form)[1]
    in_both = two.call("POST", "/distinct?keys[]=x", "keys[]=k\u00fcche".encode(), **form)[1]

    assert two.distinct(kept["key"]) == 4
    assert two.distinct(in_both["key"]) == 3


@pytest.mark.parametrize(
    ("method", "path", "error"),
    [
        ("GET", "/distinct?keys[]=a&max_score=", "max_score not supported"),
        ("POST", "/distinct?keys[]=a&max_score=1", "max_score not supported"),
        ("GET", "/gross?keys[]=a&max_score=1", "max_score not supported"),
        ("POST", "/distinct?keys[]=a&op=intersection", "intersection not supported"),
        ("GET", "/gross?keys[]=a&op=intersection", "intersection not supported"),
        ("GET", "/distinct", "keys[] is required"),
        ("POST", "/distinct", "keys[] is required"),
        ("GET", "/gross?keys[]=", "keys[] is required"),
    ],
)
def test_counts_that_flux_does_not_know_are_refused(
    flux: Flux, method: str, path: str, error: str
) -> None:
    """D3."""
    assert flux.call(method, path) == (400, {"error": error})


# --- top, up, and what is not there ---------------------------------------------------------------


def test_top_ranks_with_ties_by_value_descending(flux: Flux) -> None:
    """D7."""
    id = flux.deploy({"hit": [{"targets": ["['b']"], "count_frequency": "v"}]})
    flux.send(id, *(["hit", {"v": value}] for value in "aabbccdeee"))

    assert flux.get("/top", key="b") == [["e", 3.0], ["c", 2.0], ["b", 2.0], ["a", 2.0], ["d", 1.0]]
    assert flux.get("/top", key="b", max_results=2) == [["e", 3.0], ["c", 2.0]]
    assert len(flux.get("/top", key="b", max_results=0)) == 5
    assert flux.get("/top", key="unknown") == flux.get("/top") == []


def test_top_has_no_more_than_the_k_of_the_board(flux: Flux) -> None:
    handler = {"targets": ["['b']"], "count_frequency": "v", "max_stored_values": 2}
    id = flux.deploy({"hit": [handler]})

    flux.send(id, *(["hit", {"v": value}] for value in "aabc"))

    assert flux.get("/top", key="b", max_results=9) == [["a", 2.0], ["c", 1.0]]


def test_top_of_a_mere_set_is_empty(two: Flux) -> None:
    assert two.get("/top", key="x") == []


def test_up_says_that_the_store_takes_a_commit(flux: Flux) -> None:
    assert flux.get("/up") == {"redis": True}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/"),
        ("GET", "/nothing"),
        ("GET", "/sync"),  # D25
        ("GET", "/schema/12345678"),
        ("DELETE", "/schemas"),
        ("POST", "/query"),
        ("PUT", "/schema"),
        ("GET", "/events/send"),
    ],
)
def test_everything_else_is_not_found(flux: Flux, method: str, path: str) -> None:
    assert flux.call(method, path) == (404, {"error": "Not Found"})


def test_head_is_get_without_a_body(two: Flux) -> None:
    assert two.call("HEAD", "/query?keys[]=x") == (200, None)


# --- the older form -------------------------------------------------------------------------------


def test_an_event_of_the_older_form_carries_its_handler(flux: Flux) -> None:
    first = "/event/client%3Apost?user=ann&v=bob&@targets[]=[user].followers&@add=v"
    second = "/event/post?user=ann&p=x&@targets[]=[user].followers.feedItems&@add=p"

    assert flux.call("GET", first) == (200, None)
    assert flux.call("GET", f"{second}&@maxStoredValues=5&@score=0") == (200, None)

    assert flux.results("ann:followers") == ["bob"]
    assert flux.results("bob:feedItems") == ["x"]
    assert flux.results("bob:feedItems", max_score=0) == ["x"]


def test_a_flux_schema_runs_beside_a_native_one_and_not_for_native_events(
    flux: Flux, space: str
) -> None:
    flux.deploy(ADD)
    native = flux.base.removesuffix("/flux")
    other = Flux(native)
    schema = {"add": [{"targets": ["['native']"], "add": "v"}]}
    other.call("POST", "/events/deploy", {"schema": schema}, **{"Content-Type": "application/json"})

    event = {"event": {"name": "add", "attributes": {"k": "s", "v": "a"}}}
    other.call("POST", "/events/send", event, **{"Content-Type": "application/json"})

    assert flux.results("native") == ["a"]
    assert flux.results("s") == []


def test_an_event_puts_its_job_in_its_own_transaction(flux: Flux) -> None:
    job = {"enqueue": {"queue": "mail", "klass": "Send", "data": {"to": "v"}}}
    id = flux.deploy({"add": [{"targets": ["[k]"], "add": "v"}, job]})

    flux.send(id, add("s", "ann"))

    native = Flux(flux.base.removesuffix("/flux"))
    popped = native.call(
        "POST",
        "/jobs/pop",
        json.dumps({"queue": "mail", "worker": "w"}).encode(),
        **{"Content-Type": "application/json"},
    )[1]["result"]
    assert popped[0]["data"] == {"to": "ann"}


@pytest.mark.parametrize(
    ("score", "second"),
    [
        ("6", 6),
        (" 9 ", 9),
        ("0x10", 16),
        ("010", 8),  # octal, as Ruby reads it
        ("0b1_01", 5),
        (7.9, 7),
        (0, None),
        (-5, None),
        ("x", None),
        (True, None),
        ("09", None),
        ("\u0663", None),  # a digit, but not one of Ruby's
        ({"no": "score"}, None),
    ],
)
def test_a_score_is_an_integer_in_one_form_or_another(
    flux: Flux, score: object, second: int | None
) -> None:
    """D11, D19."""
    id = flux.deploy({"add": [{"targets": ["[k, @daily]"], "add": "v"}]})

    flux.send(id, ["add", {"k": "s", "v": "a", "@score": score}])

    assert flux.distinct("s", min_score=1_000_000_000) == (1 if second is None else 0)
    if second is not None:
        assert flux.results("s", max_score=second, min_score=second - 1) == ["a"]
        assert flux.results("daily-01-01-70") == ["a"]
