"""``askalike reproduce`` on 2,000 texts in the layout in which each paper's data was published, killed on the way."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.command import Run
from tests.tiny_semeval import FILES, THREAD

from askalike.readers.frame import ReadContext
from askalike.readers.research.askubuntu import AskUbuntuReader

REPOSITORY = Path(__file__).resolve().parents[2]
SUBJECTS = 500
TEXTS = 2000


def words(number: int) -> str:
    """Return the words of a subject; neighbours share one of them."""
    return f"thing{number % SUBJECTS} part{number % SUBJECTS // 2}"


def write_askubuntu(folder: Path) -> Path:
    """Write the released folder; a line of training has no text, and word vectors have no header line."""
    folder.mkdir()
    drawn = random.Random(0)
    texts = [f"{n}\thow do i fix {words(n)}\tmy {words(n)} stopped , number {n} ." for n in range(TEXTS)]
    (folder / "text_tokenized.txt.gz").write_bytes(gzip.compress("\n".join(texts).encode()))
    others = [" ".join(map(str, drawn.sample(range(TEXTS), 100))) for _ in range(120)]
    lines = [f"{n}\t{n + SUBJECTS}\t{others[n]}" for n in range(120)]
    (folder / "train_random.txt").write_text("\n".join([*lines, f"7\t{TEXTS + 5}\t1 2"]) + "\n", encoding="utf-8")
    for split, first in (("dev", 200), ("test", 300)):
        queries = []
        for query in range(first, first + 50):
            candidates = [query + SUBJECTS, *drawn.sample(range(query + SUBJECTS + 1, TEXTS), 19)]
            drawn.shuffle(candidates)
            scores = " ".join(f"{20 - place:.6f}" for place in range(20))
            queries.append(f"{query}\t{query + SUBJECTS}\t{' '.join(map(str, candidates))}\t{scores}")
        (folder / f"{split}.txt").write_text("\n".join(queries) + "\n", encoding="utf-8")
    (folder / "vector").mkdir()
    known = dict.fromkeys(word for line in texts for word in line.replace("\t", " ").split())
    vectors = [" ".join([word, *(f"{drawn.gauss(0, 1):.4f}" for _ in range(200))]) for word in known]
    (folder / "vector" / "vectors_pruned.200.txt.gz").write_bytes(gzip.compress("\n".join(vectors).encode(), 1))
    return folder


def write_semeval(folder: Path) -> Path:
    """Write the four XML files with ten candidates a query, the second and third relevant."""
    folder.mkdir()
    queries = dict(zip(FILES, (90, 30, 30, 30), strict=True))
    for (name, letter), count in zip(FILES.items(), queries.values(), strict=True):
        threads = "".join(
            THREAD.format(
                query=f"{letter}{number}",
                rank=rank,
                label="Relevant" if rank in (2, 3) else "Irrelevant",
                subject=words(number if rank in (2, 3) else 11 * number + 7 * rank + ord(letter)),
            ).replace("wifi drops", f"trouble with {words(number)}")
            for number in range(count)
            for rank in range(1, 11)
        )
        (folder / name).write_text(f'<?xml version="1.0"?>\n<xml>\n{threads}</xml>\n', encoding="utf-8")
    return folder


YAHOO = """<vespaadd><document type="wisdom"><uri>{uri}</uri><subject>What about {words}?</subject>
<content>Number {uri}&lt;br /&gt;of many.</content><bestanswer>Try the {words} again.</bestanswer>
<nbestanswers><answer_item>No idea about {uri}.</answer_item><answer_item>Try the {words} again.</answer_item>
</nbestanswers><cat>A</cat><maincat>A</maincat><subcat>A</subcat><date>1180000000</date>
<qlang>en</qlang><id>u{uri}</id><best_id>u7</best_id></document></vespaadd>
"""


def write_yahoo(folder: Path) -> Path:
    """Write the XML file of L6, and labelled pairs beside it."""
    folder.mkdir()
    records = "".join(YAHOO.format(uri=number, words=words(number)) for number in range(TEXTS))
    (folder / "FullOct2007.xml").write_text(f"<ystfeed>\n{records}</ystfeed>\n", encoding="utf-8")
    lines = [
        f"asking {number} about {words(number)}\tso {words(other)}\t{int(other == number)}\tk{number}"
        for number in range(60)
        for other in (number + 3, number, number + 9, number + 1)
    ]
    (folder / "labelled.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


class Layout(NamedTuple):
    """A paper's data as it was published, and rows of its table with a recipe that is quick."""

    write: Callable[[Path], Path]
    rows: tuple[str, ...]
    recipe: str


LEI = """
word_limit = 30
[words]
size = 200
min_count = 1
[encoder]
kind = "rcnn"
hidden_size = 400
[[stage]]
objective = "max-margin"
batch_size = 32
epochs = 3
"""
ZHANG = """
reads = "joined"
word_limit = 20
stems = "english"
[words]
size = 16
min_count = 2
vectors = "word2vec"
epochs = 1
is_trained = true
[encoder]
kind = "attention"
hidden_size = 16
layers = 2
pooling = "mean"
[[stage]]
objective = "reconstruction"
batch_size = 48
held_out = 50
epochs = 3
patience = 0
stop_on = "perplexity"
"""
DAS = """
channels = [4, 4]
poolings = [5, 5]
output_size = 32
held_out = 100
[loop]
epochs = 3
patience = 0
"""
LAYOUTS = {
    "lei2016": Layout(write_askubuntu, ("bm25", "rcnn-last"), LEI),
    "zhang2018": Layout(write_semeval, ("candidate-search", "words-full", "untrained-base", "attention-full"), ZHANG),
    "das2016": Layout(write_yahoo, ("bm25", "lmir", "scqa", "t-scqa-08"), DAS),
}


def killed_after_the_first_epoch(arguments: list[str]) -> Iterator[str]:
    """Yield what a command prints up to its second epoch, and end it there."""
    command = [sys.executable, "-m", "askalike", "reproduce", *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            yield line
            if "epoch 2: loss" in line:
                run.send_signal(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("paper", LAYOUTS)
def test_a_published_layout_becomes_a_table_in_the_papers_names_killed_or_not(
    paper: str, tmp_path: Path, run: Run
) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    layout = LAYOUTS[paper]
    (tmp_path / "quick.toml").write_text(layout.recipe, encoding="utf-8")
    arguments = [paper, "--data", str(layout.write(tmp_path / "data")), "--out", str(tmp_path / "out")]
    arguments += ["--recipe", str(tmp_path / "quick.toml"), "--seeds", "1"]
    arguments += [word for row in layout.rows for word in ("--only", row)]
    printed = "".join(killed_after_the_first_epoch(arguments))
    assert "epoch 2: loss" in printed, printed
    code, shown, notices = run("reproduce", *arguments, "--json")
    assert code == 0, notices
    assert " goes on from epoch " in notices
    assert "epoch 1: loss" not in notices, "what was trained is not trained again"
    report = json.loads(shown)
    (table,) = report["sets"].values()
    assert [row["row"] for row in table["rows"]] == list(layout.rows)
    for row in table["rows"]:
        assert all(0 < measures["map"]["mean"] <= 1 for measures in row["found"].values()), row["row"]
    again = run("reproduce", *arguments, "--json")
    assert again.json.keys() == report.keys()
    assert "epoch" not in again.err, "what is finished is only read"
    if paper == "lei2016":
        assert "labelled pairs that name a question without a text: left out (1)" in notices
        assert "vectors_pruned.200.txt.gz" in notices


def test_the_texts_of_the_layout_are_read_whole(tmp_path: Path) -> None:
    context = ReadContext()
    records = list(AskUbuntuReader().read(write_askubuntu(tmp_path / "data"), context))
    assert len(records) == TEXTS + 121
    assert context.rejects.count == 0
