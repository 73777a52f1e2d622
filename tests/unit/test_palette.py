"""Screenshots with a palette: the colours that are written are those that were read, whichever filter a line had."""

from __future__ import annotations

import doctest
import struct
import zlib

import numpy as np
import pytest
from tools import palette


def naive_png(pixels: np.ndarray, kinds: list[int]) -> bytes:
    """Write an RGB picture whose lines are filtered by these kinds, one after the other."""
    rows, columns, channels = pixels.shape
    lines = b""
    for number, row in enumerate(pixels.astype(int)):
        above = pixels[number - 1].astype(int) if number else np.zeros((columns, channels), dtype=int)
        kind = kinds[number % len(kinds)]
        line = []
        for at in range(columns):
            for channel in range(channels):
                left = row[at - 1, channel] if at else 0
                over, corner = above[at, channel], above[at - 1, channel] if at else 0
                guess = [0, left, over, (left + over) // 2, palette._paeth(int(left), int(over), int(corner))][kind]
                line.append((row[at, channel] - guess) % 256)
        lines += bytes([kind, *line])
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return palette.SIGNATURE + b"".join(palette._chunk(kind, data) for kind, data in parts)


@pytest.mark.parametrize("kind", range(5))
def test_a_line_is_read_whatever_its_filter(kind: int) -> None:
    pixels = np.random.default_rng(kind).integers(0, 256, (4, 7, 3), dtype=np.uint8)
    assert np.array_equal(palette._pixels(naive_png(pixels, [kind])), pixels)


def test_few_colours_stay_exact_and_of_many_the_rare_ones_become_a_near_one() -> None:
    few = np.random.default_rng(1).integers(0, 256, (1, 200, 3), dtype=np.uint8)
    written = palette.with_palette(naive_png(few, [0]))
    assert sorted(set(map(tuple, colours_of(written)))) == sorted(set(map(tuple, few.reshape(-1, 3).tolist())))
    ramp = np.stack([np.arange(300) % 256, np.arange(300) // 2, np.arange(300) // 3], axis=1).astype(np.uint8)
    assert len(colours_of(palette.with_palette(naive_png(ramp[None], [1])))) == palette.COLOURS


def colours_of(png: bytes) -> list[list[int]]:
    at = png.index(b"PLTE")
    (length,) = struct.unpack_from(">I", png, at - 4)
    return np.frombuffer(png[at + 4 : at + 4 + length], dtype=np.uint8).reshape(-1, 3).tolist()


def test_a_picture_of_another_kind_is_refused() -> None:
    grey = palette.SIGNATURE + palette._chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="colour type 0"):
        palette.with_palette(grey)


def test_the_examples_hold() -> None:
    assert doctest.testmod(palette).failed == 0
