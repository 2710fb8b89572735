"""OpenAPI schemas of request bodies and queries that the paths parse themselves.

FastAPI can't derive these schemas from the paths' signatures.
"""

from __future__ import annotations

from typing import Any

Extra = dict[str, Any]

_TEXT = {"type": "string"}
_SETTINGS = {
    "type": "object",
    "additionalProperties": {"anyOf": [_TEXT, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]},
}
_OBJECT_OR_NULL = {"anyOf": [{"type": "object"}, {"type": "null"}]}


def _body(schema: Extra) -> Extra:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


SETTINGS = _body(_SETTINGS)
"""Body with a connector's configuration, or a part of it."""

CREATION = _body(
    {
        "type": "object",
        "required": ["name", "config"],
        "additionalProperties": False,
        "properties": {
            "name": _TEXT,
            "config": _SETTINGS,
            "initial_state": {"enum": ["RUNNING", "PAUSED", "STOPPED"]},
        },
    }
)

OFFSETS = _body(
    {
        "type": "object",
        "required": ["offsets"],
        "additionalProperties": False,
        "properties": {
            "offsets": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"partition": _OBJECT_OR_NULL, "offset": _OBJECT_OR_NULL},
                },
            }
        },
    }
)

LEVEL = _body({"type": "object", "required": ["level"], "properties": {"level": _TEXT}})


def query(**schemas: Extra) -> Extra:
    """Describe optional parameters of the query."""
    return {"parameters": [{"name": name, "in": "query", "schema": schema} for name, schema in schemas.items()]}


FLAG = {"type": "boolean"}
EXPANSIONS = {"type": "array", "items": {"enum": ["status", "info"]}}
SCOPE = {"enum": ["worker", "cluster"]}

ERRORS: dict[int | str, Extra] = {
    status: {
        "description": words,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["error_code", "message"],
                    "properties": {"error_code": {"type": "integer"}, "message": _TEXT},
                }
            }
        },
    }
    for status, words in (("4XX", "The request is wrong"), ("5XX", "The server is, or its cluster"))
}
"""Schema of Connect's `ErrorMessage`, for the error answers of each path."""
