"""The sections on how long trainings take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["training_time"]


def training_time(result: Mapping[str, Any]) -> list[str]:
    """Return the phases of a training from nothing, and what their steps are made of."""
    phases = result["seconds"]
    whole = sum(phase["whole"] for phase in phases.values())
    lines = [
        "## How long a training takes",
        "",
        f"From nothing to a model of the forum's own with {result['threads']} threads: pre-training on"
        f" {result['questions']:,} Reddit questions (word2vec, one epoch of the encoder-decoder, one of title against"
        f" body), then `askalike train` on the 3D Slicer forum, {result['topics']:,} topics with"
        f" {result['answers']:,} best answers; an encoder of {result['parameters']:,} parameters:"
        f" {result['minutes']:.1f} minutes.",
        "",
    ]
    rows = [(name, f"{phase['whole']:.0f}", f"{phase['whole'] / whole:.0%}") for name, phase in phases.items()]
    lines += [*table(("phase", "s", "share"), rows), "", "Where the time of the phases goes, in seconds:", ""]
    parts = list(dict.fromkeys(part for phase in phases.values() for part in phase if part != "whole"))
    shown = {name: phase for name, phase in phases.items() if len(phase) > 1}
    cells = [(part, *(f"{phase[part]:.0f}" if part in phase else "" for phase in shown.values())) for part in parts]
    return [*lines, *table(("part", *shown), cells)]
