"""The OpenAPI document, from the tables of what can be asked for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from askalike._version import __version__
from askalike.server.routes import Described
from askalike.server.schemas import ErrorView

ALL_REFUSALS: Final = (400, 405, 413, 421, 429, 500, 503, 504)
"""Statuses that any request may be refused with."""

KEYED: Final = (401, 403)
TAKING: Final = (408, 415, 422)

_REF: Final = "#/components/schemas/{model}"
_NAME: Final = re.compile(r"{(\w+)}")


def openapi_document(routes: Sequence[Described]) -> dict[str, object]:
    """Return the OpenAPI 3.1 document of these routes."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    error = {"application/json": {"schema": _schema(ErrorView, schemas)}}
    refused = {name for path in paths.values() for one in path.values() for name in one["responses"]} - {"200"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "askalike",
            "version": __version__,
            "description": "Finds the questions in a forum that ask the same. Errors are {error, hint}.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "responses": {
                name: {"description": HTTPStatus(int(name)).phrase, "content": error} for name in sorted(refused)
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Described, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.about,
        "responses": {"200": _answer(route, schemas), **_refusals(route)},
    }
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 512},
        }
        for name in _NAME.findall(route.path)
    ]
    if route.query is not None:
        parameters += _query(route.query)
    if parameters:
        found["parameters"] = parameters
    if route.takes is not None:
        media = "application/json" if route.media == "text/plain" else route.media
        found["requestBody"] = {"required": True, "content": {media: _content(media, _schema(route.takes, schemas))}}
    if route.may is not None:
        found["security"] = [{"key": []}, {}]
        found["description"] = f"Needs the right to {route.may}, where keys are asked for."
    return found


def _answer(route: Described, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "string"} if route.returns is str else _schema(route.returns, schemas)
    return {"description": "Done.", "content": {route.media: {"schema": schema}}}


def _content(media: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return how a body looks; of lines, the schema tells of one."""
    if media == "application/json":
        return {"schema": schema}
    return {"schema": {"type": "string", "description": f"Each line as {schema['$ref']}."}}


def _refusals(route: Described) -> dict[str, Any]:
    statuses = {*ALL_REFUSALS, *route.refusals}
    if route.may is not None:
        statuses |= {*KEYED}
    if route.takes is not None:
        statuses |= {*TAKING}
    if route.query is not None or "{" in route.path or route.takes is not None:
        statuses |= {422}
    return {str(one): {"$ref": f"#/components/responses/{one}"} for one in sorted(statuses)}


def _query(model: type[BaseModel]) -> list[dict[str, Any]]:
    properties = model.model_json_schema()["properties"]
    return [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()]


def _schema(kind: type, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to a kind of value, having put its description among the schemas."""
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    if not is_model and not dataclasses.is_dataclass(kind):
        return {"type": "object"}
    found = TypeAdapter(kind).json_schema(ref_template=_REF, mode="validation" if is_model else "serialization")
    schemas.update(found.pop("$defs", {}))
    schemas[kind.__name__] = found
    return {"$ref": _REF.format(model=kind.__name__)}


def _operation_id(route: Described) -> str:
    words = re.findall(r"[a-z0-9]+", route.path.replace("/v1", ""))
    return "_".join([route.method.lower(), *words])
