"""Move a small sentence transformer towards a large one by the order in which each ranks related texts.

A batch holds the titles of questions from few communities, and the title with body of a third of them, so that most of
its texts are near each other: their order is what a search needs and what unrelated texts do not teach. With
``s`` the student's and ``t`` the teacher's vectors of length 1, ``S_ij = s_i · s_j`` and ``T_ij = t_i · t_j``::

    loss = mean_i KL(softmax_j(T_ij / τ) ‖ softmax_j(S_ij / τ))
           + a · mean_{i≠j} (S_ij - T_ij)² + b · mean_i (1 - cos(W s_i, t_i))

The loop saves its state, so that a stopped run continues where it was.

Source: Park et al., "Relational Knowledge Distillation", 2019 (relations); Wang et al., "MiniLM", 2020 (the student).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

WHOLE_TOKENS: Final = 128
TITLE_TOKENS: Final = 40
CHUNK: Final = 16
"""Texts of like length that are padded together."""


@dataclass(frozen=True, slots=True)
class DistillSettings:
    """How the student is trained.

    Args:
        communities, questions: of a batch: its communities, and the questions of each.
        wholes: questions of a batch whose title with body is read too.
        temperature: τ.
        squares, projection: a and b.
        warmup, decay: steps at the beginning and at the end over which the learning rate rises and falls.
    """

    steps: int = 3000
    communities: int = 6
    questions: int = 8
    wholes: int = 16
    temperature: float = 0.05
    squares: float = 10.0
    projection: float = 1.0
    learning_rate: float = 4e-5
    warmup: int = 100
    decay: int = 600
    seed: int = 1

    def rate(self, step: int) -> float:
        """Return the learning rate of a step.

        >>> settings = DistillSettings(steps=1000, warmup=100, decay=200, learning_rate=1.0)
        >>> [settings.rate(step) for step in (49, 500, 899, 999)]
        [0.5, 1.0, 0.505, 0.005]
        """
        rise = min(1.0, (step + 1) / self.warmup)
        fall = min(1.0, (self.steps - step) / self.decay)
        return self.learning_rate * min(rise, fall)


@dataclass(frozen=True, slots=True)
class CommunityQuestion:
    """A question's texts."""

    title: str
    body: str

    @property
    def whole(self) -> str:
        """Title and body as the search reads them."""
        return f"{self.title}\n{self.body}".strip()


class SentenceModel(torch.nn.Module):
    """Texts → vectors of length 1, the mean of the last layer's states."""

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = AutoModel.from_pretrained(folder, attn_implementation="eager").to(dtype).eval()  # no dropout

    def forward(self, texts: Sequence[str], tokens: int) -> Tensor:
        """Return the vectors of texts that are cut at ``tokens``.  # (B, D) float32"""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        parts = [order[start : start + CHUNK] for start in range(0, len(order), CHUNK)]
        vectors = torch.cat([self._chunk([texts[place] for place in part], tokens) for part in parts])
        return vectors[torch.argsort(torch.tensor(order))]

    def _chunk(self, texts: list[str], tokens: int) -> Tensor:
        encoded = self.tokenizer(
            texts, padding=True, truncation=True, max_length=tokens, return_tensors="pt", pad_to_multiple_of=8
        )
        states = self.network(**encoded).last_hidden_state.float()  # (B, T, D)
        mask = encoded["attention_mask"].unsqueeze(-1).float()  # (B, T, 1)
        return functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)


def batches(
    questions_by_community: dict[str, list[CommunityQuestion]], settings: DistillSettings, first_step: int
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the titles and the wholes of each step's batch from ``first_step`` on; a step always has the same."""
    names = sorted(name for name, members in questions_by_community.items() if len(members) >= settings.questions)
    sizes = [len(questions_by_community[name]) for name in names]
    for step in range(first_step, settings.steps):
        chance = random.Random(settings.seed * 1_000_003 + step)
        drawn: list[CommunityQuestion] = []
        for name in chance.choices(names, sizes, k=settings.communities):
            drawn += chance.sample(questions_by_community[name], settings.questions)
        wholes = [question.whole for question in chance.sample(drawn, settings.wholes)]
        yield [question.title for question in drawn], wholes


def relation_loss(student: Tensor, teacher: Tensor, settings: DistillSettings) -> tuple[Tensor, Tensor]:
    """Return the divergence of the orders and the squared difference of the cosines; vectors (B, D) of length 1.

    >>> vectors = functional.normalize(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), dim=1)
    >>> [round(float(part), 6) for part in relation_loss(vectors, vectors, DistillSettings())]
    [0.0, 0.0]
    """
    size = len(student)
    others = ~torch.eye(size, dtype=torch.bool)
    cosines = (student @ student.T)[others].view(size, size - 1)
    targets = (teacher @ teacher.T)[others].view(size, size - 1)
    order = functional.kl_div(
        functional.log_softmax(cosines / settings.temperature, dim=1),
        functional.log_softmax(targets / settings.temperature, dim=1),
        reduction="batchmean",
        log_target=True,
    )
    return order, functional.mse_loss(cosines, targets)


def ridge_projection(
    student: SentenceModel,
    teacher: SentenceModel,
    questions_by_community: dict[str, list[CommunityQuestion]],
    settings: DistillSettings,
    *,
    count: int = 30,
    penalty: float = 1.0,
) -> Tensor:
    """Return the W that maps the untrained student's vectors of ``count`` batches best to the teacher's.

    ``W = argmin Σ_i |W s_i - t_i|² + penalty · |W|²``  # (D_teacher, D_student)
    """
    vectors: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        for _, (titles, wholes) in zip(range(count), batches(questions_by_community, settings, 0), strict=False):
            pair = [
                torch.cat([model(titles, TITLE_TOKENS), model(wholes, WHOLE_TOKENS)]) for model in (student, teacher)
            ]
            vectors.append((pair[0], pair[1]))
    students, teachers = (torch.cat(side) for side in zip(*vectors, strict=True))
    gram = students.T @ students + penalty * torch.eye(students.shape[1])
    solution: Tensor = torch.linalg.solve(gram, students.T @ teachers)
    return solution.T.contiguous()


def distill(
    questions_by_community: dict[str, list[CommunityQuestion]],
    student_folder: Path,
    teacher_folder: Path,
    work: Path,
    settings: DistillSettings,
) -> SentenceModel:
    """Return the trained student; ``work`` holds the state, from which a later call continues, and the log."""
    teacher = SentenceModel(teacher_folder, torch.bfloat16)
    student = SentenceModel(student_folder, torch.float32)
    widths = student.network.config.hidden_size, teacher.network.config.hidden_size
    torch.manual_seed(settings.seed)
    projection = torch.nn.Linear(*widths, bias=False)
    parameters = [*student.network.parameters(), *projection.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=0.01)
    first_step, state_file = 0, work / "state.pt"
    if not state_file.exists():
        projection.weight.data = ridge_projection(student, teacher, questions_by_community, settings)
    if state_file.exists():
        state: dict[str, Any] = torch.load(state_file, weights_only=True)
        student.network.load_state_dict(state["student"])
        projection.load_state_dict(state["projection"])
        optimizer.load_state_dict(state["optimizer"])
        first_step = state["step"]

    def save(step: int) -> None:
        state = {
            "student": student.network.state_dict(),
            "projection": projection.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
        }
        torch.save(state, state_file.with_suffix(".new"))
        state_file.with_suffix(".new").replace(state_file)

    work.mkdir(parents=True, exist_ok=True)
    sums = [0.0, 0.0, 0.0]
    since = time.monotonic()
    with (work / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"from": first_step, **asdict(settings)}) + "\n")
        for step, (titles, wholes) in enumerate(batches(questions_by_community, settings, first_step), first_step):
            with torch.no_grad():
                targets = torch.cat([teacher(titles, TITLE_TOKENS), teacher(wholes, WHOLE_TOKENS)])
            with torch.autocast("cpu", torch.bfloat16):
                vectors = torch.cat([student(titles, TITLE_TOKENS), student(wholes, WHOLE_TOKENS)])
            order, squares = relation_loss(vectors.float(), targets, settings)
            aligned = (1 - functional.cosine_similarity(projection(vectors.float()), targets)).mean()
            loss = order + settings.squares * squares + settings.projection * aligned
            for group in optimizer.param_groups:
                group["lr"] = settings.rate(step)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            sums = [total + float(part.detach()) for total, part in zip(sums, (order, squares, aligned), strict=True)]
            if (step + 1) % 50 == 0:
                row = {"step": step + 1, "seconds": round(time.monotonic() - since, 1)}
                row |= {
                    name: round(total / 50, 5)
                    for name, total in zip(("order", "squares", "aligned"), sums, strict=True)
                }
                log.write(json.dumps(row) + "\n")
                log.flush()
                sums, since = [0.0, 0.0, 0.0], time.monotonic()
            if (step + 1) % 250 == 0:
                save(step + 1)
    save(settings.steps)
    return student
