"""The OpenAPI document, from the table of routes; msgspec describes what is sent and answered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from askalike import schemas
from askalike._version import __version__

if TYPE_CHECKING:
    from askalike.server.routes import Route

ALL_REFUSALS: Final = (400, 405, 413, 421, 429, 500, 503, 504, 507)
"""Statuses that any request may be refused with."""

WITH_KEY: Final = (401, 403)
WITH_BODY: Final = (408, 415, 422)

JSON: Final = "application/json"
_REF: Final = "#/components/schemas/{name}"
_NAME: Final = re.compile(r"{(\w+)}")
_PATH_VALUE: Final = {"type": "string", "minLength": 1, "maxLength": 512}


def openapi_document(routes: Sequence[Route]) -> dict[str, object]:
    """Return the OpenAPI 3.1 document of these routes."""
    sent = _described([route.body for route in routes if route.body is not None])
    answered = _described([schemas.Error, *(route.returns for route in routes)])
    for shape in answered.values():  # whatever has a default is sent all the same
        shape["required"] = list(shape["properties"])
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    error = {JSON: {"schema": _reference(schemas.Error)}}
    operations = [operation for path in paths.values() for operation in path.values()]
    refused = {name for operation in operations for name in operation["responses"]} - {"200"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "askalike",
            "version": __version__,
            "description": "Finds the questions in a forum that ask the same. Errors are {error, hint}.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted((sent | answered).items())),
            "responses": {
                name: {"description": HTTPStatus(int(name)).phrase, "content": error} for name in sorted(refused)
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(kinds: Iterable[type]) -> dict[str, Any]:
    """Return the schemas of these kinds and of all that they hold; of a description, the first paragraph."""
    _, shapes = msgspec.json.schema_components(kinds, ref_template=_REF)
    for shape in shapes.values():
        shape["description"] = " ".join(shape["description"].partition("\n\n")[0].split())
    return shapes


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": "_".join([route.method.lower(), *re.findall(r"[a-z0-9]+", route.path.replace("/v1", ""))]),
        "summary": route.about,
        "responses": {"200": _answer(route), **_refusals(route)},
    }
    names = _NAME.findall(route.path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": _PATH_VALUE} for name in names]
    if route.query is not None:
        properties = _described([route.query])[route.query.__name__]["properties"]
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()
        ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        schema = _reference(route.body)
        if route.media != JSON:
            schema = {"type": "string", "description": f"Each line as {schema['$ref']}."}
        operation["requestBody"] = {"required": True, "content": {route.media: {"schema": schema}}}
    if route.permission is not None:
        operation["security"] = [{"key": []}, {}]
        operation["description"] = f"Needs the right to {route.permission}, where keys are asked for."
    return operation


def _answer(route: Route) -> dict[str, Any]:
    return {"description": "Done.", "content": {route.media: {"schema": _reference(route.returns)}}}


def _refusals(route: Route) -> dict[str, Any]:
    statuses = {*ALL_REFUSALS, *route.refusals}
    if route.permission is not None:
        statuses |= {*WITH_KEY}
    if route.body is not None:
        statuses |= {*WITH_BODY}
    if route.query is not None or "{" in route.path:
        statuses |= {422}
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _reference(kind: Any) -> dict[str, Any]:
    """Return a reference to a shape, or how a plain type is described."""
    ((reference,), _) = msgspec.json.schema_components([kind], ref_template=_REF)
    return reference
