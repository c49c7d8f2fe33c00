"""`/openapi.json`: every operation, its arguments and results, made from `operations.py`."""

from functools import cache
from typing import Any

import msgspec

from holdfast.operations import LAYER_CLASSES, OPERATIONS, Operation
from holdfast.version import VERSION


@cache
def document() -> bytes:
    """Returns the description of the HTTP API, OpenAPI 3.1."""
    operations = list(OPERATIONS.values())
    described = [operation.arguments for operation in operations]
    described += [_result(operation) for operation in operations]
    schemas, components = msgspec.json.schema_components(
        described, ref_template="#/components/schemas/{name}", schema_hook=_anything
    )
    arguments, results = schemas[: len(operations)], schemas[len(operations) :]
    paths = {
        f"/{{space}}/{operation.layer}/{operation.name}": {
            "post": _described(operation, given, got)
        }
        for operation, given, got in zip(operations, arguments, results, strict=True)
    }
    for path, described_too in _OTHER_PATHS.items():
        paths.setdefault(path, {}).update(described_too)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Holdfast", "version": VERSION, "description": _ABOUT},
            "tags": [{"name": layer} for layer in LAYER_CLASSES],
            "security": [{}, {"token": []}, {"password": []}],
            "paths": paths,
            "components": {
                "schemas": {**components, "Error": _ERROR, "BatchStep": _BATCH_STEP},
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "password": {"type": "http", "scheme": "basic"},
                },
            },
        }
    )


def _result(operation: Operation) -> Any:
    """Returns the type of the result, or any type if JSON can't tell the members of a union
    apart."""
    try:
        msgspec.json.schema(operation.result, schema_hook=_anything)
    except TypeError:
        return Any
    return operation.result


def _anything(_: type) -> dict[str, Any]:
    return {}


def _described(operation: Operation, arguments: Any, result: Any) -> dict[str, Any]:
    answer = {"type": "object", "required": ["result"], "properties": {"result": result}}
    return {
        "operationId": operation.full_name,
        "tags": [operation.layer],
        "summary": operation.summary,
        "description": operation.doc,
        "parameters": [_SPACE],
        "requestBody": {"required": True, "content": _both(arguments)},
        "responses": {
            "200": {"description": "Done.", "content": _both(answer)},
            "default": _FAILURE,
        },
    }


def _both(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}, "application/msgpack": {"schema": schema}}


def _text(summary: str, content_type: str = "text/plain", **more: Any) -> dict[str, Any]:
    """Returns a path that is read with GET and returns text."""
    return {
        "get": {
            "summary": summary,
            "responses": {
                "200": {"description": "Here it is.", "content": {content_type: {}}},
                "default": _FAILURE,
            },
            **more,
        }
    }


_SPACE = {
    "name": "space",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
_TEXT = {"type": "string"}
_ABOUT = """\
Every operation is a POST whose body is an object of its arguments, in JSON or msgpack by content
type. The answer is `{"result": ...}`, an error `{"error": {"code", "message", "hint"}}`. Binary
values are base64 strings in JSON. Rows of tables have the JSON forms of their types: a `long` is a
string. With the header `Accept: application/json; bigint=string` every integer beyond 2^53 is a
string in answers, and may be one in arguments. `/{space}/batch` runs several operations as one
transaction. The paths of RESTBase, below `/{space}/sys/`, and those of Meduza's control side are
described in the documentation of Holdfast.
"""
_FAILURE = {
    "description": "It was refused, or went wrong; nothing was changed.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_BATCH_STEP = {
    "type": "object",
    "required": ["operation"],
    "additionalProperties": False,
    "properties": {"operation": {"type": "string"}, "arguments": {"type": "object"}},
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {
                "code": _TEXT,
                "message": _TEXT,
                "hint": _TEXT,
                "retry_after": {"type": ["number", "null"]},  # of a limit that was reached
                "result": {},
            },
        }
    },
}
_DONE = {"type": "object", "required": ["result"], "properties": {"result": {}}}
_EVENT = {"type": "object"}
_OTHER_PATHS: dict[str, Any] = {
    "/{space}/batch": {
        "post": {
            "operationId": "batch",
            "summary": "Several operations as one transaction: all of it, or none.",
            "parameters": [_SPACE],
            "requestBody": {
                "required": True,
                "content": _both(
                    {"type": "array", "items": {"$ref": "#/components/schemas/BatchStep"}}
                ),
            },
            "responses": {
                "200": {"description": "The results, in order.", "content": _both(_DONE)},
                "default": _FAILURE,
            },
        }
    },
    "/{space}/events": {
        "post": {
            "operationId": "ingest",
            "tags": ["events"],
            "summary": "One event, an array of them, or a stream of lines in bounded memory.",
            "parameters": [_SPACE],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {"oneOf": [_EVENT, {"type": "array", "items": _EVENT}]}
                    },
                    "application/x-ndjson": {"schema": _TEXT},
                },
            },
            "responses": {
                "200": {"description": "What was taken.", "content": _both(_DONE)},
                "default": _FAILURE,
            },
        }
    },
    "/{space}/notices": _text(
        "Notices as server-sent events, from now on.",
        "text/event-stream",
        parameters=[_SPACE, {"name": "topic", "in": "query", "schema": _TEXT}],
    ),
    "/{space}/metrics/prometheus": {
        **_text("The exposed metrics of a space, for scrapers.", parameters=[_SPACE])
    },
    "/livez": _text("The process runs."),
    "/readyz": _text("The store answers."),
    "/metrics": _text("The server's figures and the exposed metrics, for scrapers."),
    "/openapi.json": _text("This description.", "application/json"),
}
