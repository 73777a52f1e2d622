"""Counts the package's lines, and how many of them serve what was added since the goal of 38,000 lines was set.

Command: ``python -m tools.lines``. The goal was set for the capabilities of commit ``GOAL_COMMIT``, whose list is
``tests/architecture/capabilities.json`` there. A file or definition that serves only something later stands in
``ADDED``. Everything else counts as serving the capabilities of that day, also what grew in it since: so the share of
these is an upper bound.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

PACKAGE: Final = Path(__file__).parents[1] / "src" / "askalike"
GOAL_COMMIT: Final = "d76a4fb"

ADDED: Final[dict[str, tuple[str, ...]]] = {
    "following a living forum": (
        "follow/",
        "cli/follow.py",
        "schemas.py:Followed",
        "client.py:Client.follow",
        "server/routes.py:_follow",
        "forum/forum.py:Forum.replace_threads",
        "forum/forum.py:Forum.ids_of",
    ),
    "several forums, proxies, and clients that attack": (
        "server/forums.py",
        "server/connection.py",
        "server/admission.py",
        "server/guards.py:client_of",
        "server/guards.py:is_trusted",
        "server/guards.py:rate_key",
        "server/server.py",
        "schemas.py:Forums",
        "schemas.py:ServedForum",
        "store/layout.py:forum_names",
    ),
    "several languages in one forum": (
        "text/languages.py",
        "types.py:language_code",
        "forum/forum.py:Forum.change_languages",
        "forum/forum.py:_is_read_anew",
        "forum/forum.py:Forum.forget_language_encoder",
        "forum/forum.py:Forum._encoders_of",
        "forum/engine.py:LanguageWords",
        "store/layout.py:ForumLayout.of_language",
        "store/layout.py:ForumLayout.of_languages",
        "cli/encode.py:of_languages",
    ),
    "PostgreSQL and several machines": (
        "store/postgres.py",
        "store/protocol.py",
        "cli/attach.py",
        "store/migration.py",
        "batch/",
        "cli/batch.py",
        "forum/forum.py:Forum.attach",
        "forum/forum.py:Forum.migrate",
        "forum/forum.py:_new_store",
        "forum/forum.py:_refuse_taken",
    ),
    "text encoders of others, and rerankers": (
        "models/transformer.py",
        "models/static.py",
        "models/remote.py",
        "models/text_encoder.py",
        "index/text_questions.py",
        "index/encoder_settings.py:EncoderSettings",
        "index/encoder_settings.py:RerankerSettings",
        "index/encoder_settings.py:needs_agreement",
        "index/encoder_settings.py:is_agreed",
        "index/encoder_settings.py:agree",
        "agreement.py",
        "web.py",
        "search/cross_encoder.py",
        "forum/encoders.py:NamedReranker",
        "forum/encoders.py:take_encoder",
        "forum/forum.py:Forum.use_encoder",
        "forum/forum.py:Forum.use_reranker",
        "forum/forum.py:Forum.embed",
        "forum/forum.py:Forum.score",
        "cli/encode.py:use_named",
        "cli/encode.py:keep_agreement",
        "cli/encode.py:is_text_encoder",
        "cli/encode.py:minilm_hint",
        "server/engine.py:Engine.embeddings",
        "server/engine.py:Engine.embed",
        "server/engine.py:Engine._vectors",
        "server/engine.py:Engine.rerank",
        "client.py:Client.embeddings",
        "client.py:Client.embed",
        "client.py:Client.rerank",
        "schemas.py:EmbeddingsRequest",
        "schemas.py:EmbedRequest",
        "schemas.py:RerankRequest",
        "schemas.py:Embedding",
        "schemas.py:Embeddings",
        "schemas.py:Usage",
        "schemas.py:Rank",
        "schemas.py:OpenAIFault",
        "schemas.py:OpenAIError",
    ),
    "students": (
        "models/student.py",
        "training/student.py",
        "training/teaching.py",
        "forum/encoders.py:Students",
        "forum/encoders.py:StudentQueries",
        "forum/encoders.py:choose_queries",
        "forum/encoders.py:chosen_queries",
        "forum/encoders.py:taught_by",
        "forum/forum.py:Forum.train_student",
        "forum/forum.py:Forum.use_queries",
    ),
    "one scorer with a probability, and what it promises": (
        "search/scorer.py",
        "search/features.py",
        "search/texts.py",
        "search/thresholds.py",
        "index/words/texts.py",
        "forum/thresholds.py",
        "cli/judge.py:threshold",
        "search/rankers.py:by_help",
        "search/rankers.py:helpfulness",
        "search/rankers.py:answer_quality",
        "search/rankers.py:by_probability",
        "forum/forum.py:Forum.threshold",
        "forum/forum.py:Forum.reliability",
        "forum/forum.py:Forum.least_score",
    ),
    "moderation": (
        "store/moderation.py",
        "cli/review.py",
    ),
    "groups, and a queue of pairs to judge": (
        "forum/groups.py",
        "forum/linkage.py",
        "forum/queue.py",
        "cli/judge.py:judge",
        "cli/duplicates.py",
        "forum/forum.py:Forum.groups",
        "forum/forum.py:Forum.proposals",
        "client.py:Client.groups",
        "schemas.py:ShownGroup",
        "schemas.py:ShownWeakest",
    ),
    "finding damage and repairing it": (
        "forum/check.py",
        "store/sqlite/soundness.py",
        "index/words/sums.py",
        "index/words/faults.py",
        "cli/info.py:check",
        "forum/forum.py:Forum.check",
        "forum/forum.py:Forum.repair",
    ),
    "tables in and out, and other libraries": (
        "records.py",
        "integrations/",
        "readers/exported.py",
        "cli/export.py",
        "forum/exchange.py:export_forum",
        "forum/exchange.py:export_table",
        "forum/exchange.py:records_of",
        "forum/exchange.py:frame_of",
        "forum/exchange.py:archive_of",
        "forum/forum.py:Forum.export",
        "forum/forum.py:Forum.from_dataframe",
        "forum/forum.py:Forum.to_dataframe",
    ),
    "new commands: similar, show, source, config, mcp": ("cli/mcp.py", "cli/config.py", "cli/show.py"),
    "one process a core, for terms and for training": ("index/workers.py", "training/processes.py"),
}
"""Capability → what serves it alone: folders (ending with "/"), files, and definitions as ``file:Name``."""


class Lines(NamedTuple):
    """All lines, and those that are neither docstring nor comment nor blank."""

    all: int = 0
    code: int = 0

    def __add__(self, other: object) -> Lines:
        """Return the sum, part by part."""
        assert isinstance(other, Lines)
        return Lines(self.all + other.all, self.code + other.code)


def definitions(tree: ast.AST, before: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Yield every function and class with its name, methods as ``Class.method``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield before + node.name, node
            yield from definitions(node, f"{before}{node.name}.")


def count(text: str, first: int = 1, last: int | None = None) -> Lines:
    """Return the lines of a module, or of one from its line ``first`` to ``last``.

    >>> count('def f():\\n    "Return 1."\\n\\n    return 1  # one\\n')
    Lines(all=4, code=2)
    """
    lines = text.splitlines()
    aside = {number for number, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            aside.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    chosen = range(first, (last or len(lines)) + 1)
    return Lines(len(chosen), sum(number not in aside for number in chosen))


def lines_of(place: str) -> Iterator[tuple[str, Lines]]:
    """Yield the files of an entry of ``ADDED`` with its lines in each.

    Raises:
        LookupError: there is no such file, or no such definition in it.
    """
    name, _, defined = place.partition(":")
    files = sorted((PACKAGE / name).rglob("*.py")) if name.endswith("/") else [PACKAGE / name]
    if not all(file.is_file() for file in files) or not files:
        raise LookupError(f"there is no {name} in the package")
    for file in files:
        text = file.read_text(encoding="utf-8")
        where = file.relative_to(PACKAGE).as_posix()
        if not defined:
            yield where, count(text)
            continue
        node = dict(definitions(ast.parse(text))).get(defined)
        if node is None:
            raise LookupError(f"{name} does not define {defined}")
        yield where, count(text, node.lineno, node.end_lineno)


def folder_of(where: str) -> str:
    """Return the top folder of a file of the package.

    >>> folder_of("index/words/index.py"), folder_of("types.py")
    ('index/', '(top)')
    """
    return where.partition("/")[0] + "/" if "/" in where else "(top)"


def main() -> None:
    """Print the package's lines by folder, and by what was added."""
    whole: dict[str, Lines] = defaultdict(Lines)
    for file in sorted(PACKAGE.rglob("*.py")):
        whole[folder_of(file.relative_to(PACKAGE).as_posix())] += count(file.read_text(encoding="utf-8"))
    later: dict[str, Lines] = defaultdict(Lines)
    by_capability: dict[str, Lines] = defaultdict(Lines)
    for capability, places in ADDED.items():
        for place in places:
            for where, found in lines_of(place):
                by_capability[capability] += found
                later[folder_of(where)] += found
    print("| folder | lines | code | of these for what was added | code |\n|---|---|---|---|---|")
    for folder, found in sorted(whole.items()):
        print(f"| `{folder}` | {found.all:,} | {found.code:,} | {later[folder].all:,} | {later[folder].code:,} |")
    total, added = sum(whole.values(), Lines()), sum(later.values(), Lines())
    print(f"| all | {total.all:,} | {total.code:,} | {added.all:,} | {added.code:,} |\n")
    print("| added since | lines | code |\n|---|---|---|")
    for capability, found in by_capability.items():
        print(f"| {capability} | {found.all:,} | {found.code:,} |")


if __name__ == "__main__":
    main()
