"""Example calls of every operation, layer by layer, in an order in which one prepares the next.

A call that is refused is an example too. Times are given, so that every run gives the same answer.
"""

import time
from typing import Any, NamedTuple

NOW = float(int(time.time()))  # a real time: what is older than the store keeps is not kept
MS = int(NOW * 1000)


class Call(NamedTuple):
    operation: str
    arguments: dict[str, Any]
    apart_from: frozenset[str] = frozenset()  # fields that depend on the server's clock or on luck


def _calls(layer: str, *calls: tuple[Any, ...]) -> list[Call]:
    always = {"lock"} if layer == "jobs" else set()  # the number of a lock is a time
    return [
        Call(f"{layer}.{name}", arguments, frozenset(rest) | always)
        for name, arguments, *rest in calls
    ]


ENTITIES = _calls(
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

EVENTS = _calls(
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

_Q = {"queue": "q", "now": NOW}
_W = {"worker": "w", "now": NOW + 1}

JOBS = _calls(
    "jobs",
    ("put", {**_Q, "klass": "app.Send", "data": {"to": "ann"}, "id": "a", "tags": ["blue", 1]}),
    ("put", {**_Q, "id": "b", "priority": 5, "retries": 0, "data": [1.5, None, "é"]}),
    ("put", {**_Q, "id": "c", "depends": ["a"], "delay": 0}),
    ("put", {**_Q, "id": "d", "delay": 3600}),
    ("put", {**_Q, "id": "e", "retries": -2}),
    ("put", {"queue": ""}),
    ("put", {"queue": "q", "cake": 1}),
    ("put_many", {"jobs": [{"queue": "many", "id": "m1"}, {"queue": "many", "id": "m2"}], **_W}),
    ("put_many", {"jobs": [{"id": "m1"}]}),
    ("get", {"id": "a"}),
    ("get", {"id": "nobody"}),
    ("multiget", {"ids": ["a", "nobody", "b"]}),
    ("length", {"queue": "q"}),
    ("figures", {"queues": ["mail"]}, "oldest_age"),
    ("figures", {"after": "", "count": 2}, "oldest_age"),
    ("counts", _Q),
    ("queues", {"now": NOW}),
    ("jobs", {"state": "depends", **_Q}),
    ("jobs", {"state": "dancing", **_Q}),
    ("peek", {**_Q, "count": 2}),
    ("pop", {"queue": "q", **_W}),
    ("pop", {"queue": "q", **_W, "count": 0}),
    ("heartbeat", {"id": "b", **_W, "progress": 0.5}),
    ("heartbeat", {"id": "b", "worker": "thief", "now": NOW + 1}),
    ("log", {"id": "b", "message": "so far", "data": {"x": 1}, "now": NOW + 1}),
    ("worker", {"worker": "w", "now": NOW + 1}),
    ("workers", {"now": NOW + 1}),
    ("fail", {"id": "b", **_W, "group": "broken", "message": "it broke"}),
    ("fail", {"id": "b", **_W, "group": "broken", "message": "it broke"}),
    ("failed", {}),
    ("failed_in", {"group": "broken"}),
    ("dead_letters", {"match": {"group": "broken"}}),
    ("dead_letters", {"cursor": "nonsense"}),
    ("unfail", {"queue": "q", "group": "broken", "now": NOW + 2}),
    ("retry_failed", {"match": {"group": "broken"}}),
    ("pop", {"queue": "q", "worker": "w", "count": 2, "now": NOW + 3}),
    ("retry", {"id": "a", "worker": "w", "now": NOW + 3}),
    ("retry", {"id": "nobody", "worker": "w"}),
    ("pop", {"queue": "q", "worker": "w", "now": NOW + 4}),
    ("complete", {"id": "a", "worker": "w", "result": {"ok": True}, "now": NOW + 5}),
    ("complete", {"id": "a", "worker": "w", "now": NOW + 5}),
    ("complete", {"id": "nobody", "worker": "w"}),
    ("result", {"id": "a"}),
    ("result_wait", {"id": "a", "timeout": 1}),
    ("result_wait", {"id": "nobody", "timeout": 0.1}),
    ("put", {"queue": "letters", "id": "e", "now": NOW + 5}),
    ("put", {"queue": "letters", "id": "f", "now": NOW + 5}),
    ("pop", {"queue": "letters", "worker": "w", "now": NOW + 5}),
    ("complete_and_pop", {"id": "e", "worker": "w", "result": 1, "now": NOW + 6}),
    ("complete_and_pop", {"id": "e", "worker": "w", "now": NOW + 6}),
    ("stats", {"queue": "q", "date": NOW}),
    ("stats_by", {"queue": "q", "by": "worker", "since": NOW - 86_400, "until": NOW}),
    ("stats_by", {"queue": "q", "by": "weather"}),
    ("import_jobs", {"jobs": [{"id": "moved", "queue": "there", "data": "[1]", "time": NOW}]}),
    ("import_jobs", {"jobs": [], "statistics": [{"queue": "there", "date": NOW, "retries": 2}]}),
    ("import_jobs", {"jobs": [{"id": "lost", "queue": "there", "state": "dancing"}]}),
    ("digest", {"ids": ["moved", "nobody"]}),
    ("timeout", {"ids": ["b"], "now": NOW + 5}),
    ("priority", {"id": "c", "priority": 9}),
    ("tag", {"id": "c", "tags": ["red", "blue"], "now": NOW}),
    ("untag", {"id": "c", "tags": ["blue"]}),
    ("tagged", {"tag": "red"}),
    ("top_tags", {"count": 2}),
    ("track", {"id": "c", "now": NOW}),
    ("track", {"id": "nobody"}),
    ("tracked", {}),
    ("untrack", {"id": "c"}),
    ("depends_on", {"id": "c", "ids": ["d"]}),
    ("depends_off", {"id": "c", "ids": [], "all": True, "now": NOW}),
    ("requeue", {"queue": "q2", "id": "c", "now": NOW + 6}),
    ("requeue", {"queue": "q2", "id": "nobody"}),
    ("pause", {"queues": ["q"]}),
    ("unpause", {"queues": ["q"]}),
    ("config_set", {"option": "heartbeat", "value": 30}),
    ("config_get", {"option": "heartbeat"}),
    ("config", {}),
    ("config_unset", {"option": "heartbeat"}),
    ("recur", {**_Q, "klass": "k", "interval": 60, "id": "r", "data": {}}),
    ("recur", {**_Q, "klass": "k", "cron": "nonsense"}),
    ("recur_get", {"id": "r"}),
    ("recur_get", {"id": "nobody"}),
    ("recur_tag", {"id": "r", "tags": ["t"]}),
    ("recur_untag", {"id": "r", "tags": ["t"]}),
    ("recur_update", {"id": "r", "priority": 3, "now": NOW}),
    ("recur_update", {"id": "nobody"}),
    ("recur_pause", {"id": "r"}),
    ("recur_pause", {"id": "nobody"}),
    ("recurring", {"count": 5}, "next"),
    ("recur_resume", {"id": "r", "now": NOW}),
    ("unrecur", {"id": "r"}),
    ("throttle_set", {"name": "t", "maximum": 2, "now": NOW}),
    ("throttle_get", {"name": "t", "now": NOW}),
    ("throttles", {"after": "a", "now": NOW}),
    ("totals", {}),
    ("throttle_locks", {"name": "t"}),
    ("throttle_pending", {"name": "t"}),
    ("throttle_delete", {"name": "t", "now": NOW}),
    ("worker_deregister", {"workers": ["w"]}),
    ("pop_wait", {"queues": ["many"], "worker": "w", "timeout": 5}, "expires", "history"),
    ("pop_wait", {"queues": "empty", "worker": "w", "timeout": 0}),
    ("pop_wait", {"queues": "empty", "worker": "w", "count": -1, "timeout": 0}),
    ("cancel", {"ids": ["c", "nobody"], "now": NOW + 7}),
    ("cancel_queue", {"queue": "many"}),
    ("queue_forget", {"queues": ["q2"]}),
    (
        "put_many",
        {"jobs": [{"queue": "r", "id": f"r{n}", "klass": "app.Go"} for n in range(4)], **_W},
    ),
    (
        "report",
        {"reports": [], "takes": [{"worker": "v", "queues": ["r"]}], "now": NOW + 8},
        "wake",
    ),
    (
        "report",
        {
            "reports": [
                {
                    "id": "r0",
                    "worker": "v",
                    "what": "heartbeat",
                    "log": [{"text": "half", "when": NOW}],
                }
            ],
            "now": NOW + 9,
        },
    ),
    ("report", {"reports": [{"id": "r1", "worker": "v", "what": "complete"}], "all_or_none": True}),
    ("read_log", {"id": "r0"}),
    ("read_log", {"id": "nobody"}),
    ("announce_worker", {"program": {"name": "web-1", "queues": ["r"]}, "now": NOW}),
    ("announce_worker", {"program": {"name": ""}}),
    ("worker_programs", {"now": NOW}),
    ("withdraw_worker", {"name": "web-1"}),
    ("search", {"search": {"queue": "r", "state": "waiting"}, "count": 2}, "cursor"),
    ("search", {"search": {"cake": 1}}),
    (
        "bulk_start",
        {
            "action": "priority",
            "search": {"queue": "r"},
            "priority": 3,
            "id": "bulk-1",
            "now": NOW + 9,
        },
    ),
    ("bulk_start", {"action": "dance", "search": {}}),
    ("bulk_step", {"id": "bulk-1", "now": NOW + 9}, "ended"),
    ("bulk", {"id": "bulk-1"}, "ended"),
    ("bulk", {"id": "nobody"}),
    ("bulk_stop", {"id": "bulk-1", "now": NOW + 9}, "ended"),
    ("bulks", {}, "ended"),
    (
        "bulk_run",
        {"action": "tag", "search": {"queue": "r", "state": "waiting"}, "tag": "red"},
        "id",
        "started",
        "ended",
        "since",
        "changed",
        "begun",
        "updated",
    ),
    ("batch_open", {"id": "batch-1", "on_settled": {"queue": "after"}, "now": NOW}),
    ("batch_open", {"id": "batch-1"}),
    ("put", {"queue": "r", "id": "in-batch", "batch": "batch-1", "now": NOW}),
    ("batch_close", {"id": "batch-1", "now": NOW}),
    ("batch", {"id": "batch-1"}),
    ("batch_jobs", {"id": "batch-1", "count": 1}),
    ("batch_cancel", {"id": "batch-1"}),
    ("batch_forget", {"id": "batch-1"}),
    ("batch", {"id": "batch-1"}),
    ("requeue_letters", {"queue": "letters"}),
    ("signal", {"id": "r0", "name": "approved", "value": {"by": "ann"}, "now": NOW + 9}),
    ("signal", {"id": "nobody", "name": "approved"}),
    ("signals", {"id": "r0"}),
    ("steps", {"id": "r0"}),
    ("v1_call", {"name": "length", "arguments": ["r"]}),
    ("v1_call", {"name": "dance"}),
)

_AT = {"prefix": "app", "at": NOW}
_SEQUENCES = [{"timeStep": 10, "expiry": 3600}]
_LIMIT = {
    "operations": [{"condition": "user", "entity": [1], "amount": 2}],
    "conditions": {"user": {"limit": 3, "window": 60}, "ip": "10/minute"},
    **_AT,
}

METRICS = _calls(
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

TABLES = _calls(
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

ADMIN = _calls(
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
