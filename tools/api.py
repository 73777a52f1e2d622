"""The reference of the HTTP API, from its OpenAPI document, and of the Python API, from its docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import askalike
from askalike import client, records
from askalike.evaluation import MEASURES, PROTOCOLS
from askalike.server.routes import service_document

WRITTEN = "Written from the program by `python -m tools.document`; do not edit by hand."
SECTIONS = ("Args", "Returns", "Yields", "Raises", "Attributes", "Example", "Examples", "Source", "Differs")

# -- HTTP --------------------------------------------------------------------------------------------------------


def http_document() -> str:
    """Return the reference of the HTTP API as Markdown."""
    document = service_document()
    parts = [
        "# The HTTP API",
        "",
        f"{WRITTEN} How to run the service, who may ask, and what happens to hostile requests: [service](service.md).",
        "",
        f"{document['info']['description']} The same as a document for programs: [openapi.json](openapi.json), which"
        " the service sends at `/openapi.json`.",
    ]
    first = sorted(document["paths"].items(), key=lambda one: not one[0].startswith("/v1"))
    for path, methods in first:
        for method, route in methods.items():
            parts += ["", f"## {method.upper()} {path}", "", route["summary"], *_route(route)]
    parts += ["", "## Values", "", "What requests and answers are made of."]
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += ["", f"### {name}", "", schema.get("description", ""), "", *_fields(schema)]
    text = "\n".join(parts) + "\n"
    return re.sub(r"\n{3,}", "\n\n", text)


def _route(route: Mapping[str, Any]) -> Iterator[str]:
    if "description" in route:
        yield from ("", route["description"])
    if route.get("parameters"):
        yield from ("", "| parameter | in | type | meaning |", "|---|---|---|---|")
        for one in route["parameters"]:
            required = ", required" if one.get("required") and one["in"] != "path" else ""
            about = _cell(one.get("description"))
            yield f"| `{one['name']}` | {one['in']}{required} | {_type(one['schema'])} | {about} |"
    for kind, content in route.get("requestBody", {}).get("content", {}).items():
        yield from ("", f"Body (`{kind}`): {_type(content.get('schema', {}))}.")
    for status, answer in route["responses"].items():
        for kind, content in answer.get("content", {}).items():
            yield from ("", f"{status} (`{kind}`): {_type(content.get('schema', {}))}.")
    refused = [status for status in route["responses"] if not status.startswith("2")]
    if refused:
        yield from ("", f"Refusals: {', '.join(refused)} ([why](service.md#who-may-ask)).")


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    if "properties" not in schema:
        yield _type(schema)
        return
    yield from ("| field | type | meaning |", "|---|---|---|")
    required = schema.get("required", ())
    for name, one in schema["properties"].items():
        meaning = _cell(one.get("description") or _nested(one))
        if name in required:
            meaning = f"required. {meaning}".strip()
        elif (default := one.get("default")) not in (None, "", [], {}):
            meaning = f"{meaning} Default `{str(default).lower() if isinstance(default, bool) else default}`."
        yield f"| `{name}` | {_type(one)} | {meaning.strip()} |"


def _nested(schema: Mapping[str, Any]) -> str:
    return next((one["description"] for one in schema.get("anyOf", ()) if "description" in one), "")


def _type(schema: Mapping[str, Any] | bool) -> str:
    if isinstance(schema, bool):
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None and abs(high) < 1 << 60:
        return f"{kind}, {low} to {high}"
    return f"{kind}, at most {schema['maxLength']:,} characters" if "maxLength" in schema else str(kind)


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


# -- Python ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A class or function of the reference: its name, how it is called, its docstring, and its methods."""

    name: str
    called: str
    doc: str
    members: Sequence[Entry] = field(default=())


def python_document() -> str:
    """Return the reference of the Python API as Markdown."""
    parts = [
        "# The Python API",
        "",
        f"{WRITTEN} The names of `askalike` and of its client. Everything else may change without notice.",
        "",
        "Everything takes and returns plain values; `Forum` is where to start.",
    ]
    public = [name for name in askalike.__all__ if not name.startswith("__")]
    public.sort(key=lambda name: (name != "Forum", name))
    for name in public:
        parts += _markdown(_entry(name, getattr(askalike, name)), "##")
    parts += ["", "## Of a running service: askalike.client"]
    for name in ("Client", "AsyncClient", "ServiceError"):
        parts += _markdown(_entry(name, getattr(client, name)), "###")
    parts += [
        "",
        "## Judging runs: askalike.evaluation",
        "",
        f"Protocols: {_names(PROTOCOLS)}; measures: {_names(MEASURES)}. See [evaluation](evaluation.md).",
        "",
        f"Tables that `Forum.records` and `to_dataframe` know: {_names(records.TABLES)}.",
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts) + "\n")


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _entry(name: str, thing: Any) -> Entry:
    doc = inspect.getdoc(thing) or ""
    if not inspect.isclass(thing):
        return Entry(name, _signature(thing, name), doc)
    members = []
    for method, found in vars(thing).items():
        if method.startswith("_") or not (inspect.isroutine(found) or isinstance(found, property)):
            continue
        shown = getattr(thing, method)
        called = f"{name}.{method}" if isinstance(found, property) else _signature(shown, f"{name}.{method}")
        text = inspect.getdoc(found.fget if isinstance(found, property) else shown) or ""
        members.append(Entry(method, called, text))
    is_made_by_methods = "__new__" in vars(thing)  # the class itself is not to be called
    return Entry(name, f"class {name if is_made_by_methods else _signature(thing, name)}", doc, members)


def _signature(thing: Any, name: str) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):  # classes of C, and exceptions
        return name
    plain = [one.replace(annotation=_plain(one.annotation)) for one in found.parameters.values() if one.name != "self"]
    shown = str(found.replace(parameters=plain, return_annotation=_plain(found.return_annotation)))
    return name + re.sub(r"<factory>|<object object at \w+>|<[^<>]+ at 0x\w+>", "…", shown)


class _Written:
    """An annotation as it is written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _plain(annotation: Any) -> Any:
    if annotation is inspect.Signature.empty:
        return annotation
    return _Written(annotation.__name__ if inspect.isclass(annotation) else str(annotation))


def _markdown(entry: Entry, level: str) -> Iterator[str]:
    called = entry.called if len(entry.called) <= 88 else _wrapped(entry.called)
    yield from ("", f"{level} {entry.name}", "", "```text", called, "```", "", *_described(entry.doc))
    for member in entry.members:
        yield from _markdown(member, level + "#")


def _wrapped(called: str) -> str:
    return "\n".join(textwrap.wrap(called, 88, subsequent_indent="    ", break_long_words=False))


def _described(doc: str) -> Iterator[str]:
    """Yield a docstring as Markdown: sections become lists, examples become blocks."""
    lines = doc.splitlines()
    place = 0
    while place < len(lines):
        line = lines[place]
        head = re.fullmatch(rf"({'|'.join(SECTIONS)}):\s*(.*)", line)
        if head and not head[2]:
            place, block = _indented(lines, place + 1)
            yield from ("", f"{head[1]}:", "")
            yield from _described("\n".join(block)) if head[1].startswith("Example") else _items(block)
            yield ""
        elif line.lstrip().startswith(">>>"):
            end = place
            while end < len(lines) and lines[end].strip():
                end += 1
            yield from (
                "",
                "```pycon",
                *(one.strip() if one.lstrip() == one else one for one in lines[place:end]),
                "```",
                "",
            )
            place = end
        elif line.rstrip().endswith("::"):
            place, block = _indented(lines, place + 1)
            if line.strip() != "::":
                yield _prose(line.rstrip()[:-1])
            yield from ("", "```text", *block, "```", "")
        else:
            yield _prose(line)
            place += 1


def _indented(lines: Sequence[str], place: int) -> tuple[int, list[str]]:
    """Return where the indented lines end that begin here, and these, without their indent."""
    end = place
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    return end, textwrap.dedent("\n".join(lines[place:end])).strip("\n").splitlines()


def _items(block: Sequence[str]) -> Iterator[str]:
    for line in block:
        item = re.match(r"([\w, …*.]+?): (.*)", line)
        if item and not line.startswith(" "):
            yield f"- `{item[1]}`: {_prose(item[2])}"
        else:
            yield f"  {_prose(line.strip())}" if line.startswith(" ") else f"- {_prose(line)}" if line else ""


def _prose(text: str) -> str:
    """Return a line with names in single backticks, and with nothing that Markdown takes for markup outside of them."""
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(
        f"`{part.strip('`')}`" if part.startswith("`") else re.sub(r"([*<\[\]])", r"\\\1", part) for part in parts
    )
