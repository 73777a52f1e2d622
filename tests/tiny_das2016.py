"""Yahoo! Answers in the paper's layout, of a few words, in which an answer tells what stands for what."""

from __future__ import annotations

from pathlib import Path

WORDS = (("wifi", "router"), ("pain", "doctor"), ("cake", "oven"), ("visa", "embassy"), ("car", "garage"))

_RECORD = """<vespaadd><document type="wisdom"><uri>{uri}</uri><subject>{subject}</subject><content></content>
<bestanswer>{best}</bestanswer><nbestanswers><answer_item>{other}</answer_item><answer_item>{best}</answer_item>
</nbestanswers><cat>A</cat><maincat>A</maincat><subcat>A</subcat><date>1180000000</date></document></vespaadd>
"""


def write_yahoo(folder: Path, queries: int = 20) -> Path:
    """Write an archive of 60 questions, and queries of which one candidate says the same in the answers' words."""
    folder.mkdir(parents=True)
    records = "".join(
        _RECORD.format(
            uri=number,
            subject=f"trouble {WORDS[number % 5][0]} number{number}",
            best=f"ask {WORDS[number % 5][1]} number{number}",
            other="no idea",
        )
        for number in range(60)
    )
    (folder / "FullOct2007.xml").write_text(f"<ystfeed>\n{records}</ystfeed>\n", encoding="utf-8")
    lines = []
    for number in range(queries):
        (own, means), (_, other) = WORDS[number % 5], WORDS[(number + 1) % 5]
        query = f"query{number} {own}"
        lines += [f"{query}\tfind {other}\t0\tk", f"{query}\tfind {means}\t1\tk", f"{query}\tfind shop\t0\tk"]
    (folder / "labelled.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
