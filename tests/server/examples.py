"""Example calls of every operation, layer by layer, in an order in which one prepares the next.

A call that is refused is an example too. Times are given, so that every run gives the same answer.
"""

from tests.server.example_calls import MS, NOW, calls_of
from tests.server.job_examples import JOBS

ENTITIES = calls_of(
    "entities",
    (
        "deploy",
        {
            "schemas": [
                "schema: shop\n"
                "tables:\n"
                "  Users:\n"
                "    primary: {type: random}\n"
                "    columns: {name: {type: Text}, age: {type: Int}, seen: {type: Timestamp},"
                " photo: {type: Binary}, tags: {type: Set}}\n"
                "    indexes: [{type: compound, columns: [name]}]\n"
            ]
        },
    ),
    ("deploy", {"schemas": ["schema: [1"]}),
    ("schemas", {}),
    ("schema", {"name": "shop"}),
    ("schema", {"name": "nothing"}),
    ("plan", {"schema": {"name": "shop", "tables": []}, "prune": True}),
    ("plan", {"schema": {}}),
    (
        "put",
        {
            "table": "shop.Users",
            "entities": [
                {
                    "id": "ann",
                    "properties": {"name": "Ann", "age": 7, "score": 1.5, "x": [1, None]},
                },
                {"id": "ben", "properties": {"name": "Ben", "age": 2**40, "map": {"a": True}}},
            ],
        },
    ),
    ("put", {"table": "shop.Users", "entities": []}),
    ("put", {"table": "no.Table", "entities": [{"properties": {"a": 1}}]}),
    ("put", {"table": "shop.Users", "entities": [{"properties": []}]}),
    ("get", {"table": "shop.Users", "ids": ["ben", "ann", "nobody"]}),
    (
        "select",
        {
            "table": "shop.Users",
            "filters": [{"property": "name", "op": "IN", "values": ["Ann", "Ben"]}],
            "order": {"by": "name", "asc": False},
        },
    ),
    ("select", {"table": "shop.Users", "filters": [{"property": "age", "op": "=", "values": [7]}]}),
    ("select", {"table": "shop.Users", "filters": []}),
    (
        "update",
        {
            "table": "shop.Users",
            "filters": [{"property": "id", "op": "=", "values": ["ann"]}],
            "changes": [{"property": "age", "op": "INCR", "value": 1}],
        },
    ),
    (
        "update",
        {
            "table": "shop.Users",
            "filters": [{"property": "id", "op": "=", "values": ["ann"]}],
            "changes": [{"property": "age", "op": "SQUARE"}],
        },
    ),
    ("count", {"table": "shop.Users"}),
    (
        "execute",
        {
            "queries": [
                {"type": "PUT", "table": "shop.Users", "entities": [{"id": "cat"}]},
                {
                    "type": "GET",
                    "table": "shop.Users",
                    "filters": [{"property": "id", "op": "=", "values": ["cat"]}],
                },
                {"type": "PING"},
            ]
        },
    ),
    ("execute", {"queries": [{"type": "DANCE"}]}),
    (
        "delete",
        {
            "table": "shop.Users",
            "filters": [{"property": "id", "op": "=", "values": ["ben"]}],
            "if_version": 99,
        },
    ),
    (
        "delete",
        {"table": "shop.Users", "filters": [{"property": "id", "op": "=", "values": ["ben"]}]},
    ),
    ("check", {"table": "shop.Users"}),
    ("dump_some", {"table": "shop.Users", "format": "jsonl"}),
    ("dump_some", {"table": "shop.Users", "format": "cake"}),
    ("load_some", {"table": "shop.Users"}),
    ("repair", {"table": "shop.Users"}),
    ("build", {}),
    ("stats", {}, "keys_size"),
    ("stats", {"after": "a", "limit": 1}, "keys_size"),
    ("stats", {"limit": 0}),
    ("apply", {"schema": {"name": "shop", "tables": []}, "prune": True}),
    ("drop", {"table": "shop.Users"}),
    ("drop", {"table": "shop.Users"}),
)

EVENTS = calls_of(
    "events",
    ("settings", {}),
    ("configure", {"timezone": "Europe/Berlin", "dedup_seconds": 3600}),
    ("configure", {"timezone": "Nowhere/City"}),
    ("configure", {"fan_out_keys": -1}),
    ("configure", {"timezone": "UTC"}),
    (
        "deploy",
        {
            "schema": {
                "shop": [
                    {"targets": ["['visitors']", "[@day]"], "add": "visitor"},
                    {"targets": ["['popular']"], "count_frequency": "artwork"},
                ]
            }
        },
    ),
    ("deploy", {"schema": {"shop": [{"targets": ["['x'"]}]}}),
    ("deploy", {"schema": "other:\n  - targets: [\"['o']\"]\n    add: o\n", "name": "second"}),
    ("configure", {"timezone": "Europe/Berlin", "dedup_seconds": 3600}),
    ("configure", {"timezone": "Nowhere/Town"}),
    ("settings", {}),
    ("schemas", {}),
    ("send", {"event": {"name": "shop", "attributes": {"visitor": "ann"}, "at": MS, "id": "1"}}),
    ("send", {"event": {"name": "shop", "attributes": {"visitor": "ann"}, "at": MS, "id": "1"}}),
    ("send", {"event": {"name": "", "attributes": {}}}),
    ("send", {"event": {"attributes": {}}}),
    (
        "send_many",
        {
            "events": [
                {"name": "shop", "attributes": {"visitor": "ben", "artwork": "a"}, "at": MS + 1},
                {"name": 5},
                "no event",
            ]
        },
    ),
    ("send", {"event": 5}),
    ("explain", {"event": {"name": "shop", "attributes": {"visitor": "ann"}, "at": MS}}),
    ("keys", {}),
    ("keys", {"limit": 0}),
    ("members", {"key": "visitors:2020-01-01"}),
    ("members", {"key": "visitors", "limit": -1}),
    ("contains", {"key": "visitors", "value": "ann"}),
    ("size", {"key": "visitors"}),
    ("gross", {"key": "popular"}),
    ("distinct", {"key": "popular"}),
    ("top", {"key": "popular"}),
    ("top", {"key": "visitors", "k": 0}),
    ("series", {"template": "visitors:{day}", "by": "gross", "from": MS, "to": MS}),
    ("series", {"template": "x", "by": "cake", "from": 1, "to": 2}),
    ("members", {"key": ["visitors:2020-01-01", "visitors"], "op": "intersection", "since": MS}),
    ("distinct", {"key": ["popular", "visitors"], "op": "difference"}),
    ("distinct", {"key": "visitors:{day}", "last": "7d"}),
    ("aggregate", {"key": "sales", "percentiles": [50]}),
    ("aggregate", {"key": "sales", "percentiles": [500]}),
    ("describe", {"key": "popular"}),
    ("dialects", {}),
    ("problems", {"name": "nobody"}),
    ("fan_outs", {}),
    ("continue_fan_outs", {}),
    ("keep_distinct", {"keys": ["popular"], "ttl": 60}, "key"),
    ("keep_distinct", {"keys": ["popular"], "ttl": 0}),
    ("keep_members", {"keys": ["visitors"], "limit": 10, "ttl": 60}, "key"),
    ("keep_members", {"keys": ["popular"]}),
    ("keep_top", {"keys": ["popular"], "ttl": 60}, "key"),
    ("keep_top", {"keys": ["popular"], "ttl": -1}),
    ("gross", {"key": "popular", "complete": True}),
    ("read", {"queries": ["#popular", {"op": "gross", "key": "popular"}, {"op": "dance"}]}),
    ("read", {"queries": ["popular"]}),
    ("aggregate", {"key": "popular"}),
    ("describe", {"key": "popular"}),
    ("describe", {"key": "nothing"}),
    ("dialects", {}),
    ("fan_outs", {}),
    ("continue_fan_outs", {"most": 10}),
    ("keep_distinct", {"keys": ["visitors", "popular"], "ttl": 60}, "key"),
    ("problems", {"name": "second"}),
    ("problems", {"name": "nobody"}),
    ("forget", {"key": "popular"}),
    ("forget", {"key": "popular"}),
    ("configure", {"fan_out_keys": 100}),
    ("configure", {"timezone": "Nowhere"}),
    ("settings", {}),
    ("withdraw", {"name": "second"}),
    ("withdraw", {"name": "second"}),
)


_AT = {"prefix": "app", "at": NOW}
_SEQUENCES = [{"timeStep": 10, "expiry": 3600}]
_LIMIT = {
    "operations": [{"condition": "user", "entity": [1], "amount": 2}],
    "conditions": {"user": {"limit": 3, "window": 60}, "ip": "10/minute"},
    **_AT,
}

METRICS = calls_of(
    "metrics",
    (
        "define",
        {
            "specs": {
                "edits": {"sequences": _SEQUENCES},
                "load": {"type": "gauge", "sequences": _SEQUENCES},
                "wait": {"type": "distribution", "sequences": _SEQUENCES},
            },
            **_AT,
        },
    ),
    ("define", {"specs": {"edits": {"sequences": []}}, **_AT}),
    ("define", {"specs": {"edits": {"type": "cake"}}, **_AT}),
    ("defined", {}),
    ("defined", {"after": "edits", "limit": 1}),
    ("defined", {"limit": 0}),
    ("defined", {"names": ["edits", "nothing"]}),
    ("incr", {"metric": "edits", "entity": ["user", 1], "value": 3, **_AT}),
    ("incr", {"metric": "nothing", **_AT}),
    ("incr", {"metric": "edits", "entity": [1.5], **_AT}),
    ("set", {"metric": "load", "value": 0.5, **_AT}),
    ("set", {"metric": "edits", "value": 0.5, **_AT}),
    ("add", {"metric": "load", "delta": 0.25, **_AT}),
    ("record", {"metric": "wait", "value": 12, "count": 2, **_AT}),
    ("write", {"writes": [{"metric": "edits", "entity": None, "value": 2}], **_AT}),
    ("write", {"writes": [{"metric": "edits", "op": "dance"}], **_AT}),
    ("rate", {"metric": "edits", "entity": ["user", 1], "latest": 60, **_AT}),
    ("rate", {"metric": "edits", "latest": -1, **_AT}),
    ("rates", {"queries": [{"metric": "edits", "entity": None, "latest": 60}], **_AT}),
    ("gauge", {"metric": "load", "latest": 60, **_AT}),
    ("distribution", {"metric": "wait", "latest": 60, "quantiles": [0.5, 0.99], **_AT}),
    ("lifetime", {"metric": "edits", **_AT}),
    ("series", {"metric": "edits", "start": NOW - 20, "end": NOW + 10, **_AT}),
    ("top", {"metric": "edits", "latest": 60, **_AT}),
    ("top", {"metric": "edits", "latest": 60, "most_buckets": 0, **_AT}),
    ("buckets", _AT),
    ("buckets", {"limit": 0, **_AT}),
    ("prometheus", _AT),
    ("try_incr", _LIMIT),
    ("try_incr", _LIMIT),
    ("try_incr", {**_LIMIT, "algorithm": "gcra"}),
    ("try_incr", {**_LIMIT, "operations": [{"condition": "cake"}]}),
    ("require", {**_LIMIT, "namespace": "other"}),
    ("require", {**_LIMIT, "operations": [{"condition": "cake"}]}),
    ("peek", _LIMIT),
    ("limit_incr", _LIMIT),
    ("require", {**_LIMIT, "conditions": {"user": "0/minute"}}),
    ("define_limits", {"conditions": {"user": "1/hour"}}),
    ("define_limits", {"conditions": {"user": "1/hour"}, "on_conflict": "discard"}),
    ("throttle", {"key": "k", "max_burst": 15, "count": 30, "period": 60, **_AT}),
    ("throttle", {"key": "k", "max_burst": -1, "count": 30, "period": 60, **_AT}),
    ("reset", {"entities": [["user", 1]], **_AT}),
)

_PAGES = {
    "table": "pages",
    "attributes": {"title": "string", "length": "int", "body": "blob", "tags": "set<string>"},
    "index": [
        {"type": "hash", "attribute": "title"},
        {"type": "range", "attribute": "length", "order": "desc"},
    ],
}

TABLES = calls_of(
    "tables",
    ("create", {"schema": _PAGES}),
    ("create", {"schema": {"table": "x", "attributes": {"a": "cake"}}}),
    ("names", {}),
    ("names", {"limit": 0}),
    ("schema", {"table": "pages"}),
    ("schema", {"table": "nothing"}),
    ("schema_etag", {"table": "pages"}),
    (
        "put",
        {"table": "pages", "attributes": {"title": "A", "length": 1, "tags": ["x", "y"]}},
        "tid",
    ),
    (
        "put",
        {"table": "pages", "attributes": {"title": "A", "length": 2}, "if": "not exists"},
        "tid",
    ),
    ("put", {"table": "pages", "attributes": {"title": "A"}}, "tid"),
    ("put", {"table": "pages", "attributes": {"title": "A", "length": 1, "cake": 2}}, "tid"),
    ("get", {"table": "pages", "attributes": {"title": "A"}}),
    ("get", {"table": "pages", "attributes": {"title": "A", "length": {"lt": 2}}}),
    ("get", {"table": "pages", "limit": 1}),
    ("get", {"table": "pages", "attributes": {"cake": 1}}),
    ("get", {"table": "nothing"}),
    ("get_by_url", {"table": "pages", "values": ["A"]}),
    ("get_by_url", {"table": "pages", "values": ["A"], "query_string": "limit=1&proj=length"}),
    ("get_by_url", {"table": "pages", "values": [], "query_string": "cake=1"}),
    (
        "batch",
        {
            "operations": [
                {"op": "put", "table": "pages", "attributes": {"title": "B", "length": 1}},
                {"op": "delete", "table": "pages", "attributes": {"title": "A", "length": 2}},
            ]
        },
        "tid",
    ),
    ("batch", {"operations": [{"op": "dance", "table": "pages"}]}),
    (
        "add_index",
        {"table": "pages", "index": "by", "elements": [{"type": "hash", "attribute": "length"}]},
    ),
    ("build_index", {"table": "pages", "index": "by"}),
    ("index_progress", {"table": "pages", "index": "by"}),
    ("index_progress", {"table": "pages", "index": "nothing"}),
    ("import_rows", {"table": "pages", "lines": ['{"title":"C","length":3}', "nonsense"]}),
    ("facts", {"table": "pages"}, "bytes"),
    ("delete", {"table": "pages", "attributes": {"title": "B"}}),
    ("delete", {"table": "pages", "attributes": {"length": 1}}),
    ("drop", {"table": "pages"}),
    ("drop", {"table": "pages"}),
)

ADMIN = calls_of(
    "admin",
    ("status", {}, "store", "spaces", "space"),
    ("spaces", {}, "spaces"),
    ("spaces", {"name": 1}),
    ("inspect", {}),
    ("inspect", {"prefix": "jobs, 29, 'receipt'", "limit": 3}),
    ("inspect", {"prefix": "jbos"}),
    ("inspect", {"prefix": "jobs, (("}),
    ("inspect", {"limit": 0}),
    ("inspect", {"after": "nowhere"}),
    ("check", {}),
    ("check", {"after": "nowhere"}),
    ("check_engine", {}),
    ("check_directory", {}, "checked"),
    ("count_keys", {}),
    ("dump_some", {"after": "nowhere"}),
    ("load_some", {}),
    ("backup", {}),
    ("backup_start", {}),
    ("backups", {}),
    ("backup_read", {"name": "there is none", "offset": -1}),
    ("backup_remove", {"name": "monday"}),
    ("check_start", {"engine": "yes"}),
    ("maintenance", {"id": 1}),
    ("maintenance_stop", {"id": "nobody"}),
    ("server", {}, "settings", "figures", "store", "spaces"),
    ("space_sizes", {"names": ["there is none"]}),
    ("space_sizes", {"limit": 0}),
    ("drop_space", {"name": "there is none"}),
    ("drop_space", {"name": "default"}),
    ("users", {}),
    ("add_user", {"name": "ann", "grants": ["cook"]}),
    ("add_user", {"name": ""}),
    ("add_user", {"name": "ann", "grants": []}),
    ("grant_user", {"name": "nobody", "grants": ["read"]}),
    ("renew_token", {"name": "nobody"}),
    ("remove_user", {"name": "nobody"}),
)

EXAMPLES = {
    "admin": ADMIN,
    "entities": ENTITIES,
    "events": EVENTS,
    "jobs": JOBS,
    "metrics": METRICS,
    "tables": TABLES,
}
