"""The references of the command line, of HTTP and of Python, from the program: written when the documentation is built.

``docs/conf.py`` calls ``write_references``; what it writes is not committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from askalike.cli.application import COMMANDS
from askalike.evaluation import MEASURES, PROTOCOLS
from askalike.operations import service_document

__all__ = ["EXAMPLES", "cli_document", "http_document", "python_document", "write_references"]

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("askalike demo",),
    "index": (
        "askalike index travel.stackexchange.com.7z --into travel.forum",
        "askalike index posts.csv --into my.forum --column title=subject --column body=message",
    ),
    "search": (
        'askalike search my.forum "Printer vanishes after a power cut" -k 5',
        'askalike search my.forum "Printer vanishes" --body - --tag printer --before 2024-01-01 --json < body.md',
        'askalike search my.forum "My earphones are muffled in Skype" --explain',
        "askalike search my.forum --batch titles.txt --run hits.trec --not-tag wifi",
    ),
    "duplicates": (
        "askalike duplicates my.forum --min 0.8 --csv > duplicates.csv",
        "askalike duplicates my.forum --exact --since 2024-01-01",
        "askalike duplicates my.forum --linked",
    ),
    "deduplicate": (
        "askalike deduplicate posts.csv --into unique.csv --removed removed.csv",
        "askalike deduplicate posts.parquet --min 1 --json",
    ),
    "judge": ("askalike judge my.forum q1156 q1045 duplicate --by ann",),
    "threshold": (
        "askalike threshold my.forum --precision 0.9",
        "askalike threshold my.forum --recall 0.95 --json",
        "askalike threshold my.forum --labels pairs.csv",
    ),
    "serve": (
        "askalike serve my.forum",
        "askalike serve my.forum --workers 4 --allow-host similar.example.org --allow-origin https://forum.example.org "
        "--open-read",
        "askalike serve folder-of-forums --workers 2",
    ),
    "keys": (
        "askalike keys my.forum --add read --name widget",
        "askalike keys my.forum",
        "askalike keys my.forum --remove 1f3a9c04",
    ),
    "info": ("askalike info my.forum --json",),
    "similar": ("askalike similar my.forum q1156 -k 5",),
    "show": ("askalike show my.forum q1156",),
    "export": (
        "askalike export my.forum --into export --parquet",
        "askalike export my.forum --judgements --csv > judgements.csv",
    ),
    "encode": ("askalike encode my.forum", "askalike encode my.forum --model another-model"),
    "train": (
        "askalike train my.forum",
        "askalike train my.forum --hold-out-test --seed 1",
        "askalike train my.forum --recipe my-recipe.toml",
    ),
    "reindex": ("askalike reindex my.forum",),
    "check": ("askalike check my.forum", "askalike check my.forum --repair"),
    "backup": ("askalike backup my.forum my-forum.sqlite",),
    "attach": ("askalike attach postgresql://db.example.org/travel --into travel.forum",),
    "batch": (
        "askalike batch groups travel.forum --into batch",
        "askalike batch encode questions/*.parquet --into batch --cluster ray",
    ),
    "follow": (
        "askalike follow my.forum --from https://forum.example.org --secret-variable DISCOURSE_SECRET",
        "askalike follow my.forum --from https://github.com/OWNER/NAME --key-variable GITHUB_TOKEN --once",
        "askalike follow my.forum --status --json",
        "askalike follow my.forum --write-back --to https://forum.example.org --link --close",
    ),
    "score": (
        "askalike score gold.qrels bm25.run --protocol trec --measure map --measure ndcg@10",
        "askalike score dev.txt dev.txt --protocol askubuntu --json",
        "askalike score gold.relevancy ours.pred --protocol semeval --against theirs.pred",
    ),
    "evaluate": (
        "askalike evaluate my.forum",
        "askalike evaluate my.forum --protocol rerank --split test --save runs/",
    ),
    "reproduce": (
        "askalike reproduce lei2016 --data askubuntu --out lei2016 --jobs 2",
        "askalike reproduce lei2016 --data askubuntu --only travel --only rcnn-last-pretrained --seeds 1",
        "askalike reproduce das2016 --data datasets --only language --only semeval",
    ),
}
"""Command → what somebody types."""


def write_references(folder: Path) -> None:
    """Write the references and the OpenAPI document into the folder of the documentation."""
    references = {"cli": cli_document, "http": http_document, "python": python_document}
    (folder / "reference").mkdir(exist_ok=True)
    for name, document in references.items():
        (folder / "reference" / f"{name}.md").write_text(document(), encoding="utf-8")
    (folder / "openapi.json").write_text(json.dumps(service_document(), indent=1) + "\n", encoding="utf-8")


# -- Python ------------------------------------------------------------------------------------------------------------


def python_document() -> str:
    """Return the reference of the Python API, whose docstrings Sphinx reads when it builds the page."""
    return f"""# Python reference

The names of `askalike` and of its client; everything else may change without notice. Where to start:
[Python](../python.md).

```{{eval-rst}}
.. automodule:: askalike
   :members:
   :imported-members:
```

## The client of a running service

```{{eval-rst}}
.. automodule:: askalike.client
   :members: Client, ServiceError
```

## Judging runs

Protocols: {", ".join(f"`{name}`" for name in PROTOCOLS)}; measures: {", ".join(f"`{name}`" for name in MEASURES)}.
See [evaluation](../evaluation.md).
"""


# -- HTTP --------------------------------------------------------------------------------------------------------------


def http_document() -> str:
    """Return the reference of the HTTP API as Markdown."""
    document: dict[str, Any] = service_document()
    parts = [
        "# HTTP reference",
        "",
        "How to run the service, who may ask, and what happens to hostile requests: [service](../service.md).",
        "",
        f"{document['info']['description']} The service sends the same as a document for programs at `/openapi.json`.",
    ]
    first = sorted(document["paths"].items(), key=lambda item: not item[0].startswith("/v1"))
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
        for parameter in route["parameters"]:
            required = ", required" if parameter.get("required") and parameter["in"] != "path" else ""
            about = _cell(parameter.get("description"))
            yield f"| `{parameter['name']}` | {parameter['in']}{required} | {_type(parameter['schema'])} | {about} |"
    for kind, content in route.get("requestBody", {}).get("content", {}).items():
        yield from ("", f"Body (`{kind}`): {_type(content.get('schema', {}))}.")
    for status, answer in route["responses"].items():
        for kind, content in answer.get("content", {}).items():
            yield from ("", f"{status} (`{kind}`): {_type(content.get('schema', {}))}.")
    refused = [status for status in route["responses"] if not status.startswith("2")]
    if refused:
        yield from ("", f"Refusals: {', '.join(refused)} ([why](../service.md#who-may-ask)).")


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    if "properties" not in schema:
        yield _type(schema)
        return
    yield from ("| field | type | meaning |", "|---|---|---|")
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        meaning = _cell(field.get("description") or _nested(field))
        if name in required:
            meaning = f"required. {meaning}".strip()
        elif (default := field.get("default")) not in (None, "", [], {}):
            meaning = f"{meaning} Default `{str(default).lower() if isinstance(default, bool) else default}`."
        yield f"| `{name}` | {_type(field)} | {meaning.strip()} |"


def _nested(schema: Mapping[str, Any]) -> str:
    return next((option["description"] for option in schema.get("anyOf", ()) if "description" in option), "")


def _type(schema: Mapping[str, Any] | bool) -> str:
    if isinstance(schema, bool):
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None and abs(high) < 1 << 60:
        return f"{kind}, {low} to {high}"
    return f"{kind}, at most {schema['maxLength']:,} characters" if "maxLength" in schema else str(kind)


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


# -- the command line --------------------------------------------------------------------------------------------------


def cli_document() -> str:
    """Return the reference of the command line, from the program itself."""
    parts = [
        "# Command line reference",
        "",
        "Every command that prints results takes `--json`. Progress and notes go to the error stream. Exit codes:"
        " 0 done, 1 an error that the message explains, 2 the command was used wrongly.",
        "",
        "Before or after any command, `--quiet` leaves notes and progress out, `--verbose` shows the time of each phase"
        " and the trace of an error, and `--log-json` writes notes, progress and errors as JSON, one object a line.",
        "",
        "`askalike --install-completion` lets a shell complete commands, options, forums, rankers and recipes.",
    ]
    for name, command in COMMANDS.items():
        parts += ["", f"## askalike {name}", "", str(command.help).strip(), ""]
        parts += [*_example(name)]
        parts += ["| argument or option | meaning | default |", "|---|---|---|"]
        parts += [_parameter_row(parameter) for parameter in command.params]
    return "\n".join(parts) + "\n"


def _parameter_row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        shown = parameter.metavar or parameter.name.upper()
    else:
        shown = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    if parameter.required:
        text = "required"
    elif default in (None, "", False, ()):
        text = ""
    else:
        text = f"`{default}`"
    return f"| {shown} | {str(getattr(parameter, 'help', '') or '').replace('|', '/')} | {text} |"


def _example(name: str) -> list[str]:
    return ["```sh", *EXAMPLES[name], "```", ""] if name in EXAMPLES else []
