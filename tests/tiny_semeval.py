"""SemEval in its layout, of a few words: of three candidates the second says the same in other words."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "SemEval2016-Task3-CQA-QL-train-part1.xml": "A",
    "SemEval2016-Task3-CQA-QL-dev.xml": "D",
    "SemEval2016-Task3-CQA-QL-test.xml": "T",
    "SemEval2017-Task3-CQA-QL-test.xml": "U",
}
SUBJECTS = ("printer silent today", "wlan lost again", "a cat on the mat")
LABELS = ("Irrelevant", "PerfectMatch", "Irrelevant")

THREAD = """<OrgQuestion ORGQ_ID="{query}">
<OrgQSubject>wifi drops</OrgQSubject><OrgQBody>my wifi drops {query}</OrgQBody>
<Thread THREAD_SEQUENCE="{query}_R{rank}"><RelQuestion RELQ_ID="{query}_R{rank}" RELQ_RANKING_ORDER="{rank}"
 RELQ_CATEGORY="" RELQ_DATE="" RELQ_USERID="" RELQ_USERNAME="" RELQ_RELEVANCE2ORGQ="{label}">
<RelQSubject>{subject}</RelQSubject><RelQBody>what now {query}</RelQBody></RelQuestion>
<RelComment RELC_ID="{query}_R{rank}_C1" RELC_DATE="" RELC_USERID="" RELC_USERNAME="">
<RelCText>look at the {subject} {query}</RelCText></RelComment></Thread></OrgQuestion>
"""


def write_semeval(folder: Path) -> Path:
    """Write the files of training, dev and both tests, of three queries each."""
    folder.mkdir()
    for name, letter in FILES.items():
        threads = "".join(
            THREAD.format(query=f"{letter}{number}", rank=rank, label=label, subject=subject)
            for number in range(3)
            for rank, (label, subject) in enumerate(zip(LABELS, SUBJECTS, strict=True), start=1)
        )
        (folder / name).write_text(f'<?xml version="1.0"?>\n<xml>\n{threads}</xml>\n', encoding="utf-8")
    return folder
