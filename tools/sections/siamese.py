"""The section on how fast the siamese networks are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["speed"]


def speed(result: Mapping[str, Any]) -> list[str]:
    """Return the sparse arithmetic beside the dense one, and how fast texts are encoded and learned from."""
    sizes = result["sizes"]
    lines = []
    for name, found in result["sparse_and_dense"].items():
        lines.append(
            (
                name,
                *(
                    f"{found[way]['sparse_ms']:.0f} / {found[way]['dense_ms']:.0f}"
                    f" ({found[way]['dense_by_sparse']['median']:.1f}, at least"
                    f" {found[way]['dense_by_sparse']['lowest']:.1f})"
                    for way in ("forward", "both")
                ),
            )
        )
    beside = result["beside"]
    rates = [(name, f"{rate:,}") for name, rate in beside["per_s"].items()]
    texts = ", ".join(f"{rate:,} questions of {label} a second" for label, rate in result["questions_per_s"].items())
    samples = ", ".join(f"{rate:,} of {name}" for name, rate in result["training_samples_per_s"].items())
    header = ("pooling, text", "forward, sparse / dense ms (times)", "forward and backward, sparse / dense ms (times)")
    return [
        "## Speed of siamese networks",
        "",
        f"{sizes['trigrams']:,} trigrams, {sizes['batch']} texts, one thread. The sparse network computes only where a"
        " text differs from the background, the dense one everywhere; both give the same vectors:",
        "",
        *table(header, lines),
        "",
        f"Without torch, from words to vectors: {texts}. Training: {samples} samples a second. The"
        f" {beside['questions']} questions of the bundled forum, title and body, by each encoder on one thread:",
        "",
        *table(("encoder", "questions a second"), rates),
    ]
