"""Schemas of the bodies and queries that the REST interface parses itself, for made-up requests.

FastAPI's own description has the paths and their names only.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

_Schema = dict[str, Any]

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_SETTINGS = {
    "type": "object",
    "additionalProperties": {"anyOf": [_TEXT, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]},
}
_OBJECT_OR_NULL = {"anyOf": [{"type": "object"}, {"type": "null"}]}
_CREATION = {
    "type": "object",
    "required": ["name", "config"],
    "additionalProperties": False,
    "properties": {
        "name": _TEXT,
        "config": _SETTINGS,
        "initial_state": {"enum": ["RUNNING", "PAUSED", "STOPPED"]},
    },
}
_OFFSETS = {
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
_LEVEL = {"type": "object", "required": ["level"], "properties": {"level": _TEXT}}

_BODIES: dict[tuple[str, str], _Schema] = {
    ("put", "/connector-plugins/{plugin}/config/validate"): _SETTINGS,
    ("post", "/connectors"): _CREATION,
    ("put", "/connectors/{name}/config"): _SETTINGS,
    ("patch", "/connectors/{name}/config"): _SETTINGS,
    ("patch", "/connectors/{name}/offsets"): _OFFSETS,
    ("put", "/admin/loggers/{name}"): _LEVEL,
}
_QUERIES: dict[tuple[str, str], _Schema] = {
    ("get", "/connector-plugins"): {"connectorsOnly": _FLAG},
    ("get", "/connectors"): {"expand": {"type": "array", "items": {"enum": ["status", "info"]}}},
    ("post", "/connectors/{name}/restart"): {"includeTasks": _FLAG, "onlyFailed": _FLAG},
    ("put", "/admin/loggers/{name}"): {"scope": {"enum": ["worker", "cluster"]}},
}


def described(api: FastAPI) -> _Schema:
    """The interface's description, with the schemas that FastAPI can't derive."""
    description = api.openapi()
    for (method, path), schema in _BODIES.items():
        content = {"application/json": {"schema": schema}}
        description["paths"][path][method]["requestBody"] = {"required": True, "content": content}
    for (method, path), schemas in _QUERIES.items():
        operation = description["paths"][path][method]
        queries = [{"name": name, "in": "query", "schema": schema} for name, schema in schemas.items()]
        names = [one for one in operation.get("parameters", []) if one["in"] == "path"]
        operation["parameters"] = [*names, *queries]
    return description
