"""The sections on how long trainings take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["autoencoders", "moments", "training_time"]


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


def autoencoders(result: Mapping[str, Any]) -> list[str]:
    """Return the training steps of both autoencoders, and what they are made of."""
    sizes, rows = result["sizes"], []
    for found in result["measurements"]:
        layer = f"{found['output_layer_ms']:.0f} ({found['output_layer_by_torch_ms']:.0f})"
        for kind in result["parameters"]:
            own = found[kind]
            words = (f"{own['words_per_s'][name]:,}" for name in ("alike", "random"))
            shares = (f"{own[name]:.0%}" for name in ("share_of_output_layer", "share_of_update"))
            rows.append((kind, found["threads"], found["arithmetic"], f"{own['step_ms']:.0f}", *words, layer, *shares))
    header = ("", "threads", "products in", "ms a step", "words/s", "in random batches", "output ms (torch's)")
    return [
        "## Training the autoencoders",
        "",
        f"Batches of {sizes['texts']} texts of {sizes['words'][0]} to {sizes['words'][1]} words,"
        f" {sizes['vocabulary']:,} words known, {sizes['size']} dimensions, {sizes['layers']} layers on each side,"
        f" torch {result['torch']}:"
        f" {result['parameters']['attention']:,} parameters with attention, {result['parameters']['gru']:,} with GRUs,"
        " word vectors included. A step is forward, backward, clipping and Adam, the mean of"
        f" {result['rounds']} in turn. Training has batches of texts of like length; random ones hold texts as they"
        " come. The output layer is timed by itself, beside torch's own loss of the same layer.",
        "",
        *table((*header, "output", "update"), rows),
    ]


def moments(result: Mapping[str, Any]) -> list[str]:
    """Return what an update of word vectors takes in the course of a training, with and without clearing."""
    sizes, kinds = result["sizes"], result["update_ms"]
    ends = range(sizes["each"], sizes["steps"] + 1, sizes["each"])
    every = 4
    rows = [
        (f"{end:,}", *(f"{found[place]:.0f}" for found in kinds.values()))
        for place, end in enumerate(ends)
        if not (place + 1) % every
    ]
    return [
        "## Adam's moments of rare words",
        "",
        f"One update of {sizes['vocabulary']:,} word vectors of {sizes['size']} dimensions by the gradients of"
        f" {sizes['texts']} Reddit questions, on one thread, torch {result['torch']}. Moments of words that have not"
        " come for 700 steps are denormal numbers, unless they are cleared. Milliseconds, the mean of the last"
        f" {sizes['each']} steps:",
        "",
        *table(("after steps", *kinds), rows),
    ]
